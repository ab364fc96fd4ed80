"""vLLM as a peer of `formcast bench throughput`: run by the Python of an environment that has it. See `api/cli/bench_peers.py`."""

from __future__ import annotations

import json
import os
import sys
import time

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM writes its log to standard output
    setup = json.loads(sys.stdin.readline())

    from vllm import LLM, SamplingParams  # pyright: ignore[reportMissingImports]
    from vllm.sampling_params import StructuredOutputsParams  # pyright: ignore[reportMissingImports]

    llm = LLM(
        model=setup["folder"],
        dtype="float32",
        max_num_seqs=setup["max_num_seqs"],
        max_model_len=setup["max_model_len"],
        disable_log_stats=True,
    )

    def answer(value: dict[str, object]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    answer({"ready": True})
    for line in sys.stdin:
        task = json.loads(line)
        schema = task["schema"]
        params = SamplingParams(
            temperature=0.0,
            max_tokens=task["max_tokens"],
            ignore_eos=True,
            structured_outputs=None if schema is None else StructuredOutputsParams(json=schema),
        )
        prompts = [{"prompt_token_ids": prompt} for prompt in task["prompts"]]
        start = time.perf_counter()
        try:
            results = llm.generate(prompts, params, use_tqdm=False)
        except ValueError as error:
            answer({"refused": str(error).splitlines()[0]})
            continue
        seconds = time.perf_counter() - start
        answer({"tokens": sum(len(result.outputs[0].token_ids) for result in results), "seconds": seconds})


if __name__ == "__main__":
    main()
