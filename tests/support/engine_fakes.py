"""A tiny model and a byte vocabulary, small enough to run a whole engine in milliseconds."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from formcast.engine.attention import IMPLEMENTATION
from formcast.engine.config import EngineConfig
from formcast.engine.core import Compiler, EngineCore
from formcast.engine.request import Request, RequestOutput, SamplingParams
from formcast.fsm_cache.mask import NO_ROW, Mask

EOS = 256
SPECIAL = 257
NUM_TOKENS = 261
"""Ids 0 to 255 are bytes, then the end token, a special token, and padding of the logits."""


def tiny_llama(*, num_tokens: int = NUM_TOKENS, max_len: int = 256, seed: int = 0) -> torch.nn.Module:
    config = LlamaConfig(
        vocab_size=num_tokens,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=max_len,
        initializer_range=0.5,
        tie_word_embeddings=False,
    )
    return random_module(config, seed=seed)


def random_module(config: Any, *, seed: int = 0, dtype: torch.dtype = torch.float32, attention: str = IMPLEMENTATION) -> torch.nn.Module:
    """A module with random weights; the same seed gives the same weights for every attention implementation."""
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(copy.deepcopy(config), attn_implementation=attention).to(dtype).eval().requires_grad_(False)


class ByteNames:
    def id_to_token(self, id: int) -> str | None:
        return {EOS: "<eos>", SPECIAL: "<special>"}.get(id)


@dataclass(kw_only=True)
class FakeModel:
    module: torch.nn.Module = field(default_factory=tiny_llama)
    name: str = "tiny"
    tokenizer: Any = field(default_factory=ByteNames)
    eos_token_ids: frozenset[int] = frozenset({EOS})
    max_model_len: int = 256
    vocab_size: int = NUM_TOKENS

    @property
    def config(self) -> Any:
        return self.module.config


class Poisoned(torch.nn.Module):
    """A model whose logits are NaN for sequences that end with a certain token, or that raises."""

    def __init__(self, *, nan_after: int | None = None, raise_after: int | None = None):
        super().__init__()
        self.inner = tiny_llama()
        self.config = self.inner.config
        self.nan_after, self.raise_after = nan_after, raise_after

    def forward(self, input_ids, logits_to_keep, **options):
        if self.raise_after is not None and bool((input_ids == self.raise_after).any()):
            raise RuntimeError("out of memory")
        output = self.inner(input_ids=input_ids, logits_to_keep=logits_to_keep, **options)
        if self.nan_after is not None:
            output.logits[0, input_ids[0, logits_to_keep] == self.nan_after] = float("nan")
        return output


@dataclass(frozen=True)
class Script:
    """A grammar for tests: at each place a set of allowed tokens.

    Attributes:
        allowed: token ids by number of tokens taken; the end is allowed exactly after the last.
        error_at: the number of tokens at which the mask raises `error`.
        refuse_at: the number of tokens at which the cursor refuses what its mask allowed.
    """

    allowed: tuple[frozenset[int], ...]
    error_at: int | None = None
    error: Exception | None = None
    refuse_at: int | None = None

    @staticmethod
    def literal(text: bytes) -> Script:
        return Script(tuple(frozenset({byte}) for byte in text))

    def cursor(self) -> ScriptCursor:
        return ScriptCursor(self)


class ScriptCursor:
    def __init__(self, script: Script):
        self._script = script
        self._taken = 0
        self.finished = False

    @property
    def accepting(self) -> bool:
        return self._taken == len(self._script.allowed)

    @property
    def place(self) -> int:
        return self._taken

    def forced_tokens(self, max_bytes: int) -> list[int]:
        forced = itertools.takewhile(lambda allowed: len(allowed) == 1, self._script.allowed[self._taken :])
        return [token for allowed in forced for token in allowed][:max_bytes]

    def rollback(self, n: int) -> None:
        self._taken -= n - self.finished if n else 0
        self.finished = self.finished and not n

    def fork(self) -> ScriptCursor:
        return copy.copy(self)

    def mask(self) -> Mask:
        if self._script.error_at == self._taken and self._script.error is not None:
            raise self._script.error
        allowed = [EOS] if self.accepting else sorted(self._script.allowed[self._taken])
        return Mask.of(NO_ROW, np.array(allowed, np.int32), 0, is_end=self.accepting)

    def advance(self, token_id: int) -> bool:
        if self.finished or self._script.refuse_at == self._taken:
            return False
        if self.accepting:
            self.finished = token_id == EOS
            return self.finished
        if token_id not in self._script.allowed[self._taken]:
            return False
        self._taken += 1
        return True


class FakeCompiler:
    """Compiles scripts at once, and leaves any other grammar to the test as a future."""

    def __init__(self) -> None:
        tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
        self.vocabulary = SimpleNamespace(
            vocab_size=NUM_TOKENS, eos_token_ids=frozenset({EOS}), token_bytes=tuple(tokens + [None] * (NUM_TOKENS - 256))
        )
        self.futures: dict[Any, Future[Any]] = {}
        self.waiting: dict[Any, list[Future[Any]]] = {}  # of those who asked

    def submit(self, grammar: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(grammar, Script):
            future.set_result(grammar)
        else:
            self.waiting.setdefault(grammar, []).append(future)
            self.futures.setdefault(grammar, Future()).add_done_callback(lambda made: _pass_on(made, future))
        return future


def _pass_on(made: Future[Any], future: Future[Any]) -> None:
    if future.set_running_or_notify_cancel():
        error = made.exception()
        future.set_result(made.result()) if error is None else future.set_exception(error)


def mask_of(token_ids: Iterable[int], num_tokens: int = NUM_TOKENS) -> np.ndarray:
    """[ceil(V / 32)] int32, written out bit by bit."""
    words = [0] * -(-num_tokens // 32)
    for token_id in token_ids:
        words[token_id >> 5] |= 1 << (token_id & 31)
    return np.array(words, np.uint32).view(np.int32)


def tiny_core(compiler: Compiler | None = None, model: FakeModel | None = None, **config: Any) -> EngineCore:
    settings: dict[str, Any] = {"max_num_seqs": 8, "kv_cache_memory_bytes": 1 << 20, "seed": 0, **config}
    return EngineCore(model or FakeModel(), EngineConfig(**settings), compiler or FakeCompiler())


def greedy(request_id: str, prompt: bytes | list[int], *, grammar: Any = None, priority: int = 0, **params: Any) -> Request:
    settings: dict[str, Any] = {"temperature": 0.0, "max_tokens": 16, "ignore_eos": True, **params}
    return Request(
        request_id=request_id, prompt_token_ids=list(prompt), params=SamplingParams(**settings), grammar=grammar, priority=priority
    )


@dataclass
class Answer:
    """All outputs of one request put together."""

    outputs: list[RequestOutput] = field(default_factory=list)

    @property
    def token_ids(self) -> tuple[int, ...]:
        return tuple(token for output in self.outputs for token in output.new_token_ids)

    @property
    def text(self) -> str:
        return "".join(output.text for output in self.outputs)

    @property
    def last(self) -> RequestOutput:
        return self.outputs[-1]

    @property
    def num_terminal(self) -> int:
        return sum(output.finished for output in self.outputs)


def drain(core: EngineCore, requests: Iterable[Request] = (), *, before_step: Callable[[int], None] | None = None) -> dict[str, Answer]:
    """Runs a core until nothing is open."""
    answers: dict[str, Answer] = {}
    for request in requests:
        core.add(request)
    step = 0
    while core.has_work:
        if before_step is not None:
            before_step(step)
        for output in core.step():
            answers.setdefault(output.request_id, Answer()).outputs.append(output)
        usage = core.stats.kv
        assert usage.free + usage.held + usage.cached == usage.total
        step += 1
    assert core.stats.kv.held == 0
    return answers
