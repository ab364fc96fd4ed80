"""Questions of the automaton to recorded text: which value was read, and what follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .reading import Readings
from .values import Value


class ValueQuestion(Protocol):
    """What depends on a value."""

    @property
    def unlike(self) -> tuple[Value, ...]:
        """What the value may not be."""
        ...

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
        value = None if text is None else self._readings.last(self._readings.of(text))
        return [] if value in self._asked.unlike else [self._asked.answer(value)]

    def is_open(self, text: int, more: bytes) -> bool:
        value = self._readings.last(self._readings.longer(self._readings.of(text), more))
        return value in self._asked.unlike or self._asked.matters(value)
