"""The lazy byte automaton: memory, and what Python makes when a step asks for it.

`Machine` owns the arrays of `machine_layout`, runs the kernels and answers their requests: fill a row, expand a
value, a frame or a transition. Each thing is made at most once and only when some text (or mask) reaches it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from . import kernels
from .errors import LimitError
from .languages import CharAutomaton
from .limits import Limits
from .lowering import ANY_STRING, Lowering, key_end_flags
from .machine_layout import (
    ASK,
    CHAR,
    COUNTED,
    DEAD,
    END,
    EXTRA,
    F_ACCEPT,
    F_EXPANDED,
    FINAL_ROW,
    FLAGS,
    GENERIC_STRING,
    GROW,
    GUARD,
    H_BUCKET_MASK,
    H_NEED,
    H_NEED_A,
    H_NEED_B,
    H_NODE_CAPACITY,
    H_NODES,
    H_POSITION,
    H_START,
    H_STATE,
    H_TEXT,
    H_TRANSITION_MASK,
    HEADER_SIZE,
    KEY,
    KIND,
    LEAF,
    NEED,
    NEED_FRAME,
    NEED_ROW,
    NEED_TEXT,
    NEED_TRANSITION,
    NEED_VALUE,
    NIL,
    NODE,
    OFF,
    PARENT,
    POSITION,
    RECORD,
    ROW,
    SET,
    SETTINGS_SIZE,
    TEXT,
    VALUE,
    WS_AFTER_COLON,
    WS_AFTER_COMMA,
    WS_AFTER_VALUE,
    WS_BEFORE_COLON,
    WS_OPEN,
    WS_OUTER_AFTER,
    WS_OUTER_BEFORE,
    A,
)
from .whitespace import NONE, Whitespace


class ValueParts(NamedTuple):
    """How a value can begin: a row for scalars, bounds of a counted string, frames of objects and arrays; for an item that
    must differ from its siblings, rows of a string (after the quote) and of numbers and literals. `unlike` is a text list of
    what the string must not be instead of its siblings. A frame `f` whose text is to be recorded is given as `~f`."""

    scalar_row: int | None
    counted: tuple[int, int | None] | None
    objects: Sequence[int]
    arrays: Sequence[int]
    distinct_string: int | None = None
    distinct_raw: int | None = None
    unlike: int | None = None


class PositionParts(NamedTuple):
    """What can follow a place in a context-free grammar.

    Attributes:
        nullable: the place may read nothing, so that what stands after it may come at once.
        alternatives: `(row, positions)`: a terminal that begins with `row` (a leaf row), then the positions, first one first.
            None of the positions may be reached again before a terminal is read (no left recursion).
    """

    nullable: bool
    alternatives: Sequence[tuple[int, Sequence[int]]]


class ObjectFrame(NamedTuple):
    """Where an object stands: whether `}` may come, and which keys may.

    Attributes:
        can_close: `}` is allowed.
        key_row: row after the opening quote of a key; None if no key can come.
        classes: bit set of allowed classes of undeclared keys.
        declared: bit set (a Python int) of allowed declared keys, by sorted index.
        count: number of declared keys.
    """

    can_close: bool
    key_row: int | None
    classes: int
    declared: int
    count: int


class ArrayFrame(NamedTuple):
    """Where an array stands: whether `]` may come, and the ways to go on as `(value, next frame)`. A question takes the place of
    a frame as `~question`. A value is UNKNOWN behind items that are not known."""

    can_close: bool
    alternatives: Sequence[tuple[int, int]]


Transition = Sequence[tuple[int, int]]  # (value, next frame or ~question)


class Question(Protocol):
    """What Python reads from recorded text to decide which frame follows a value."""

    def answer(self, text: int | None) -> Sequence[tuple[int, int]]:
        """`(OBJECT_AFTER or ARRAY_AFTER, frame)` behind the value that `text` ends with; None: a value like no other."""
        ...

    def doubts(self, text: int, *, inside: bool) -> Callable[[bytes], bool] | None:
        """Whether the value that `text` and some more bytes end with may be like one that matters; None if it is none of them.

        Args:
            inside: the text ends within the value or before it.
        """
        ...


_INSIDE_SCALARS = (LEAF, KEY, COUNTED)
_COMMON_STRING_ROWS = 8  # rows of any string that are made in advance: the string itself, inside UTF-8, after a backslash


class _CommonRows(NamedTuple):
    """Rows made once per whitespace policy. `open_rows` has the key of each row that is still to be filled by `strings`, else None."""

    rows: np.ndarray
    settings: np.ndarray
    open_rows: list[object]
    strings: Lowering


@lru_cache(maxsize=32)
def _common_rows(whitespace: Whitespace) -> _CommonRows:
    return Machine.common_rows(whitespace)


class Machine:
    """Memory and expansion of one grammar. Thread-safe: hold `lock` around every call that can step.

    Args:
        whitespace: policy for JSON grammars.
        limits: `max_nodes` and `max_states` bound the memory.
    """

    def __init__(self, whitespace: Whitespace | None = None, limits: Limits | None = None):
        self._clear(limits or Limits())
        self._node(NIL, 0, 0, 0, 0)
        self._start_from(_common_rows(whitespace or Whitespace.policy("compact")))

    def _clear(self, limits: Limits) -> None:
        self.limits = limits
        self.lock = threading.RLock()
        self.nodes = np.zeros((1 << 14, NODE), np.int32)
        self.buckets = np.full(1 << 14, -1, np.int32)
        self.rows = np.zeros((32, ROW), np.int32)
        self.table = np.zeros(1 << 10, np.int32)
        self.values = np.full(64, -1, np.int32)
        self.frames = np.full(64, -1, np.int32)
        self.transitions = np.full((64, 3), -1, np.int32)
        self.header = np.zeros(HEADER_SIZE, np.int32)
        self._out = np.zeros(kernels.OUT_SIZE, np.int32)
        self._row_makers: list[tuple[Lowering, object] | None] = []
        self._value_makers: list[Callable[[], ValueParts | PositionParts]] = []
        self._frame_makers: list[Callable[[], ObjectFrame | ArrayFrame]] = []
        self._transition_makers: dict[int, Callable[[int], Transition]] = {}
        self._questions: dict[int, Question] = {}
        self._has_records = False
        self._texts: dict[bytes, int] = {}
        self._chunks: list[bytes] = []
        self._chunk_ids: dict[bytes, int] = {}
        self._key_ends: dict[int, int] = {}
        self._table_used = SETTINGS_SIZE
        self._transitions_used = 0
        self.memory = self._pack()

    # --- construction ----------------------------------------------------------------------------------------------

    def _start_from(self, common: _CommonRows) -> None:
        """Copies the rows that every grammar of one whitespace policy begins with."""
        count = len(common.rows)
        self.rows = np.zeros((count + 32, ROW), np.int32)
        self.rows[:count] = common.rows
        self.table[:SETTINGS_SIZE] = common.settings
        self.generic_string_row = int(common.settings[GENERIC_STRING])
        if common.open_rows:
            strings = common.strings.copy_for(self)
            self._row_makers = [None if key is None else (strings, key) for key in common.open_rows]
        self.memory = self._pack()

    @staticmethod
    def common_rows(ws: Whitespace) -> _CommonRows:
        """Makes them: the final row, whitespace, and the JSON string of any characters except its rarer escapes."""
        machine = object.__new__(Machine)
        machine._clear(Limits())
        final = machine._bare_row()
        assert final == FINAL_ROW
        machine.rows[final, :256] = DEAD
        machine.rows[final, FLAGS] = F_EXPANDED | F_ACCEPT
        settings = np.zeros(SETTINGS_SIZE, np.int32)
        rows: dict[int, int] = {id(NONE): FINAL_ROW}
        places = {
            WS_OUTER_BEFORE: ws.before,
            WS_OUTER_AFTER: ws.after,
            WS_OPEN: ws.opened,
            WS_AFTER_VALUE: ws.after_value,
            WS_AFTER_COMMA: ws.after_comma,
            WS_BEFORE_COLON: ws.before_colon,
            WS_AFTER_COLON: ws.after_colon,
        }
        for place, automaton in places.items():
            if id(automaton) not in rows:
                rows[id(automaton)] = Lowering(machine, automaton, json=False).start_row()
            settings[place] = rows[id(automaton)]
        row = 0
        while row < len(machine._row_makers):
            machine.row_targets(row)
            row += 1
        strings = Lowering(machine, ANY_STRING, json=True)
        settings[GENERIC_STRING] = strings.start_row()
        while row < len(machine._row_makers) and row < settings[GENERIC_STRING] + _COMMON_STRING_ROWS:
            machine.row_targets(row)
            row += 1
        open_rows = [None if maker is None else maker[1] for maker in machine._row_makers]
        return _CommonRows(machine.rows[: len(open_rows)].copy(), settings, open_rows, strings)

    def _node(self, kind: int, a: int, b: int, c: int, parent: int) -> int:
        if self.header[H_NODES] + 1 >= self.header[H_NODE_CAPACITY]:
            self._grow_nodes()
        return int(kernels.intern_node(self.memory, kind, a, b, c, parent))

    def start_of_text(self, row: int) -> int:
        """State before a whole text whose language is a leaf row."""
        return self._node(LEAF, row, 0, 0, self._node(END, 0, FINAL_ROW, 0, NIL))

    def start_of_sentence(self, position: int) -> int:
        """State before a whole text that a position of a context-free grammar derives."""
        return self._node(POSITION, position, 0, 0, self._node(END, 0, FINAL_ROW, 0, NIL))

    def start_of_document(self, value: int) -> int:
        """State before a whole JSON document."""
        end = self._node(END, 0, int(self.table[WS_OUTER_AFTER]), 0, NIL)
        return self._node(VALUE, value, int(self.table[WS_OUTER_BEFORE]), 0, end)

    def _bare_row(self) -> int:
        row = len(self._row_makers)
        if row >= self.limits.max_states:
            raise LimitError(f"the constraint needs more than {self.limits.max_states} leaf states (max_states)")
        if row >= len(self.rows):
            self.rows = _doubled(self.rows, 0)
            self.memory = self._pack()
        self._row_makers.append(None)
        return row

    def new_row(self, lowering: Lowering, key: object) -> int:
        """A row that `lowering` fills when a step first needs it."""
        row = self._bare_row()
        self._row_makers[row] = (lowering, key)
        self.rows[row, FLAGS] = lowering.early_flags(key)  # pyright: ignore[reportArgumentType]
        return row

    def key_end_row(self, outcome: int) -> int:
        """The row that ends a key with this outcome."""
        row = self._key_ends.get(outcome)
        if row is None:
            row = self._key_ends[outcome] = self._bare_row()
            key_end_flags(self.rows, row, outcome)
        return row

    def scalar_row(self, targets: dict[int, int]) -> int:
        """A complete row with these targets by byte: how a scalar value begins."""
        row = self._bare_row()
        line = self.rows[row]
        line[:256] = DEAD
        for byte, target in targets.items():
            line[byte] = target
        line[FLAGS] = F_EXPANDED
        return row

    def row_targets(self, row: int) -> np.ndarray:
        """The 256 targets of a row, filled if need be."""
        if not self.rows[row, FLAGS] & F_EXPANDED:
            self._fill_row(row)
        return self.rows[row, :256]

    def new_value(self, maker: Callable[[], ValueParts | PositionParts]) -> int:
        """A value or a position, made when a step first needs it."""
        value = len(self._value_makers)
        if value == len(self.values):
            self.values = _doubled(self.values, -1)
            self.memory = self._pack()
        self._value_makers.append(maker)
        return value

    def new_frame(self, maker: Callable[[], ObjectFrame | ArrayFrame], on_key: Callable[[int], Transition] | None = None) -> int:
        """A frame made when a step needs it; `on_key(outcome)` answers where a key leads."""
        frame = len(self._frame_makers)
        if frame == len(self.frames):
            self.frames = _doubled(self.frames, -1)
            self.memory = self._pack()
        self._frame_makers.append(maker)
        if on_key is not None:
            self._transition_makers[frame] = on_key
        return frame

    def new_question(self, question: Question) -> int:
        """A frame's place that is taken by a question; see `machine_layout.ASK`."""
        place = self.new_frame(_no_frame, lambda text: question.answer(None if text == OFF else text))
        self._questions[place] = question
        return place

    def text_list(self, texts: Iterable[bytes]) -> int:
        """The list of texts that a string must not be."""
        extras = NIL
        for text in texts:
            extras = self._node(EXTRA, self._characters(text), 0, 0, extras)
        return extras

    def _characters(self, text: bytes) -> int:
        node = self._texts.get(text)
        if node is None:
            node = NIL
            for byte in text:
                node = self._node(CHAR, byte, 0, 0, node)
            self._texts[text] = node
        return node

    # --- stepping --------------------------------------------------------------------------------------------------

    def run(self, state: int, data: bytes) -> int:
        """The state after `data`, or DEAD. Raises LimitError when a budget is reached."""
        view = np.frombuffer(data, np.uint8)
        state, text = self.split_record(state)
        position = start = 0
        while True:
            result = int(kernels.run(self.memory, state, view, position, text, start, self._out))
            if result == DEAD:
                return DEAD
            text, start = int(self.header[H_TEXT]), int(self.header[H_START])
            if result >= 0:
                if text == NIL or ((b"]" in data or b"}" in data) and not kernels.is_recorded(self.memory, result)):
                    return result
                return self._recorded(result, self._longer(text, data[start:]))
            state, position = int(self.header[H_STATE]), int(self.header[H_POSITION])
            if result == NEED and self.header[H_NEED] == NEED_TEXT:
                text, start = self._longer(text, data[start:position]), position
            else:
                self.serve(result)

    # --- recorded text ---------------------------------------------------------------------------------------------

    def split_record(self, state: int) -> tuple[int, int]:
        """The state without the text recorded beside it, and that text (NIL: none)."""
        if not self._has_records:
            return state, NIL
        kind, a, b = self.nodes[state, :3].tolist()
        return (a, b) if kind == RECORD else (state, NIL)

    def _recorded(self, state: int, text: int) -> int:
        """The state with `text` beside it, questions answered."""
        members = self._members(state)
        if any(self.nodes[member, KIND] == ASK for member in members):
            answered = sorted({after for member in members for after in self._answered(member, text)})
            state = answered[0]
            if len(answered) > 1:
                state = NIL
                for member in answered:
                    state = self._node(SET, member, 0, 0, state)
        self._has_records = True
        return self._node(RECORD, state, text, 0, NIL)

    def _members(self, state: int) -> list[int]:
        if self.nodes[state, KIND] != SET:
            return [state]
        members: list[int] = []
        while state != NIL:
            members.append(int(self.nodes[state, A]))
            state = int(self.nodes[state, PARENT])
        return members

    def _answered(self, node: int, text: int) -> list[int]:
        kind, a, b, c, parent = self.nodes[node, :5].tolist()
        if kind != ASK:
            return [node]
        return [self._node(after, frame, b, c, parent) for after, frame in self._questions[a].answer(text)]

    def _longer(self, text: int, more: bytes) -> int:
        if not more:
            return text
        chunk = self._chunk_ids.get(more)
        if chunk is None:
            chunk = self._chunk_ids[more] = len(self._chunks)
            self._chunks.append(more)
        return self._node(TEXT, chunk, 0, 0, text)

    def text_end(self, text: int) -> tuple[int, bytes]:
        """The text before the last bytes of `text`, and those. The first text is NIL, and its end the bracket it begins behind."""
        a, parent = int(self.nodes[text, A]), int(self.nodes[text, PARENT])
        return (NIL, bytes((a,))) if parent == NIL else (parent, self._chunks[a])

    def doubts(self, question: int, text: int, *, inside: bool) -> Callable[[bytes], bool] | None:
        """See `Question.doubts`."""
        return self._questions[question].doubts(text, inside=inside)

    def questions_around(self, state: int) -> set[int]:
        """Questions that follow the value that `state` is inside of."""
        found: set[int] = set()
        for member in self._members(state):
            around = int(self.nodes[member, PARENT])
            if self.nodes[around, KIND] == GUARD:
                around = int(self.nodes[around, PARENT])
            if self.nodes[member, KIND] in _INSIDE_SCALARS and self.nodes[around, KIND] == ASK:
                found.add(int(self.nodes[around, A]))
        return found

    def accepting(self, state: int) -> bool:
        """Whether the text may end in `state`."""
        state, _ = self.split_record(state)
        while True:
            result = int(kernels.accepting(self.memory, state, self._out))
            if result >= 0:
                return bool(result)
            self.serve(result)

    def mask_state(self, state: int) -> int:
        """A state with the same mask as `state`; many states share one."""
        while True:
            result = int(kernels.mask_state(self.memory, state))
            if result >= 0:
                return result
            self.serve(result)

    def serve(self, code: int) -> None:
        """Does what a kernel asked for by `code`."""
        if code == GROW:
            self._grow_nodes()
            return
        assert code == NEED
        what, a, b = (int(x) for x in self.header[[H_NEED, H_NEED_A, H_NEED_B]])
        if what == NEED_ROW:
            self._fill_row(a)
        elif what == NEED_VALUE:
            self._fill_value(a)
        elif what == NEED_FRAME:
            self._fill_frame(a)
        elif what == NEED_TRANSITION:
            self._fill_transition(a, b)
        else:
            raise LimitError(f"more than {kernels.MAX_MEMBERS} alternatives are open at one place of the text")

    def _fill_row(self, row: int) -> None:
        maker = self._row_makers[row]
        assert maker is not None
        lowering, key = maker
        lowering.fill(row, key)  # pyright: ignore[reportArgumentType]
        self._row_makers[row] = None

    def _fill_value(self, value: int) -> None:
        parts = self._value_makers[value]()
        if isinstance(parts, PositionParts):
            flat = [x for row, positions in parts.alternatives for x in (row, len(positions), *positions)]
            self.values[value] = self._append([int(parts.nullable), len(parts.alternatives), *flat])
            return
        counted = -1
        if parts.counted is not None:
            low, high = parts.counted
            counted = self._append([low, -1 if high is None else high])
        row, string, raw, unlike = (
            -1 if x is None else x for x in (parts.scalar_row, parts.distinct_string, parts.distinct_raw, parts.unlike)
        )
        frames = [len(parts.objects), len(parts.arrays), *parts.objects, *parts.arrays]
        self.values[value] = self._append([row, counted, string, raw, unlike, *frames])

    def _fill_frame(self, frame: int) -> None:
        made = self._frame_makers[frame]()
        if isinstance(made, ArrayFrame):
            flat = [x for pair in made.alternatives for x in pair]
            self.frames[frame] = self._append([int(made.can_close), len(made.alternatives), *flat])
            return
        words = self.append_bits(made.declared, made.count)
        self.frames[frame] = self._append([int(made.can_close), -1 if made.key_row is None else made.key_row, made.classes, words])

    def _fill_transition(self, frame: int, outcome: int) -> None:
        ways = self._transition_makers[frame](outcome)
        at = self._append([len(ways), *(x for pair in ways for x in pair)])
        if 2 * self._transitions_used >= len(self.transitions):
            old = self.transitions[self.transitions[:, 0] >= 0]
            self.transitions = np.full((2 * len(self.transitions), 3), -1, np.int32)
            self.memory = self._pack()
            for f, o, offset in old.tolist():
                kernels.add_transition(self.memory, f, o, offset)
        kernels.add_transition(self.memory, frame, outcome, at)
        self._transitions_used += 1

    # --- memory ----------------------------------------------------------------------------------------------------

    def append_bits(self, bits: int, count: int) -> int:
        """Stores the lowest `count` bits; answers their offset in the table."""
        words = np.frombuffer(bits.to_bytes((count + 31) // 32 * 4, "little"), np.int32)
        return self._append(words.tolist())

    def _append(self, data: list[int]) -> int:
        at = self._table_used
        while at + len(data) > len(self.table):
            self.table = _doubled(self.table, 0)
            self.memory = self._pack()
        self.table[at : at + len(data)] = data
        self._table_used = at + len(data)
        return at

    def _grow_nodes(self) -> None:
        if len(self.nodes) >= self.limits.max_nodes:
            raise LimitError(f"the constraint needs more than {self.limits.max_nodes} nodes (max_nodes)")
        self.nodes = _doubled(self.nodes, 0)
        self.buckets = np.full(len(self.nodes), -1, np.int32)
        self.memory = self._pack()
        kernels.rehash_nodes(self.memory)

    def _pack(self) -> tuple[np.ndarray, ...]:
        self.header[H_NODE_CAPACITY] = len(self.nodes)
        self.header[H_BUCKET_MASK] = len(self.buckets) - 1
        self.header[H_TRANSITION_MASK] = len(self.transitions) - 1
        return (self.nodes, self.buckets, self.rows, self.table, self.values, self.frames, self.transitions, self.header)

    @property
    def is_worn(self) -> bool:
        """Whether the texts seen so far have taken half of a budget, so that a new machine had better take the next ones."""
        return 2 * self.header[H_NODES] > self.limits.max_nodes or 2 * len(self._row_makers) > self.limits.max_states

    @property
    def num_bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(a.nbytes for a in self.memory)


def _no_frame() -> ArrayFrame:
    raise AssertionError("a question has no frame of its own")


def _doubled(array: np.ndarray, fill: int) -> np.ndarray:
    grown = np.full((2 * array.shape[0], *array.shape[1:]), fill, array.dtype)
    grown[: array.shape[0]] = array
    return grown


def leaf_row(machine: Machine, automaton: CharAutomaton, *, json: bool = False) -> int:
    """Row at the start of a leaf: raw text, or a JSON string after its opening quote."""
    return Lowering(machine, automaton, json=json).start_row()
