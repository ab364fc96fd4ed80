"""What becomes of a case: the constraint is made, then every text is tried."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from formcast import Grammar, GrammarError, Vocabulary, compile_grammar

from .cases import Case

# From harmless to unsound.
STATUSES = ("pass", "compile_error", "reject_valid", "timeout", "crash", "accept_invalid")
CPU_SECONDS = 20  # of one case; the budgets of a constraint should end it long before

Verdict = Callable[[str], bool]


class Outcome(NamedTuple):
    """Attributes:
    status: one of `STATUSES`.
    why: the error, or the first text with another verdict; shortened.
    """

    status: str
    why: str = ""


class _OutOfTime(BaseException):
    """Not an Exception, so that nothing on the way takes it for an error of its own."""


@contextmanager
def _cpu_time_bounded() -> Iterator[None]:
    def stop(signum: int, frame: Any) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome_of(case: Case, suite_options: Mapping[str, Any], judge: Callable[[Grammar], Verdict]) -> Outcome:
    """What becomes of a case.

    Args:
        case: the constraint and its texts.
        suite_options: keyword arguments for schemas.
        judge: makes the verdict on texts from a grammar; raises GrammarError where it can't be made.
    """
    try:
        with _cpu_time_bounded():
            try:
                admits = judge(_grammar(case, suite_options))
            except (GrammarError, NotImplementedError) as error:
                return Outcome("compile_error", _brief(error))
            for text, valid in case.tests:
                if admits(text) != valid:
                    return Outcome("reject_valid" if valid else "accept_invalid", _brief(text))
            return Outcome("pass")
    except _OutOfTime:
        return Outcome("timeout")
    except Exception as error:
        return Outcome("crash", _brief(error))


def _brief(what: object) -> str:
    text = repr(what)
    return text if len(text) <= 160 else text[:157] + "..."


def _grammar(case: Case, suite_options: Mapping[str, Any]) -> Grammar:
    if case.kind == "schema":
        return Grammar.json_schema(case.source, **suite_options)
    make = getattr(Grammar, case.kind, None)
    if make is None:
        raise NotImplementedError(f"there is no constructor for {case.kind}")
    return make(case.source, **case.options)


def by_bytes(grammar: Grammar) -> Verdict:
    """The automaton alone."""
    grammar.accepts("")
    return grammar.accepts


class ByTokens:
    """Token by token through the masks, as a model would have to write the text."""

    def __init__(self, tokenizer: Tokenizer, end: str):
        end_id = tokenizer.token_to_id(end)
        assert end_id is not None, f"the tokenizer has no token {end}"
        self._tokenizer = tokenizer
        self._end = end_id
        self._vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[end_id])
        self._mask = np.zeros(self._vocabulary.row_words, np.int32)

    def __call__(self, grammar: Grammar) -> Verdict:
        fsm = compile_grammar(grammar, self._vocabulary)

        def admits(text: str) -> bool:
            cursor = fsm.cursor()
            for token in self._tokenizer.encode(text, add_special_tokens=False).ids:
                cursor.fill_mask(self._mask)
                allowed = self._allows(token)
                assert cursor.advance(token) == allowed, "the mask and the step disagree"
                if not allowed:
                    return False
            cursor.fill_mask(self._mask)
            return self._allows(self._end)

        return admits

    def _allows(self, token: int) -> bool:
        return bool((int(self._mask[token >> 5]) >> (token & 31)) & 1)
