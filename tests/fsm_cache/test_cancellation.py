"""Compilation that is no longer wanted, with real threads."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, wait

import pytest
from toy_vocabulary import mask_of, vocabulary

from formcast import Grammar, Limits, compile_grammar
from formcast.fsm_cache import FsmCompiler
from formcast.grammar.errors import GrammarError
from formcast.grammar.grammar import Compiled

VOCAB = vocabulary()
ENDLESS = Grammar.json_schema({"type": "string", "allOf": [{"pattern": f"^(a|b)*{letter}(a|b){{40}}$"} for letter in "ab"]})
"""Nothing is both, but to see that takes 2^40 states."""
BOUNDLESS = Limits(max_steps=10**12, max_states=10**9)
"""With these, nothing but cancellation ends it before the machine does."""
SMALL = Grammar.json_schema({"type": "object", "properties": {"ab": {"type": "integer"}}})


class Watched:
    """A grammar that says when its compilation begins, and waits there to be let through."""

    def __init__(self, grammar: Grammar, key: str = "watched", *, gate: bool = False):
        self.started = threading.Event()
        self.gate = threading.Event()
        if not gate:
            self.gate.set()
        self.num_builds = 0
        self.grammar = Grammar(grammar.kind, key, self._build)
        self._inner = grammar

    def _build(self, limits: Limits, special_tokens: Mapping[str, int | None] | None) -> Compiled:
        self.num_builds += 1
        self.started.set()
        assert self.gate.wait(60)
        return self._inner.compile(limits, special_tokens)


def test_what_nobody_waits_for_stops_and_its_thread_goes_on() -> None:
    compiler = FsmCompiler(VOCAB, BOUNDLESS, max_workers=1)
    endless = Watched(ENDLESS)
    futures = [compiler.submit(endless.grammar) for _ in range(3)]
    assert endless.started.wait(60)
    assert all(future.cancel() for future in futures)
    assert compiler.submit(SMALL).result(60) is not None  # on the same thread
    assert (compiler.stats().cancelled, compiler.stats().failures, compiler.stats().live) == (1, 0, 1)
    compiler.close()


def test_the_others_are_still_served() -> None:
    compiler = FsmCompiler(VOCAB, max_workers=1)
    watched = Watched(SMALL, gate=True)
    gone, first, second = (compiler.submit(watched.grammar) for _ in range(3))
    assert watched.started.wait(60)
    assert gone.cancel() and gone.cancelled()
    late = compiler.submit(watched.grammar)
    watched.gate.set()
    assert first.result(60) is second.result(60) is late.result(60) is compiler.submit(watched.grammar).result(60)
    assert not first.cancel()
    with pytest.raises(CancelledError):
        gone.result(60)
    assert (watched.num_builds, compiler.stats().cancelled) == (1, 0)
    compiler.close()


def test_what_was_given_up_before_it_began_is_never_begun_and_can_be_asked_for_again() -> None:
    compiler = FsmCompiler(VOCAB, max_workers=1)
    before, unwanted = Watched(SMALL, "before", gate=True), Watched(SMALL, "unwanted")
    compiler.submit(before.grammar)
    assert before.started.wait(60)
    compiler.submit(unwanted.grammar).cancel()
    again = compiler.submit(unwanted.grammar)
    before.gate.set()
    fsm = again.result(60)
    assert unwanted.num_builds == 1
    assert mask_of(fsm.cursor()) == mask_of(compile_grammar(SMALL, VOCAB).cursor())
    compiler.close()


def test_closing_stops_what_is_being_made() -> None:
    compiler = FsmCompiler(VOCAB, BOUNDLESS, max_workers=1)
    endless = Watched(ENDLESS)
    futures = [compiler.submit(endless.grammar), compiler.submit(SMALL)]
    assert endless.started.wait(60)
    compiler.close()
    assert all(future.cancelled() for future in futures)


def test_an_error_reaches_everyone_who_still_waits() -> None:
    compiler = FsmCompiler(VOCAB, max_workers=1)
    watched = Watched(Grammar.json_schema({"type": "object", "required": ["a"], "properties": {"a": {"enum": []}}}), gate=True)
    gone, *waiting = (compiler.submit(watched.grammar) for _ in range(3))
    gone.cancel()
    watched.gate.set()
    for future in waiting:
        with pytest.raises(GrammarError):
            future.result(60)
    compiler.close()


def test_whoever_does_not_cancel_gets_the_right_automaton() -> None:
    """Eight threads ask for the same few grammars and change their minds."""
    compiler = FsmCompiler(VOCAB)
    words = ("é", "name", "12", "id", "0.5")
    grammars = [Grammar.json_schema({"type": "string", "pattern": f"^(ab|{word}){{{low},9}}$"}) for word in words for low in range(1, 9)]
    expected = [mask_of(compile_grammar(grammar, VOCAB).cursor()) for grammar in grammars]
    failures: list[object] = []

    def ask(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(40):
            index = rng.randrange(len(grammars))
            future = compiler.submit(grammars[index])
            if rng.random() < 0.7 and future.cancel():
                continue
            if mask_of(future.result(60).cursor()) != expected[index]:
                failures.append(index)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)
    wait([compiler.submit(grammar) for grammar in grammars], 60)
    assert compiler.stats().live == len(grammars)
    compiler.close()
