"""Parses the output of a model with the automaton that constrained it.

The automaton has a mark at each boundary of a tag. The parser follows all readings of the text at once, each a state and the marks it
has passed (Pike's virtual machine), and says what they agree on. Of readings that all last to the end of the text, the one in which
tags end first counts. In a tree that tells its parts apart, there is one reading nearly always, and the kernel reads whole pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ..errors import OutputError
from ..machine_layout import DEAD, FORK, KIND, PARENT, SWITCH, A
from .compiled import CompiledTag
from .events import Event, TagBegin, TagDelta, TagEnd, TextDelta
from .readings import Entry, Readings
from .spec import Tag
from .symbols import TOKEN_BYTES, TOKEN_LEAD, token_id_of


class Vocabulary(Protocol):
    """What a parser needs of a vocabulary (`fsm_cache.Vocabulary`).

    Attributes:
        named_tokens: ids of special tokens by name; None for end tokens.
        eos_token_ids: end tokens.
    """

    eos_token_ids: frozenset[int]

    @property
    def named_tokens(self) -> Mapping[str, int | None]: ...

    @property
    def spellings(self) -> Sequence[bytes | None]:
        """The bytes that an automaton reads for each token, None for tokens that are in no text."""
        ...


class _Reading(NamedTuple):
    state: int
    entry: Entry


class StructuralParser:
    """Reads one text, in pieces of any size.

    Text is held back only while it may turn out to be the begin or the end of a tag. Time is linear in the text where boundaries can be
    told from what stands before them, and otherwise grows with the number of readings.

    Args:
        compiled: with marks.
        tags: the tags of the tree, in order.
        vocabulary: for `feed_tokens`.
    """

    def __init__(self, compiled: CompiledTag, tags: Sequence[Tag], vocabulary: Vocabulary | None = None):
        self._compiled = compiled
        self._machine = compiled.machine
        self._tags = tags
        self._vocabulary = vocabulary
        self._entries = Readings()
        self._held: dict[int, int] = {}
        self._read = 0  # bytes read
        self._said = 0  # bytes that events were made of
        self._unsaid = bytearray()  # the bytes between
        self._partial = b""  # of a character
        self._open: list[int] = []  # tags
        with self._machine.lock:
            self._readings = self._with_marks([_Reading(compiled.start, self._entries.hold(self._entries.root))])

    @property
    def needs_tokens(self) -> bool:
        """Whether the tree names special tokens, which text does not show: then `feed_tokens` is to be used."""
        return self._compiled.symbols.uses_tokens

    @property
    def open_tags(self) -> tuple[str, ...]:
        """Names of the tags that have begun and not ended, outermost first."""
        return tuple(self._name(number) for number in self._open)

    @property
    def complete(self) -> bool:
        """Whether the text may end here."""
        with self._machine.lock:
            return not self._partial and any(self._machine.frontier(reading.state).accepting for reading in self._readings)

    def feed(self, text: str) -> list[Event]:
        """What a further piece of text brings.

        Raises:
            OutputError: the tree does not admit the text.
        """
        return self._feed(text.encode("utf-8", "surrogatepass"))

    def feed_tokens(self, token_ids: Sequence[int]) -> list[Event]:
        """What further tokens bring; end tokens bring nothing.

        Raises:
            OutputError: the tree does not admit them.
            ValueError: the parser was made without a vocabulary.
        """
        if self._vocabulary is None:
            raise ValueError("a parser that reads tokens needs a vocabulary")
        spellings = self._vocabulary.spellings
        pieces: list[bytes] = []
        for token in token_ids:
            if token in self._vocabulary.eos_token_ids:
                continue
            spelling = spellings[token] if 0 <= token < len(spellings) else None
            if spelling is None:
                raise OutputError(f"the token {token} is in no text", position=self._read)
            pieces.append(spelling)
        return self._feed(b"".join(pieces))

    def finish(self, *, drop_tokens: bool = False) -> list[Event]:
        """What was held back, at the end of the text. A text that was cut may leave tags open.

        Args:
            drop_tokens: of a text that was cut, leave out what was held back from its first special token on. That is a part of a
                boundary which never became whole.
        """
        with self._machine.lock:
            chosen = next((reading for reading in self._readings if self._machine.frontier(reading.state).accepting), None)
            if chosen is not None and not self._partial:
                self._keep([chosen])
            events = [*self._settled()]
            first_token = self._unsaid.find(TOKEN_LEAD) if drop_tokens and chosen is None else -1
            return [*events, *self._say(self._read if first_token < 0 else self._said + first_token)]

    # --- reading -------------------------------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> list[Event]:
        data = self._partial + data
        whole = _whole_characters(data)
        data, self._partial = data[:whole], data[whole:]
        events: list[Event] = []
        with self._machine.lock:
            at = 0
            while at < len(data):
                at += self._advance(data, at)
                events.extend(self._settled())
            events.extend(self._say(self._certain()))
        return events

    def _advance(self, data: bytes, at: int) -> int:
        """Reads as much as can be read in one go; the number of bytes."""
        if len(self._readings) == 1:
            state, entry = self._readings[0]
            state, end = self._machine.run_to_mark(state, data, at)
            moved = [] if state == DEAD else [_Reading(state, entry)]
        else:
            end = at + 1
            byte = data[at:end]
            stepped = [(reading, self._machine.run(reading.state, byte)) for reading in self._readings]
            moved = [_Reading(state, reading.entry) for reading, state in stepped if state != DEAD]
            if moved:
                self._release([reading for reading, state in stepped if state == DEAD])
        self._unsaid += data[at:end]
        self._read += end - at
        if not moved:
            raise OutputError("the text is not what the structural tag admits", position=self._read)
        self._readings = self._with_marks(moved)
        return end - at

    def _with_marks(self, readings: list[_Reading]) -> list[_Reading]:
        """The readings, and what they become by passing marks, which comes first. Of equal states the first one stays."""
        found: dict[int, _Reading] = {}
        stack = [(reading, False) for reading in reversed(readings)]
        while stack:
            reading, passed = stack.pop()
            frontier = self._machine.frontier(reading.state)
            if frontier.marks and not passed:
                stays = frontier.accepting or frontier.goes_on
                if stays:
                    stack.append((reading, True))
                stack.extend((after, False) for after in self._after_marks(reading, frontier.marks))
                if not stays:
                    self._release([reading])
            elif reading.state in found:
                self._release([reading])
            else:
                found[reading.state] = reading
        return list(found.values())

    def _after_marks(self, reading: _Reading, marks: Sequence[int]) -> list[_Reading]:
        """What a reading becomes by passing one of some marks, the last mark first."""
        nodes = self._machine.nodes
        found = []
        for node in sorted(marks, key=lambda node: int(nodes[node, A]), reverse=True):
            number = int(nodes[node, A])
            entry = self._entries.extend(reading.entry, number, self._read, self._compiled.marks[number].length)
            found.append(_Reading(int(nodes[node, PARENT]), entry))
        return found

    def _keep(self, readings: list[_Reading]) -> None:
        self._release([reading for reading in self._readings if reading not in readings])
        self._readings = readings

    def _release(self, readings: list[_Reading]) -> None:
        for reading in readings:
            self._entries.release(reading.entry)

    # --- events --------------------------------------------------------------------------------------------------------

    def _settled(self) -> Iterator[Event]:
        """Events of the marks that all readings agree on now."""
        for entry in self._entries.settle():
            yield from self._say(entry.start)
            mark = self._compiled.marks[entry.mark]
            text = self._take(entry.position)
            tag, name = self._tags[mark.tag], self._name(mark.tag)
            if mark.begins:
                self._open.append(mark.tag)
                yield TagBegin(tag=tag, name=name, text=text)
            else:
                self._open.pop()
                yield TagEnd(tag=tag, name=name, text=text)

    def _say(self, end: int) -> Iterator[Event]:
        """The text up to `end`."""
        text = self._take(end)
        if not text:
            return
        if self._open:
            number = self._open[-1]
            yield TagDelta(tag=self._tags[number], name=self._name(number), text=text)
        else:
            yield TextDelta(text=text)

    def _take(self, end: int) -> str:
        count = max(end - self._said, 0)
        data = bytes(self._unsaid[:count])
        del self._unsaid[:count]
        self._said += count
        return self._decoded(data)

    def _decoded(self, data: bytes) -> str:
        pieces: list[str] = []
        at = 0
        while (lead := data.find(TOKEN_LEAD, at)) >= 0:
            pieces.append(data[at:lead].decode())
            at = lead + TOKEN_BYTES
            pieces.append(self._compiled.symbols.name(token_id_of(data[lead:at])))
        return "".join(pieces) + data[at:].decode()

    def _name(self, number: int) -> str:
        name = self._tags[number].name
        return str(number) if name is None else name

    def _certain(self) -> int:
        """Where the text ends that can be no boundary any more."""
        ends = [self._read - self._held_in(reading.state) for reading in self._readings]
        doubt = self._entries.first_doubt()
        return min(ends if doubt is None else [*ends, doubt])

    def _held_in(self, state: int) -> int:
        """How many of the bytes read last may belong to a boundary."""
        held = self._held.get(state)
        if held is None:
            held = self._held[state] = max((self._held_by_row(row) for row in self._rows_ahead(state)), default=0)
        return held

    def _held_by_row(self, row: int) -> int:
        for rows in self._compiled.switches:
            q = rows.state_of.get(row)
            if q is not None:
                return rows.held(q)
        return 0

    def _rows_ahead(self, state: int) -> Iterator[int]:
        """Rows of the boundaries and free texts that a state is inside of, or can begin without a mark."""
        machine = self._machine
        machine.frontier(state)  # makes all forks on the way
        seen: set[int] = set()
        stack = [state]
        while stack:
            state = stack.pop()
            for node in machine.members(state):
                if node in seen:
                    continue
                seen.add(node)
                kind = int(machine.nodes[node, KIND])
                if kind == SWITCH:
                    yield int(machine.nodes[node, A])
                elif kind == FORK:
                    stack.extend(machine.continuations(node))


def _whole_characters(data: bytes) -> int:
    """Length of the data without a character that is unfinished (RFC 3629)."""
    for back in range(1, min(len(data), 4) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0) if byte < 0xF8 else 1
        return len(data) - back if back < length else len(data)
    return len(data)
