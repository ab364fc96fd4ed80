"""llama.cpp as a peer of `formcast bench throughput`: run by the Python of an environment that has llama-cpp-python, which answers
one prompt at a time. See `api/cli/bench_peers.py`."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    setup = json.loads(sys.stdin.readline())

    from llama_cpp import Llama, LlamaGrammar  # pyright: ignore[reportMissingImports]

    if setup["model"] is None:
        sys.exit("llama.cpp reads GGUF files only")
    llm = Llama(setup["model"], n_ctx=setup["max_model_len"], verbose=False)
    end = llm.token_eos()

    def without_end(_: object, logits: Any) -> Any:
        logits[end] = float("-inf")
        return logits

    def answer(value: dict[str, object]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    answer({"ready": True})
    for line in sys.stdin:
        task = json.loads(line)
        if len(task["prompts"]) > 1:
            answer({"refused": "its Python package answers one prompt at a time"})
            continue
        grammar = None
        if task["schema"] is not None:
            try:
                grammar = LlamaGrammar.from_json_schema(json.dumps(task["schema"]), verbose=False)
            except ValueError as error:
                answer({"refused": str(error).splitlines()[0]})
                continue
        tokens, start = 0, time.perf_counter()
        llm.reset()
        for _ in llm.generate(task["prompts"][0], temp=0.0, repeat_penalty=1.0, grammar=grammar, logits_processor=without_end):
            tokens += 1
            if tokens == task["max_tokens"]:
                break
        answer({"tokens": tokens, "seconds": time.perf_counter() - start})


if __name__ == "__main__":
    main()
