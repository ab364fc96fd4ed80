"""Questions of the automaton to recorded text: which value was read, and what follows from that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Protocol

from .reading import Readings
from .values import Value, spelt


class ValueQuestion(Protocol):
    """What depends on a value."""

    @property
    def unlike(self) -> tuple[Value, ...]:
        """What the value may not be."""
        ...

    def answer(self, value: Value | None) -> tuple[int, int]:
        """`(OBJECT_AFTER or ARRAY_AFTER, frame)` behind the value, None: behind one that does not matter."""
        ...

    def candidates(self) -> Iterable[Value] | None:
        """Values for which the answer is another one than for a value that is not known; None: all."""
        ...


class TextQuestion:
    """Asks with the value that the recorded text ends with (`machine.Question`)."""

    def __init__(self, readings: Readings, asked: ValueQuestion):
        self._readings = readings
        self._asked = asked

    def answer(self, text: int | None) -> Sequence[tuple[int, int]]:
        value = None if text is None else self._readings.last(self._readings.of(text))
        return [] if value in self._asked.unlike else [self._asked.answer(value)]

    def doubts(self, text: int, *, inside: bool) -> Callable[[bytes], bool] | None:
        if self._candidates is None:
            return lambda more: True
        readings, candidates = self._readings, self._candidates
        reading = readings.of(text)
        begun = readings.begun(reading) if inside else None
        if begun is None:
            return lambda more: readings.last(readings.longer(reading, more)) in candidates
        is_string = begun[:1] == b'"'
        if not is_string and not any(value.kind != "string" for value in candidates):
            return None
        if not is_string or b"\\" in begun:
            return lambda more: readings.last(readings.longer(reading, more)) in candidates
        texts = [spelt(value) for value in candidates if value.kind == "string"]
        ends = frozenset(t[len(begun) :] for t in texts if t.startswith(begun))
        if not ends:
            return None

        def is_candidate(more: bytes) -> bool:
            content = more.partition(b'"')[0]
            if b"\\" in content:
                return readings.last(readings.longer(reading, more)) in candidates
            return content in ends

        return is_candidate

    @cached_property
    def _candidates(self) -> frozenset[Value] | None:
        candidates = self._asked.candidates()
        return None if candidates is None else frozenset((*candidates, *self._asked.unlike))
