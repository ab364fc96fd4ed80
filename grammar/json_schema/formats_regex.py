"""The format `regex`: patterns of ECMA-262 with the flag `u` (section 22.2.1), read character by character.

Left out are names of groups beyond ASCII or longer than `_MAX_NAME`, equal names in different alternatives, modifiers, ranges that begin
with a raw character beyond ASCII or with half of a surrogate pair, groups nested more than `_MAX_NESTING` deep, references to groups
above 99, and counts of more than five digits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from ..languages import MAX_CODE_POINT, Run
from ..regex import CharSet
from ..regex.properties import property_texts

_MAX_NESTING = 100
_MAX_NAME = 32
_MAX_GROUP = 99
_MAX_COUNT_DIGITS = 5
_LAST_BEFORE_SURROGATES, _LAST_SURROGATE = 0xD7FF, 0xDFFF

_Ranges: TypeAlias = tuple[tuple[int, int], ...]


def _of(text: str) -> _Ranges:
    return tuple((ord(char), ord(char)) for char in text)


_SYNTAX = "^$\\.*+?()[]{}|"
_LITERAL = (~CharSet.of(_of(_SYNTAX))).ranges
_IN_CLASS = ~CharSet.of(_of("\\]-"))
_WIDE = _IN_CLASS & CharSet.of(((0x80, MAX_CODE_POINT),))
_DIGITS, _LETTERS = ((0x30, 0x39),), ((0x41, 0x5A), (0x61, 0x7A))
_HEX = (*_DIGITS, (0x41, 0x46), (0x61, 0x66))
_BEHIND_NAME = (*_DIGITS, *_of("=!>"))
_NAME_START, _NAME_PART = (*_LETTERS, *_of("$_")), (*_DIGITS, *_LETTERS, *_of("$_"))
_HYPHEN = 0x2D
_CONTROLS = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}


class _Class(NamedTuple):
    """Inside of brackets, between two characters.

    Attributes:
        kind: "new": behind the bracket; "char": behind the character `first`; "other": behind what is no single, known character;
            "range": behind `first` and a hyphen; "end": behind a hyphen that can only be the last character; "fresh": elsewhere.
        first: where a range may begin or has begun.
    """

    kind: str
    first: int = 0


_FRESH = _Class("fresh")


class _At(NamedTuple):
    """Where a pattern stands.

    Attributes:
        kind: "term": what stands before can't be quantified; "atom": it can; "quantified": `?` may follow; "number": behind the number of
            a group; "zero": behind `\\0`; else inside of something: "open" `(`, "special" `(?`, "behind" `(?<`, "name" `(?<n`, "refer"
            `\\k`, "reference" `\\k<n`, "escape" `\\`, "control" `\\c`, "hex" `\\x`, "braced" `\\u{`, "property" `\\p`, "class", "low"
            and "high" counts.
        text: what is read of a name or of digits.
        value: what a number is so far.
        left: hexadecimal digits to come; the lower count.
        inside: the class that the place is in.
    """

    kind: str
    text: str = ""
    value: int = 0
    left: int = 0
    inside: _Class | None = None


class _Pattern(NamedTuple):
    """A pattern that is begun.

    Attributes:
        at: where it stands.
        open: for each open group whether it may be quantified.
        groups: how many capturing groups have begun.
        wanted: the largest number of a group that is referred to.
        names: names of groups, sorted.
        missing: names that are referred to and not there yet, sorted.
    """

    at: _At
    open: tuple[bool, ...] = ()
    groups: int = 0
    wanted: int = 0
    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def to(self, kind: str, text: str = "", **fields: object) -> _Pattern:
        return self._replace(at=_At(kind, text, **fields))  # pyright: ignore[reportArgumentType]

    def opened(self, *, quantifiable: bool, captures: bool = False) -> _Pattern:
        groups = min(self.groups + captures, _MAX_GROUP)
        return self._replace(at=_TERM, open=(*self.open, quantifiable), groups=groups)


_Moves: TypeAlias = Iterator[tuple[_Ranges, _Pattern]]
_TERM = _At("term")
_BETWEEN = ("term", "atom", "quantified", "number")  # places between two terms; so is "zero" outside of classes


class EcmaPattern:
    """Patterns. Everything that is begun can be finished: groups and classes closed, groups that are referred to added."""

    start = _Pattern(_TERM)

    def accepting(self, state: _Pattern) -> bool:
        between = state.at.kind in _BETWEEN or (state.at.kind == "zero" and state.at.inside is None)
        return between and not state.open and not state.missing and state.wanted <= state.groups

    def moves(self, state: _Pattern) -> _Moves:
        return _MOVES[state.at.kind](state)

    def is_live(self, state: _Pattern) -> bool:
        return True

    def shortest(self, state: _Pattern) -> int:
        """Brackets to close and groups to add, but for the one that is begun."""
        names = sorted(len(name) + len("(?<>)") for name in state.missing)
        groups = max(0, state.wanted - state.groups - len(names))
        if state.at.kind in ("open", "special", "behind", "name"):
            names, groups = names[:-1], max(0, groups - 1)
        return len(state.open) + sum(names) + 2 * groups

    def at_most(self, state: _Pattern, length: int) -> None:
        return None

    def beside_others(self, state: _Pattern) -> _Pattern:
        return state

    def run(self, state: _Pattern) -> Run | None:
        kind, text, value, left, inside = state.at
        if kind in ("term", "quantified", "open"):
            return Run(_LITERAL, None)
        if kind == "class" and inside is not None and inside.kind not in ("range", "end"):
            return Run(_IN_CLASS.ranges, None)
        if kind in ("name", "reference", "behind"):
            return _run(_NAME_PART if text else _NAME_START, _MAX_NAME - len(text) - 1, _BEHIND_NAME)
        if kind == "low":
            return _run(_DIGITS, _MAX_COUNT_DIGITS - len(text), _of(",}"))
        if kind in ("hex", "braced") and _least(state) == 0:
            fitting = left if kind == "hex" else next(n for n in range(6) if (value + 1) << 4 * (n + 1) > MAX_CODE_POINT + 1)
            return _run(_HEX, fitting, _of("{}"))
        return None


def _run(ranges: _Ranges, count: int, others: _Ranges) -> Run | None:
    return Run(ranges, count, others) if count > 0 else None


def _between(state: _Pattern) -> _Moves:
    kind = state.at.kind
    yield _LITERAL, state.to("atom")
    yield _of("."), state.to("atom")
    yield _of("^$|"), state.to("term")
    yield _of("\\"), state.to("escape")
    yield _of("["), state.to("class", inside=_Class("new"))
    if len(state.open) < _MAX_NESTING:
        yield _of("("), state.to("open")
    if state.open:
        yield _of(")"), state.to("atom" if state.open[-1] else "term")._replace(open=state.open[:-1])
    if kind in ("atom", "number"):
        yield _of("*+?"), state.to("quantified")
        yield _of("{"), state.to("low")
    elif kind == "quantified":
        yield _of("?"), state.to("term")


# --- groups ------------------------------------------------------------------------------------------------------------


def _open(state: _Pattern) -> _Moves:
    yield _of("?"), state.to("special")
    yield from _between(state.opened(quantifiable=True, captures=True))


def _special(state: _Pattern) -> _Moves:
    yield _of(":"), state.opened(quantifiable=True)
    yield _of("=!"), state.opened(quantifiable=False)
    yield _of("<"), state.to("behind")


def _behind(state: _Pattern) -> _Moves:
    yield _of("=!"), state.opened(quantifiable=False)
    yield from _name_moves(state, "name")


def _name(state: _Pattern) -> _Moves:
    name = state.at.text
    yield from _name_moves(state, "name")
    if name not in state.names:
        missing = tuple(other for other in state.missing if other != name)
        named = state.opened(quantifiable=True, captures=True)
        yield _of(">"), named._replace(names=tuple(sorted((*state.names, name))), missing=missing)


def _reference(state: _Pattern) -> _Moves:
    name = state.at.text
    yield from _name_moves(state, "reference")
    if name:
        missing = state.missing if name in state.names else tuple(sorted({*state.missing, name}))
        yield _of(">"), state.to("atom")._replace(missing=missing)


def _name_moves(state: _Pattern, kind: str) -> _Moves:
    name = state.at.text
    for low, high in _NAME_PART if name else _NAME_START:
        for code in range(low, high + 1):
            longer = name + chr(code)
            if len(longer) < _MAX_NAME or (len(longer) == _MAX_NAME and longer not in state.names):
                yield ((code, code),), state.to(kind, longer)


# --- counts ------------------------------------------------------------------------------------------------------------


def _low(state: _Pattern) -> _Moves:
    digits = state.at.text
    if len(digits) < _MAX_COUNT_DIGITS:
        for digit in "0123456789":
            yield _of(digit), state.to("low", digits + digit)
    if digits:
        yield _of(","), state.to("high", left=int(digits))
        yield _of("}"), state.to("quantified")


def _high(state: _Pattern) -> _Moves:
    _, _, value, low, _ = state.at
    digits = len(state.at.text)  # which ones they are does not matter beyond their value up to `low`
    if digits < _MAX_COUNT_DIGITS:
        for digit in range(10):
            longer = min(10 * value + digit, low)
            if (longer + 1) * 10 ** (_MAX_COUNT_DIGITS - digits - 1) > low:
                yield _of(str(digit)), state.to("high", "0" * (digits + 1), value=longer, left=low)
    if not digits or value >= low:
        yield _of("}"), state.to("quantified")


# --- classes -----------------------------------------------------------------------------------------------------------


def _class(state: _Pattern) -> _Moves:
    inside = state.at.inside
    assert inside is not None
    yield _of("]"), state.to("atom")
    if inside.kind == "end":
        return
    yield _of("\\"), state.to("escape", inside=inside)
    if inside.kind == "range":
        yield (_IN_CLASS & CharSet.of(((inside.first, MAX_CODE_POINT),))).ranges, state.to("class", inside=_FRESH)
        if inside.first <= _HYPHEN:
            yield _of("-"), state.to("class", inside=_FRESH)
        return
    for code in range(0x80):
        if code in _IN_CLASS and not (inside.kind == "new" and code == ord("^")):
            yield ((code, code),), state.to("class", inside=_Class("char", code))
    yield _WIDE.ranges, state.to("class", inside=_Class("other"))
    if inside.kind == "new":
        yield _of("^"), state.to("class", inside=_FRESH)
    behind_hyphen = {"char": _Class("range", inside.first), "other": _Class("end")}.get(inside.kind, _Class("char", _HYPHEN))
    yield _of("-"), state.to("class", inside=behind_hyphen)


# --- escapes -----------------------------------------------------------------------------------------------------------


def _least(state: _Pattern) -> int:
    """The first character that an escape here may stand for: it may end a range."""
    inside = state.at.inside
    return inside.first if inside is not None and inside.kind == "range" else 0


def _char(state: _Pattern, code: int) -> _Pattern | None:
    """Behind an escape that stands for a character; None where it would end a range before its beginning."""
    inside = state.at.inside
    if inside is None:
        return state.to("atom")
    if inside.kind == "range":
        return state.to("class", inside=_FRESH) if code >= inside.first else None
    return state.to("class", inside=_Class("char", code))


def _set(state: _Pattern) -> _Pattern | None:
    """Behind an escape that stands for a set of characters, which can't be the end of a range."""
    inside = state.at.inside
    if inside is None:
        return state.to("atom")
    return None if inside.kind == "range" else state.to("class", inside=_Class("other"))


def _escape(state: _Pattern) -> _Moves:
    inside, least = state.at.inside, _least(state)
    codes = {**_CONTROLS, **{char: ord(char) for char in _SYNTAX + "/"}}
    if inside is not None:
        codes |= {"b": 0x08, "-": _HYPHEN}
    for char, code in codes.items():
        after = _char(state, code)
        if after is not None:
            yield _of(char), after
    after = _set(state)
    if after is not None:
        yield _of("dDsSwW"), after
        yield _of("pP"), state.to("property", inside=inside)
    if least <= 26:
        yield _of("c"), state.to("control", inside=inside)
    if least <= 0xFF:
        yield _of("x"), state.to("hex", left=2, inside=inside)
    yield _of("u"), state.to("hex", "u", left=4, inside=inside)
    if least == 0:
        yield _of("0"), state.to("zero", inside=_class_after(state, 0))
    if inside is None:
        yield _of("bB"), state.to("term")
        yield _of("k"), state.to("refer")
        for digit in range(1, 10):
            yield _of(str(digit)), _numbered(state, digit)


def _class_after(state: _Pattern, code: int) -> _Class | None:
    after = _char(state, code)
    return None if after is None else after.at.inside


def _zero(state: _Pattern) -> _Moves:
    """Behind `\\0`, where no digit may follow."""
    inside = state.at.inside
    moves = _between(state.to("atom")) if inside is None else _class(state.to("class", inside=inside))
    for ranges, after in moves:
        allowed = (CharSet.of(ranges) & ~CharSet.of(_DIGITS)).ranges
        if allowed:
            yield allowed, after


def _numbered(state: _Pattern, number: int) -> _Pattern:
    return state.to("number", value=number)._replace(wanted=max(state.wanted, number))


def _number(state: _Pattern) -> _Moves:
    longer = 10 * state.at.value
    if longer + 9 <= _MAX_GROUP:
        for digit in range(10):
            yield _of(str(digit)), _numbered(state, longer + digit)
    for ranges, after in _between(state):
        allowed = (CharSet.of(ranges) & ~CharSet.of(_DIGITS)).ranges
        if allowed:
            yield allowed, after


def _refer(state: _Pattern) -> _Moves:
    yield _of("<"), state.to("reference")


def _control(state: _Pattern) -> _Moves:
    for low, high in _LETTERS:
        for code in range(low, high + 1):
            after = _char(state, code % 32)
            if after is not None:
                yield ((code, code),), after


def _hex(state: _Pattern) -> _Moves:
    _, text, value, left, inside = state.at
    for digit in "0123456789ABCDEFabcdef":
        longer = 16 * value + int(digit, 16)
        if left > 1:
            if _last_within(longer, left - 1, inside) >= _least(state):
                yield _of(digit), state.to("hex", value=longer if inside else 0, left=left - 1, inside=inside)
            continue
        after = _set(state) if inside is not None and _LAST_BEFORE_SURROGATES < longer <= _LAST_SURROGATE else _char(state, longer)
        if after is not None:
            yield _of(digit), after
    if text:
        yield _of("{"), state.to("braced", inside=inside)


def _last_within(value: int, left: int, inside: _Class | None) -> int:
    """The last character that `left` more digits can lead to; one that may end a range, in a class."""
    low = value << 4 * left
    high = low | ((1 << 4 * left) - 1)
    if inside is None or not _LAST_BEFORE_SURROGATES < high <= _LAST_SURROGATE:
        return high
    return _LAST_BEFORE_SURROGATES if low <= _LAST_BEFORE_SURROGATES or inside.kind != "range" else -1


def _braced(state: _Pattern) -> _Moves:
    _, text, value, _, inside = state.at
    least = _least(state)
    for digit in "0123456789ABCDEFabcdef":
        longer = 16 * value + int(digit, 16)
        if longer <= MAX_CODE_POINT and (longer == 0 or _reaches(longer, least)):
            yield _of(digit), state.to("braced", "0", value=longer, inside=inside)
    after = _char(state, value) if text else None
    if after is not None:
        yield _of("}"), after


def _reaches(value: int, least: int) -> bool:
    """Whether `value`, not 0, or what more digits make of it can be a code point from `least` on."""
    last = value
    while 16 * value <= MAX_CODE_POINT:
        value, last = 16 * value, min(MAX_CODE_POINT, 16 * last + 15)
    return last >= least


def _property(state: _Pattern) -> _Moves:
    text, inside = state.at.text, state.at.inside
    if not text:
        yield _of("{"), state.to("property", "{", inside=inside)
        return
    texts, begun = property_texts(), text[1:]
    at = bisect_left(texts, begun)
    found: dict[str, None] = {}
    while at < len(texts) and texts[at].startswith(begun):
        if texts[at] == begun:
            after = _set(state)
            assert after is not None, "no property begins where it can't end"
            yield _of("}"), after
        else:
            found[texts[at][len(begun)]] = None
        at += 1
    for char in found:
        yield _of(char), state.to("property", text + char, inside=inside)


_MOVES: dict[str, Callable[[_Pattern], _Moves]] = {
    **dict.fromkeys(("term", "atom", "quantified"), _between),
    **{"open": _open, "special": _special, "behind": _behind, "name": _name, "refer": _refer, "reference": _reference},
    **{"low": _low, "high": _high, "class": _class},
    **{"escape": _escape, "zero": _zero, "number": _number, "control": _control, "hex": _hex, "braced": _braced, "property": _property},
}
