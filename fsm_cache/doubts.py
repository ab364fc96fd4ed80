"""Which tokens a mask leaves to be tried one by one, because they depend on the text before it."""

from __future__ import annotations

from collections.abc import Callable

from ..grammar.machine import Machine


class Doubts:
    """What is in doubt in one mask.

    Args:
        machine: the byte automaton.
        text: the text recorded before the mask.
        state: the state of the mask, without that text.

    Attributes:
        is_recorded: there is such a text.
        met: whether anything depended on it.
        settled: questions whose answer does not depend on it, given how it ends.
    """

    def __init__(self, machine: Machine, text: int, state: int):
        self._machine = machine
        self._text = text
        self._known: dict[int, Callable[[bytes], bool]] = {}
        self.is_recorded = True
        self.met = False
        self.settled: set[int] = set()
        for question in machine.questions_around(state):
            doubts = machine.doubts(question, text, inside=True)
            if doubts is None:
                self.settled.add(question)
            else:
                self._known[question] = doubts

    def arise(self, question: int, begun: bytes) -> bool:
        """Whether the answer may depend on the value that ends with `begun`, the beginning of a token."""
        if question in self.settled:
            return False
        self.met = True
        doubts = self._known.get(question)
        if doubts is None:
            found = self._machine.doubts(question, self._text, inside=False)
            assert found is not None, "only what ends within a value can be settled"
            doubts = self._known[question] = found
        return doubts(begun)


class NoDoubts:
    """What is in doubt outside recorded text: whatever a question is asked about, since the value began within the token."""

    is_recorded = met = False
    settled: frozenset[int] = frozenset()

    def arise(self, question: int, begun: bytes) -> bool:
        return True


NO_DOUBTS = NoDoubts()
