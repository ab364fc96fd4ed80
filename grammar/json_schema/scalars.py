"""Automata of scalar values other than strings: words, integers without point, and items that must differ."""

from __future__ import annotations

from collections.abc import Sequence

from ..languages import CharAutomaton, Edge

_MAX_COUNTED_STATES = 5_000


class Word:
    """One ASCII word."""

    start = 0

    def __init__(self, word: str):
        self._word = word

    def accepting(self, q: int) -> bool:
        return q == len(self._word)

    def edges(self, q: int) -> tuple[Edge, ...]:
        return ((ord(self._word[q]), ord(self._word[q]), q + 1),) if q < len(self._word) else ()

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        return 1 if cap >= 1 else None


WORDS: dict[str, CharAutomaton] = {word: Word(word) for word in ("null", "true", "false")}


class PlainDigits:
    """Spellings of a set of integers without point and exponent.

    Every integer has one, and it begins like its other spellings up to their point or exponent, so leaving those edges out makes no
    dead end.

    Args:
        integers: automaton of the set.
        one_zero: leave out `-0`, so that equal values have equal spellings. `negatives` tells whether anything else is negative.
    """

    def __init__(self, integers: CharAutomaton, *, one_zero: bool = False, negatives: bool = True):
        self._integers = integers
        self._one_zero = one_zero
        self._negatives = negatives
        self._counts = TailCounter(self)

    @property
    def start(self) -> int:
        return self._integers.start

    def accepting(self, q: int) -> bool:
        return self._integers.accepting(q)

    def edges(self, q: int) -> tuple[Edge, ...]:
        edges = tuple(edge for edge in self._integers.edges(q) if chr(edge[0]) in "-0123456789")
        if not self._one_zero:
            return edges
        if q == self.start:
            return tuple(edge for edge in edges if self._negatives or edge[0] != ord("-"))
        minus = next((target for lo, _, target in self._integers.edges(self.start) if lo == ord("-")), None)
        if q != minus:
            return edges
        return tuple((max(lo, ord("1")), hi, target) for lo, hi, target in edges if hi > ord("0"))

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        count = self._counts.count(q)
        return count if count is not None and count <= cap else None


class TidyIntegers:
    """Spellings of a set of integers without exponent, without `-0`, and with at most one zero behind a point.

    What a model writes: after `1.` it can only go on to `1.0`, where the full language would lead it into `1.5e1`, or into zeros
    without end.

    Args:
        integers: automaton of the set.
        negatives: whether a number below zero is in it.
    """

    def __init__(self, integers: CharAutomaton, *, negatives: bool):
        self._integers = integers
        self._plain = PlainDigits(integers, one_zero=True, negatives=negatives)

    @property
    def start(self) -> int:
        return 3 * self._integers.start

    def accepting(self, q: int) -> bool:
        inner, part = divmod(q, 3)
        return part != _AT_POINT and self._integers.accepting(inner)

    def edges(self, q: int) -> tuple[Edge, ...]:
        inner, part = divmod(q, 3)
        if part == _BEHIND_ZERO:
            return ()
        if part == _AT_POINT:
            return tuple((0x30, 0x30, 3 * t + _BEHIND_ZERO) for lo, _, t in self._integers.edges(inner) if lo == 0x30)
        digits = [(lo, hi, 3 * t) for lo, hi, t in self._plain.edges(inner)]
        if self._integers.accepting(inner):
            digits += [(lo, hi, 3 * t + _AT_POINT) for lo, hi, t in self._integers.edges(inner) if lo == ord(".")]
        return tuple(sorted(digits))

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        return None


_AT_POINT, _BEHIND_ZERO = 1, 2  # parts of a state of TidyIntegers; 0: before the point


class NonzeroNumber:
    """Spellings of every number but zero (RFC 8259 section 6), with exponents of any length."""

    start = 0
    _DIGIT, _ONE_TO_NINE, _E = ((0x30, 0x39),), ((0x31, 0x39),), ((0x45, 0x45), (0x65, 0x65))
    # state: ((characters, target), ...); a number whose digits so far are zeros is apart from others
    _STATES = (
        ((((0x2D, 0x2D),), 1), (((0x30, 0x30),), 2), (_ONE_TO_NINE, 3)),
        ((((0x30, 0x30),), 2), (_ONE_TO_NINE, 3)),
        ((((0x2E, 0x2E),), 4),),
        ((((0x2E, 0x2E),), 5), (_DIGIT, 3), (_E, 7)),
        ((((0x30, 0x30),), 4), (_ONE_TO_NINE, 6)),
        ((_DIGIT, 6),),
        ((_DIGIT, 6), (_E, 7)),
        ((((0x2B, 0x2B), (0x2D, 0x2D)), 8), (_DIGIT, 9)),
        ((_DIGIT, 9),),
        ((_DIGIT, 9),),
    )
    _COMPLETE = (3, 6, 9)

    def accepting(self, q: int) -> bool:
        return q in self._COMPLETE

    def edges(self, q: int) -> tuple[Edge, ...]:
        return tuple(sorted((lo, hi, target) for chars, target in self._STATES[q] for lo, hi in chars))

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        return None


class Alternatives:
    """Union of automata that begin with different characters."""

    start = 0

    def __init__(self, parts: Sequence[CharAutomaton]):
        self._parts = parts
        self._states: list[tuple[int, int]] = [(-1, -1)]
        self._ids: dict[tuple[int, int], int] = {}

    def _id(self, part: int, q: int) -> int:
        state = self._ids.get((part, q))
        if state is None:
            state = self._ids[part, q] = len(self._states)
            self._states.append((part, q))
        return state

    def accepting(self, q: int) -> bool:
        part, inner = self._states[q]
        return part >= 0 and self._parts[part].accepting(inner)

    def edges(self, q: int) -> tuple[Edge, ...]:
        part, inner = self._states[q]
        if part >= 0:
            return tuple((lo, hi, self._id(part, target)) for lo, hi, target in self._parts[part].edges(inner))
        first = [(lo, hi, self._id(k, target)) for k, p in enumerate(self._parts) for lo, hi, target in p.edges(p.start)]
        return tuple(sorted(first))

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        part, inner = self._states[q]
        return self._parts[part].tail_count(inner, cap) if part >= 0 else None


class TailCounter:
    """Counts the strings accepted from a state; exact for finite languages of moderate size."""

    def __init__(self, automaton: CharAutomaton):
        self._automaton = automaton
        self._counts: dict[int, int | None] = {}

    def count(self, q: int) -> int | None:
        """None when the number is infinite or not found within the budget."""
        stack, path = [q], set[int]()
        while stack:
            state = stack[-1]
            if state in self._counts:
                stack.pop()
                continue
            targets = [target for _, _, target in self._automaton.edges(state)]
            waiting = [t for t in targets if t not in self._counts]
            if state in path or not waiting:
                path.discard(state)
                self._counts[state] = None if waiting else self._sum(state)
                stack.pop()
            elif any(t in path or t == state for t in waiting) or len(path) > _MAX_COUNTED_STATES:
                for open_state in (*path, state):
                    self._counts[open_state] = None
                return self._counts.get(q)
            else:
                path.add(state)
                stack.extend(waiting)
        return self._counts[q]

    def _sum(self, state: int) -> int | None:
        total = int(self._automaton.accepting(state))
        for lo, hi, target in self._automaton.edges(state):
            below = self._counts[target]
            if below is None:
                return None
            total += (hi - lo + 1) * below
        return total
