"""Why a text is not in a grammar: the place, what could have stood there, and what stands there instead."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from .errors import LimitError
from .machine import Machine
from .machine_layout import DEAD
from .text_place import Expects, Place, place_after

_CHUNK = 4_096  # bytes stepped over at once
_MAX_LISTED = 12  # alternatives told one by one
_MAX_LOOKED_AT = 400  # states visited to list them
_MAX_LENGTH = 80  # bytes of a listed alternative
_MAX_CHARACTERS = 6  # single characters told one by one
_SPACE = frozenset(b" \t\n\r")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The first place at which a text leaves its grammar.

    Attributes:
        position: offset in code points; the length of the text if that is only too short.
        line, column: the same, counted from 1.
        pointer: RFC 6901 pointer of the value that is being read there; None for grammars of other texts than JSON.
        expected: what could stand there, in words. Empty where that takes too long to find out.
        rest: the text from there on.
    """

    position: int
    line: int
    column: int
    pointer: str | None
    expected: tuple[str, ...]
    rest: str

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}"
        if self.pointer is not None:
            place += f", at {self.pointer or 'the root'}"
        found = "the text ends" if not self.rest else f"found {_shortened(self.rest)}"
        return f"{place}: {found}" + (f", expected {listing(self.expected)}" if self.expected else "")


def listing(alternatives: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = alternatives
    return f"{', '.join(most)} or {last}" if most else last


def _shortened(text: str) -> str:
    return json.dumps(text if len(text) <= 40 else text[:40] + "...", ensure_ascii=False)


def diagnose(machine: Machine, start: int, text: str, *, is_json: bool) -> Failure | None:
    """Why `text` is not accepted from `start`; None if it is. Hold the machine's lock.

    Raises:
        LimitError: a budget is reached before the place is found.
    """
    good = len(text)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        good = error.start
        data = text[:good].encode()
    read, state = _longest_prefix(machine, start, data)
    if read < len(data):
        good = len(data[:read].decode(errors="ignore"))
        _, state = _longest_prefix(machine, start, text[:good].encode())
    elif good == len(text) and machine.accepting(state):
        return None
    before = text[:good]
    place = _place_of_fault(machine, state, before, text[good : good + 1]) if is_json else None
    return Failure(
        position=good,
        line=before.count("\n") + 1,
        column=good - (before.rfind("\n") + 1) + 1,
        pointer=None if place is None else place.pointer,
        expected=_Explorer(machine).words(state, place),
        rest=text[good:],
    )


def _place_of_fault(machine: Machine, state: int, before: str, fault: str) -> Place:
    place = place_after(before)
    ends_scalar = bool(fault) and fault in ",]} \t\n\r"
    if place.expects is Expects.IN_SCALAR and ends_scalar and any(machine.run(state, end) != DEAD for end in (b",", b"]", b"}")):
        return place.behind_scalar()  # the number or word is complete; it is what encloses it that may not go on like this
    return place


def _longest_prefix(machine: Machine, state: int, data: bytes) -> tuple[int, int]:
    """How many bytes can be read, and the state behind them."""
    read = 0
    while read < len(data):
        after = machine.run(state, data[read : read + _CHUNK])
        if after == DEAD:
            break
        state, read = after, min(read + _CHUNK, len(data))
    low, high = read, min(read + _CHUNK, len(data))  # so many can be read; so many cannot
    while high - low > 1:
        middle = (low + high) // 2
        after = machine.run(state, data[low:middle])
        if after == DEAD:
            high = middle
        else:
            state, low = after, middle
    return low, state


class _TooMany(Exception):
    """There is more to list than a person would read."""


class _Explorer:
    """Tells in words what can follow a state."""

    def __init__(self, machine: Machine):
        self._machine = machine
        self._looked_at = 0

    def words(self, state: int, place: Place | None) -> tuple[str, ...]:
        try:
            found = self._of_text(state) if place is None else self._of_json(state, place)
            if self._machine.accepting(state):
                found.append("the end of the text")
        except (LimitError, _TooMany):
            return ()
        return tuple(dict.fromkeys(found))

    def _next(self, state: int) -> dict[int, int]:
        """States by next byte."""
        self._looked_at += 1
        if self._looked_at > _MAX_LOOKED_AT:
            raise _TooMany
        targets = ((byte, self._machine.run(state, bytes((byte,)))) for byte in range(256))
        return {byte: target for byte, target in targets if target != DEAD}

    # --- JSON ------------------------------------------------------------------------------------------------------

    def _of_json(self, state: int, place: Place) -> list[str]:
        if place.expects in (Expects.IN_KEY, Expects.IN_STRING):
            return self._of_string(state, place)
        targets = {byte: target for byte, target in self._next(state).items() if byte not in _SPACE}
        found: list[str] = []
        if ord('"') in targets:
            is_key = place.expects in (Expects.FIRST_KEY, Expects.KEY)
            found += self._keys(targets[ord('"')]) if is_key else self._strings(targets[ord('"')], "a string")
        if place.expects is Expects.VALUE:
            found += self._of_value(targets)
        elif place.expects is Expects.IN_SCALAR:
            found += _characters({b: t for b, t in targets.items() if b not in b",]}"})
        if ord(",") in targets:
            found += self._after_comma(targets[ord(",")], place)
        found += [f'"{chr(byte)}"' for byte in b":]}" if byte in targets and f'"{chr(byte)}"' not in found]
        return found

    def _of_value(self, targets: dict[int, int]) -> list[str]:
        found: list[str] = []
        digits = [byte for byte in b"0123456789" if byte in targets]
        if len(digits) == 10:
            found.append("a number")
        elif digits or ord("-") in targets:
            found += [f"a number that begins with {listing(chr(b) for b in sorted((*digits, *(b'-' if ord('-') in targets else b''))))}"]
        named = {"t": "true", "f": "false", "n": "null", "[": "an array", "{": "an object"}
        return found + [words for begin, words in named.items() if ord(begin) in targets]

    def _after_comma(self, state: int, place: Place) -> list[str]:
        if not place.in_object:
            return ['","']
        quote = next((target for byte, target in self._next(state).items() if byte == ord('"')), None)
        keys = self._keys(quote) if quote is not None else []
        return [f'"," and {keys[0]}'] if keys and keys != ["a key"] else ['","']

    def _of_string(self, state: int, place: Place) -> list[str]:
        ends = self._endings(state)
        if ends is None:
            what = "another character of the key" if place.expects is Expects.IN_KEY else "another character of the string"
            targets = self._next(state)
            quote = ["the closing quotation mark"] if ord('"') in targets else []
            others = {byte: target for byte, target in targets.items() if byte not in b'"\\'}
            return (_characters(others) if len(others) <= 64 else [what] if others else []) + quote
        whole = [f'"{place.partial}{end}"' for end in ends]
        return [_one_of("key", whole)] if place.expects is Expects.IN_KEY else whole

    def _keys(self, state: int) -> list[str]:
        ends = self._endings(state)
        return ["a key"] if ends is None else [_one_of("key", [f'"{end}"' for end in ends])]

    def _strings(self, state: int, otherwise: str) -> list[str]:
        ends = self._endings(state)
        return [otherwise] if ends is None else [f'"{end}"' for end in ends]

    def _endings(self, state: int) -> list[str] | None:
        """What completes the open string, unescaped as far as possible; None if there are many ways."""
        found: list[str] = []
        stack = [(state, b"")]
        looked_at = 0
        while stack:
            at, text = stack.pop()
            looked_at += 1
            if looked_at > _MAX_LOOKED_AT // 2 or len(text) > _MAX_LENGTH:
                return None
            targets = self._next(at)
            plain = {byte: target for byte, target in targets.items() if byte != ord("\\")}
            if ord('"') in plain:
                found.append(text.decode(errors="replace"))
                if len(found) > _MAX_LISTED:
                    return None
            if len(plain) > 40:
                return None
            inner = plain if plain else targets  # an escape only where nothing else will do
            stack.extend((target, text + bytes((byte,))) for byte, target in sorted(inner.items(), reverse=True) if byte != ord('"'))
        return found

    # --- other texts -----------------------------------------------------------------------------------------------

    def _of_text(self, state: int) -> list[str]:
        targets = self._next(state)
        if len(targets) > _MAX_CHARACTERS:
            return _characters(targets)
        found: list[str] = []
        for byte, target in targets.items():
            text = (bytes((byte,)) + self._forced(target)).decode(errors="ignore")
            found.append(json.dumps(text, ensure_ascii=False) if text else "a character beyond ASCII")
        return found

    def _forced(self, state: int) -> bytes:
        """Bytes that must follow."""
        text = b""
        while len(text) < _MAX_LENGTH and not self._machine.accepting(state):
            targets = self._next(state)
            if len(targets) != 1:
                break
            byte, state = next(iter(targets.items()))
            text += bytes((byte,))
        return text


def _one_of(what: str, texts: list[str]) -> str:
    return f"the {what} {texts[0]}" if len(texts) == 1 else f"one of the {what}s {', '.join(texts)}"


def _characters(targets: Iterable[int]) -> list[str]:
    """Single bytes as characters, in groups where there are whole ones."""
    left = set(targets)
    found: list[str] = []
    for words, group in (("a digit", b"0123456789"), ("a letter", bytes((*range(0x41, 0x5B), *range(0x61, 0x7B))))):
        if left >= set(group):
            found.append(words)
            left -= set(group)
    beyond = any(byte >= 0x80 for byte in left)
    runs = _runs(byte for byte in left if byte < 0x80)
    if len(runs) > _MAX_LISTED:
        return [*found, "another character"]
    found += [_quoted(low) if low == high else f"{_quoted(low)} to {_quoted(high)}" for low, high in runs]
    return [*found, "a character beyond ASCII"] if beyond else found


def _runs(values: Iterable[int]) -> list[tuple[int, int]]:
    """Consecutive values as ranges; two neighbours are no range."""
    runs: list[tuple[int, int]] = []
    for value in sorted(values):
        if runs and runs[-1][1] == value - 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return [r for low, high in runs for r in ([(low, high)] if high - low != 1 else [(low, low), (high, high)])]


def _quoted(byte: int) -> str:
    return "'\"'" if byte == ord('"') else json.dumps(chr(byte))
