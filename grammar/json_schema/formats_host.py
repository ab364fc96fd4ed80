"""Host names of RFC 1123 with labels of IDNA: what `hostname` is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ..languages import Run
from .labels import ACE_PREFIX, MAX_LABEL, Reading, read_a_label

MAX_HOST = 253

_UPPER, _LOWER, _DIGIT, _HYPHEN, _DOT = (0x41, 0x5A), (0x61, 0x7A), (0x30, 0x39), (0x2D, 0x2D), (0x2E, 0x2E)
_ALNUM = (_DIGIT, _UPPER, _LOWER)
_MANY_HYPHENS, _TOO_MANY_HYPHENS = "-" * 4, "-" * 5
_X, _N = (0x78, 0x78), (0x6E, 0x6E)
_NO_X, _NO_N = (_UPPER, (0x61, 0x77), (0x79, 0x7A)), (_DIGIT, _UPPER, (0x61, 0x6D), (0x6F, 0x7A))
_FORM_CHARS = "abcdefghijklmnopqrstuvwxyz0123456789-"

_LETTER = "\u00df"  # completes labels: it is valid everywhere, and among such characters the shortest to encode
_LETTER_ROOM = 4  # what it takes behind ASCII text of any length: a hyphen and three digits
_LETTERS_ROOM = 6  # what it takes on both sides: two digits more
_INNER = 4  # characters after which no hyphen is the third or fourth one

_Ranges: TypeAlias = tuple[tuple[int, int], ...]


class _Plain(NamedTuple):
    """Inside a label of ASCII: how many characters it has, whether the last one is a hyphen, and whether the first one is a letter."""

    size: int
    at_hyphen: bool
    is_named: bool


_Label: TypeAlias = _Plain | str  # a text: `xn--` and what follows it, or the beginning of that

_BEGINNINGS: dict[str, tuple[tuple[_Ranges, _Label], ...]] = {
    "": (((_X,), "x"), (_NO_X, _Plain(1, False, True)), ((_DIGIT,), _Plain(1, False, False))),
    "x": (((_N,), "xn"), (_NO_N, _Plain(2, False, True)), ((_HYPHEN,), _Plain(2, True, True))),
    "xn": (((_HYPHEN,), "xn-"), (_ALNUM, _Plain(3, False, True))),
    "xn-": (((_HYPHEN,), ACE_PREFIX), (_ALNUM, _Plain(4, False, True))),
}


class _Place(NamedTuple):
    """Inside a name.

    Attributes:
        room: characters that may still come.
        reading: how the labels before may stand together.
        label: the one that is begun; "" before its first character.
        takes_ace: A-labels may come.
    """

    room: int
    reading: Reading
    label: _Label
    takes_ace: bool = True


class HostName:
    """Names of up to 253 characters: labels of ASCII letters, digits and hyphens, and A-labels (RFC 5890) that decode to U-labels.

    Other labels with hyphens at the third and fourth place are reserved (RFC 5891, section 4.2.3.1). Names with labels that read
    from right to left obey RFC 5893. A-labels are in lower case.

    What is begun as an A-label is live if one letter more in its U-label completes it, or one more octet does. That leaves out some
    A-labels of which the last three octets are the last that fit. So are those with more than four hyphens in a row: vocabularies have
    tokens of many hyphens, and each of them would be a state.
    """

    start = _Place(MAX_HOST, Reading(True, True), "")

    def accepting(self, state: _Place) -> bool:
        return _ended(state) is not None

    def moves(self, state: _Place) -> Iterator[tuple[_Ranges, _Place]]:
        room, label = state.room, state.label
        if room == 0:
            return
        ended = _ended(state)
        if ended is not None:
            yield (_DOT,), state._replace(room=room - 1, reading=ended, label="")
        for ranges, after in _label_moves(label):
            if state.takes_ace or after != ACE_PREFIX:
                yield ranges, state._replace(room=room - 1, label=after)

    def is_live(self, state: _Place) -> bool:
        room, reading, label, _ = state
        if isinstance(label, _Plain):
            return (label.is_named or reading.left_to_right) and (not label.at_hyphen or (room > 0 and label.size < MAX_LABEL))
        if not label.startswith(ACE_PREFIX):
            return room > 0 or label in ("x", "xn")
        return _can_be_finished(label[len(ACE_PREFIX) :], min(room, MAX_LABEL - len(label)), reading)

    def shortest(self, state: _Place) -> int:
        return 0 if self.accepting(state) else 1

    def at_most(self, state: _Place, length: int) -> _Place:
        return state._replace(room=min(state.room, length))

    def beside_others(self, state: _Place) -> _Place | None:
        """Without A-labels, of which each beginning is a state."""
        if isinstance(state.label, str) and state.label.startswith(ACE_PREFIX):
            return None
        return state._replace(takes_ace=False)

    def run(self, state: _Place) -> Run | None:
        room, reading, label, _ = state
        if isinstance(label, _Plain) and label.size >= _INNER:
            return _run((*_ALNUM, _HYPHEN), min(room, MAX_LABEL - label.size) - 1)
        size = label.size if isinstance(label, _Plain) else len(label)
        if size < _INNER and label != "xn-":
            return _run(_ALNUM, min(room, MAX_LABEL - size)) if size or reading.left_to_right else None
        form = str(label)[len(ACE_PREFIX) :]
        if label == "xn-" or _room_to_finish(form, reading) is None:
            return None
        return _run((_DIGIT, _LOWER), min(room, MAX_LABEL - len(label)) - _LETTERS_ROOM - 1)


def _run(ranges: _Ranges, count: int) -> Run | None:
    return Run(ranges, count, (_HYPHEN, _DOT)) if count > 0 else None


def _ended(state: _Place) -> Reading | None:
    """How the labels read together if the one that is begun ends here; None if it may not."""
    label = state.label
    if isinstance(label, _Plain):
        found = None if label.at_hyphen else Reading(True, label.is_named)
    elif label.startswith(ACE_PREFIX):
        found = read_a_label(label[len(ACE_PREFIX) :])
    else:
        found = Reading(True, True) if label in ("x", "xn") else None
    return state.reading.beside(found)


def _label_moves(label: _Label) -> Iterator[tuple[_Ranges, _Label]]:
    if isinstance(label, _Plain):
        size, at_hyphen, is_named = label
        if size < MAX_LABEL:
            yield _ALNUM, _Plain(size + 1, False, is_named)
            if not (at_hyphen and size == _INNER - 1):
                yield (_HYPHEN,), _Plain(size + 1, True, is_named)
    elif label in _BEGINNINGS:
        yield from _BEGINNINGS[label]
    elif len(label) < MAX_LABEL:
        for char in _FORM_CHARS:
            yield ((ord(char), ord(char)),), label + char


def _can_be_finished(form: str, room: int, reading: Reading) -> bool:
    """Whether the A-label that begins with `xn--` + `form` has an end of at most `room` octets that is looked for."""
    if _TOO_MANY_HYPHENS in form:
        return False
    needed = _room_to_finish(form, reading)
    if needed is not None and room >= needed:
        return True
    for basic in (form, form.rpartition("-")[0]):
        for text in (basic + _LETTER, _LETTER + basic, _LETTER + basic + _LETTER):
            encoded = text.encode("punycode").decode()
            if encoded.startswith(form) and len(encoded) - len(form) <= room and _may_stand(encoded, reading):
                return True
    return _may_stand(form, reading) or (room > 0 and any(_may_stand(form + char, reading) for char in _FORM_CHARS))


def _room_to_finish(form: str, reading: Reading) -> int | None:
    """Octets that surely finish the A-label: `form` becomes the ASCII part of a U-label with `_LETTER` behind it or around it.

    None where this is none. What is so for `form` is so for `form` and more letters and digits.
    """
    if form.endswith(_MANY_HYPHENS):
        return _LETTERS_ROOM + 1 if form[1:3] != "--" else None  # with one character between
    if form and form[0] != "-" and form[2:4] != "--" and (reading.left_to_right or form[0].isalpha()):
        return _LETTER_ROOM
    return _LETTERS_ROOM if form[1:3] != "--" else None


def _may_stand(form: str, reading: Reading) -> bool:
    found = read_a_label(form) if _TOO_MANY_HYPHENS not in form else None
    return reading.beside(found) is not None
