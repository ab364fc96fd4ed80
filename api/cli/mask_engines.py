"""Engines that `formcast bench mask` measures, under one protocol: formcast, and peers where they are installed."""

from __future__ import annotations

import importlib
import importlib.util
import json
from typing import Any, Protocol

import numpy as np

from ...fsm_cache import Vocabulary, compile_grammar
from .errors import UsageError
from .mask_cases import grammar_of


class Engine(Protocol):
    """Makes matchers; a mask is an int32 row, bit (t & 31) of word (t >> 5) set where token t is allowed."""

    def compile(self, kind: str, source: Any) -> Any:
        """Raises whatever the engine raises for what it can't do."""
        ...

    def start(self, compiled: Any) -> Any: ...
    def fill(self, matcher: Any, row: np.ndarray) -> None: ...
    def advance(self, matcher: Any, token_id: int) -> bool: ...


class Formcast:
    def __init__(self, vocabulary: Vocabulary, tokenizer: Any):
        self.vocabulary = vocabulary
        _ = vocabulary.trie, vocabulary.string_tables

    def compile(self, kind: str, source: Any) -> Any:
        return compile_grammar(grammar_of(kind, source), self.vocabulary)

    def start(self, compiled: Any) -> Any:
        return compiled.cursor()

    def fill(self, matcher: Any, row: np.ndarray) -> None:
        matcher.fill_mask(row)

    def advance(self, matcher: Any, token_id: int) -> bool:
        return matcher.advance(token_id)


class LLGuidance:
    def __init__(self, vocabulary: Vocabulary, tokenizer: Any):
        self._matcher = importlib.import_module("llguidance").LLMatcher
        hugging_face, self._numpy = (importlib.import_module(f"llguidance.{name}") for name in ("hf", "numpy"))
        eos = min(vocabulary.eos_token_ids)
        self._tokenizer = hugging_face.from_tokenizer(_fast(tokenizer, eos), n_vocab=vocabulary.vocab_size, eos_token=eos)

    def compile(self, kind: str, source: Any) -> Any:
        readers = {"schema": "grammar_from_json_schema", "regex": "grammar_from_regex", "lark": "grammar_from_lark"}
        if kind not in readers:
            raise ValueError(f"no reader for {kind}")
        text = json.dumps(source) if kind == "schema" else source
        matcher = self._matcher(self._tokenizer, getattr(self._matcher, readers[kind])(text))
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def start(self, compiled: Any) -> Any:
        return compiled.deep_copy()

    def fill(self, matcher: Any, row: np.ndarray) -> None:
        self._numpy.fill_next_token_bitmask(matcher, row[None, :], 0)

    def advance(self, matcher: Any, token_id: int) -> bool:
        return matcher.consume_token(token_id)


class XGrammar:
    def __init__(self, vocabulary: Vocabulary, tokenizer: Any):
        self._xgrammar, self._torch = (importlib.import_module(name) for name in ("xgrammar", "torch"))
        self._eos = min(vocabulary.eos_token_ids)
        info = self._xgrammar.TokenizerInfo.from_huggingface(
            _fast(tokenizer, self._eos), vocab_size=vocabulary.vocab_size, stop_token_ids=[self._eos]
        )
        self._compiler = self._xgrammar.GrammarCompiler(info, max_threads=1)

    def compile(self, kind: str, source: Any) -> Any:
        if kind == "schema":
            return self._compiler.compile_json_schema(json.dumps(source), any_whitespace=True, strict_mode=False)
        return self._compiler.compile_regex(source) if kind == "regex" else self._compiler.compile_grammar(source)

    def start(self, compiled: Any) -> Any:
        return self._xgrammar.GrammarMatcher(compiled)

    def fill(self, matcher: Any, row: np.ndarray) -> None:
        if matcher.is_terminated():
            row[:] = 0
            row.view(np.uint32)[self._eos >> 5] = 1 << (self._eos & 31)
        else:
            matcher.fill_next_token_bitmask(self._torch.from_numpy(row[None, :]))

    def advance(self, matcher: Any, token_id: int) -> bool:
        return matcher.accept_token(token_id)


_ENGINES = {"formcast": Formcast, "llguidance": LLGuidance, "xgrammar": XGrammar}
ENGINE_NAMES = tuple(_ENGINES)


def make_engine(name: str, vocabulary: Vocabulary, tokenizer: Any) -> Engine:
    """Raises UsageError when the engine is not installed."""
    try:
        return _ENGINES[name](vocabulary, tokenizer)
    except ImportError as error:
        raise UsageError(f"{name} is not installed: {error}") from error


def installed() -> list[str]:
    """Engines that can be measured here, ours first."""
    return [name for name in ENGINE_NAMES if name == "formcast" or importlib.util.find_spec(name) is not None]


def _fast(tokenizer: Any, eos: int) -> Any:
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.eos_token = tokenizer.id_to_token(eos)
    return fast
