from __future__ import annotations

from collections.abc import Callable

import pytest

from formcast.grammar.cfg import ContextFreeGrammar, compile_cfg

Accepts = Callable[[str], bool]


@pytest.fixture(scope="session")
def acceptor() -> Callable[[ContextFreeGrammar], Accepts]:
    """Compiles a grammar into a function that says whether a text as a whole satisfies it."""

    def make(grammar: ContextFreeGrammar) -> Accepts:
        machine, start = compile_cfg(grammar)

        def accepts(text: str) -> bool:
            state = machine.run(start, text.encode())
            return state >= 0 and machine.accepting(state)

        return accepts

    return make
