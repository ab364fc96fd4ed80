"""Questions of the automaton to recorded text: which value was read, and what follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .reading import Readings
from .values import Value


class ValueQuestion(Protocol):
    """What depends on a value."""

    def answer(self, value: Value | None) -> tuple[int, int]:
        """`(OBJECT_AFTER or ARRAY_AFTER, frame)` behind the value, None: behind one that does not matter."""
        ...

    def matters(self, value: Value) -> bool:
        """Whether the answer is another one than for a value that is not known."""
        ...


class TextQuestion:
    """Asks with the value that the recorded text ends with (`machine.Question`)."""

    def __init__(self, readings: Readings, asked: ValueQuestion):
        self._readings = readings
        self._asked = asked

    def answer(self, text: int | None) -> Sequence[tuple[int, int]]:
        return [self._asked.answer(None if text is None else self._readings.last(self._readings.of(text)))]

    def is_open(self, text: int, more: bytes) -> bool:
        readings = self._readings
        return self._asked.matters(readings.last(readings.longer(readings.of(text), more)))
