"""The lazy byte automaton: memory, and what Python makes when a step asks for it.

`Machine` owns the arrays of `machine_layout`, runs the kernels and answers their requests: fill a row, expand a
value, a frame or a transition. Each thing is made at most once and only when some text (or mask) reaches it.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from . import kernels
from .errors import LimitError
from .languages import CharAutomaton
from .leaves import Leaf, WordRows, scalar_start, shared_leaf, whitespace_rows
from .limits import Limits
from .lowering import GENERIC_STRING_ROW, KeyAutomaton, Lowering
from .machine_layout import (
    ARRAY_OPEN,
    ASK,
    CHAR,
    COUNTED,
    DEAD,
    END,
    EXTRA,
    FINAL_ROW,
    FORK,
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
    MARKED,
    NAME_DEPTH,
    NAME_ESCAPE,
    NAME_HI,
    NAME_LO,
    NAME_NODE,
    NEED,
    NEED_ESCAPE,
    NEED_FRAME,
    NEED_GUARD,
    NEED_ROW,
    NEED_TEXT,
    NEED_TRANSITION,
    NEED_VALUE,
    NIL,
    NODE,
    OBJECT_OPEN,
    OFF,
    PARENT,
    RECORD,
    SET,
    SETTINGS_SIZE,
    TEXT,
    VALUE,
    WS_OUTER_AFTER,
    WS_OUTER_BEFORE,
    A,
)
from .row_store import STORE
from .whitespace import Whitespace

if TYPE_CHECKING:
    from .counted_text import CountedText


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
        alternatives: `(row, positions)`: a terminal that begins with `row` (a leaf row), then the positions (numbers of
            `Machine.new_position`), first one first. None of them may be reached again before a terminal is read (no left recursion).
    """

    alternatives: Sequence[tuple[int, Sequence[int]]]


class Element(NamedTuple):
    """A node to be pushed; what its fields mean is in `machine_layout`."""

    kind: int
    a: int
    b: int = 0
    c: int = 0


class ForkParts(NamedTuple):
    """Several ways to go on.

    Attributes:
        alternatives: what is read one after another, at most two elements each; none means that what stands after the fork comes.
            A fork may not be reached again before something is read.
    """

    alternatives: Sequence[Sequence[Element]]


class Frontier(NamedTuple):
    """What can happen in a state without a further byte.

    Attributes:
        accepting: the text may end without passing a mark.
        goes_on: more can be read without passing a mark.
        marks: nodes of marks that can be passed.
    """

    accepting: bool
    goes_on: bool
    marks: tuple[int, ...]


class ObjectFrame(NamedTuple):
    """Where an object stands: whether `}` may come, and which keys may.

    Attributes:
        can_close: `}` is allowed.
        key_row: row after the opening quote of a key; with `names`, of a key that is none of them. None if no such key can come.
        classes: bit set of allowed classes of undeclared keys.
        declared: bit set (a Python int) of allowed declared keys, by sorted index.
        count: number of declared keys.
        names: trie of the declared keys (`Machine.new_names`); None where `key_row` reads them too.
    """

    can_close: bool
    key_row: int | None
    classes: int
    declared: int
    count: int
    names: int | None = None


class ArrayFrame(NamedTuple):
    """Where an array stands: whether `]` may come, and the ways to go on as `(value, next frame)`. A question takes the place of
    a frame as `~question`. A value is UNKNOWN behind items that are not known."""

    can_close: bool
    alternatives: Sequence[tuple[int, int]]


Transition = Sequence[tuple[int, int]]  # (value, next frame or ~question)


# What stands in the declared names [lo, hi) after their first `depth` characters may be spelled with an escape: the row after its
# backslash.
EscapeMaker = Callable[[int, int, int], int]


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

_NOT_RAW = re.compile('[\x00-\x1f"\\\\\ud800-\udfff]')  # characters that only an escape can spell, or nothing


class Machine:
    """Memory and expansion of one grammar. Thread-safe: hold `lock` around every call that can step.

    Args:
        whitespace: policy for JSON grammars.
        limits: `max_nodes` and `max_states` bound the memory.

    Attributes:
        counted_texts: texts that may take a bounded number of tokens.
    """

    def __init__(self, whitespace: Whitespace | None = None, limits: Limits | None = None):
        self.limits = limits or Limits()
        self.lock = threading.RLock()
        self.nodes = np.zeros((1 << 14, NODE), np.int32)
        self.buckets = np.full(1 << 10, -1, np.int32)
        self.table = np.zeros(1 << 10, np.int32)
        self.values = np.full(64, -1, np.int32)
        self.frames = np.full(64, -1, np.int32)
        self.transitions = np.full((64, 3), -1, np.int32)
        self.header = np.zeros(HEADER_SIZE, np.int32)
        self._out = np.zeros(kernels.OUT_SIZE, np.int32)
        self._found = np.zeros(1, np.int32)
        self.counted_texts: list[CountedText] = []
        self._value_makers: list[Callable[[], ValueParts | PositionParts | ForkParts]] = []
        self._frame_makers: list[Callable[[], ObjectFrame | ArrayFrame]] = []
        self._transition_makers: dict[int, Callable[[int], Transition]] = {}
        self._name_tries: list[tuple[Sequence[str], EscapeMaker]] = []
        self._held: set[object] = set()  # whoever owns rows that this grammar can reach
        self._own: list[Lowering] = []
        self._num_rows = 0
        self._questions: dict[int, Question] = {}
        self._has_records = False
        self._texts: dict[bytes, int] = {}
        self._chunks: list[bytes] = []
        self._chunk_ids: dict[bytes, int] = {}
        self._recorded: dict[int, bool] = {NIL: False}
        self._table_used = SETTINGS_SIZE
        self._transitions_used = 0
        self._pack()
        self.node(NIL, 0, 0, 0, 0)
        places = whitespace_rows(whitespace or Whitespace.policy("compact"))
        self.table[: len(places.rows)] = places.rows
        self.table[GENERIC_STRING] = GENERIC_STRING_ROW
        self._held.update(places.leaves)

    # --- construction ----------------------------------------------------------------------------------------------

    def members(self, state: int) -> list[int]:
        """The nodes that a state is the union of."""
        state, _ = self.split_record(state)
        if int(self.nodes[state, KIND]) != SET:
            return [state]
        found = []
        while state != NIL:
            found.append(int(self.nodes[state, A]))
            state = int(self.nodes[state, PARENT])
        return found

    def union(self, states: Sequence[int]) -> int:
        """The union of at least one state."""
        while True:
            self._out[: len(states)] = states
            result = int(kernels.union_of(self.memory, self._out, len(states)))
            if result >= 0:
                return result
            self.serve(result)

    def node(self, kind: int, a: int, b: int, c: int, parent: int) -> int:
        """The node with these fields, made when absent."""
        if int(self.header[H_NODES]) + 1 >= len(self.nodes):
            self._grow_nodes()
        return int(kernels.intern_node(self.memory, kind, a, b, c, parent))

    def start_of_text(self, row: int) -> int:
        """State before a whole text whose language is a leaf row."""
        return self.node(LEAF, row, 0, 0, self.node(END, 0, FINAL_ROW, 0, NIL))

    def start_of_sentence(self, position: int | None) -> int:
        """State before a whole text that a position of a context-free grammar derives; None for the empty text only."""
        end = self.node(END, 0, FINAL_ROW, 0, NIL)
        return end if position is None else int(kernels.push_position(self.memory, position, end))

    def start_of_fork(self, fork: int) -> int:
        """State before a whole text that a fork begins."""
        return self.node(FORK, fork, 0, 0, self.node(END, 0, FINAL_ROW, 0, NIL))

    def start_of_document(self, value: int) -> int:
        """State before a whole JSON document."""
        end = self.node(END, 0, int(self.table[WS_OUTER_AFTER]), 0, NIL)
        return self.node(VALUE, value, int(self.table[WS_OUTER_BEFORE]), 0, end)

    def lower(self, automaton: CharAutomaton, *, json: bool, tidy: bool = False, keys: KeyAutomaton | None = None) -> Lowering:
        """Rows of an automaton that only this grammar uses."""
        machine = weakref.proxy(self)  # which holds the lowering

        def store_bits(bits: int, count: int) -> int:
            return machine.append_bits(bits, count)

        lowering = Lowering(automaton, json=json, tidy=tidy, keys=keys, limits=self.limits, store_bits=store_bits)
        self._own.append(lowering)
        return lowering

    def shared_row(self, key: Hashable, make: Callable[[], CharAutomaton], *, json: bool, tidy: bool = False, is_key: bool = False) -> int:
        """Start row of a leaf that grammars share: `key` says which one, `make` makes its automaton (a key automaton if `is_key`) if
        none has it yet."""

        def lower() -> Lowering:
            automaton = make()
            keys = automaton if is_key and isinstance(automaton, KeyAutomaton) else None
            return Lowering(automaton, json=json, tidy=tidy, keys=keys, limits=self.limits)

        return self._hold(shared_leaf((key, json, tidy, self.limits), lower))

    def words_row(self, key: Hashable, words: Sequence[str]) -> int:
        """Start row of a string that is one of some words; see `WordRows`."""
        return self._hold(shared_leaf((key, "words"), lambda: WordRows(words)))

    def hold(self, leaf: Lowering) -> None:
        """Keeps rows that this grammar can reach."""
        self._held.add(leaf)

    def _hold(self, leaf: Leaf) -> int:
        self._held.add(leaf)
        return leaf.start_row()

    def scalar_row(self, targets: dict[int, int]) -> int:
        """A complete row with these targets by byte: how a scalar value begins. Grammars share it."""
        start = scalar_start(tuple(targets.items()))
        self._held.add(start)
        return start.row

    def row_targets(self, row: int) -> np.ndarray:
        """The 256 targets of a row, filled if need be."""
        return STORE.targets(row)

    def new_position(self, maker: Callable[[], PositionParts], nullable: bool) -> int:
        """A place in a context-free grammar that may read nothing if `nullable`."""
        return 2 * self.new_value(maker) + nullable

    def new_value(self, maker: Callable[[], ValueParts | PositionParts | ForkParts]) -> int:
        """A value or a fork, made when a step first needs it."""
        value = len(self._value_makers)
        if value == len(self.values):
            self.values = _doubled(self.values, -1)
            self._pack()
        self._value_makers.append(maker)
        return value

    def new_frame(self, maker: Callable[[], ObjectFrame | ArrayFrame], on_key: Callable[[int], Transition] | None = None) -> int:
        """A frame made when a step needs it; `on_key(outcome)` answers where a key leads."""
        frame = len(self._frame_makers)
        if frame == len(self.frames):
            self.frames = _doubled(self.frames, -1)
            self._pack()
        self._frame_makers.append(maker)
        if on_key is not None:
            self._transition_makers[frame] = on_key
        return frame

    def new_names(self, names: Sequence[str], *, tidy: bool, escapes: EscapeMaker) -> int:
        """The trie of declared names, sorted by code point.

        Args:
            names: outcome i is `names[i]`.
            tidy: printable ASCII characters are never escaped.
            escapes: makes rows where an escape can come.
        """
        raw: list[bytes] = []
        cuts = np.zeros(len(names), np.int32)
        for i, name in enumerate(names):
            special = _NOT_RAW.search(name)
            cuts[i] = special is not None
            raw.append((name if special is None else name[: special.start()]).encode())
        data = b"".join(raw)
        if len(data) > self.limits.max_nodes:
            raise LimitError(f"the names of an object need more than {self.limits.max_nodes} nodes (max_nodes)")
        ends = np.cumsum([len(b) for b in raw], dtype=np.int32)
        out = np.empty((len(data) + 1) * NAME_NODE, np.int32)
        path = np.zeros(max(map(len, raw), default=0) + 1, np.int32)
        owner = len(self._name_tries)
        used = kernels.build_names(np.frombuffer(data, np.uint8), ends, cuts, int(tidy), owner, out, path)
        self._name_tries.append((names, escapes))
        return self._append(out[:used])

    def new_question(self, question: Question) -> int:
        """A frame's place that is taken by a question; see `machine_layout.ASK`."""
        place = self.new_frame(_no_frame, lambda text: question.answer(None if text == OFF else text))
        self._questions[place] = question
        return place

    def text_list(self, texts: Iterable[bytes]) -> int:
        """The list of texts that a string must not be."""
        extras = NIL
        for text in texts:
            extras = self.node(EXTRA, self._characters(text), 0, 0, extras)
        return extras

    def _characters(self, text: bytes) -> int:
        node = self._texts.get(text)
        if node is None:
            node = NIL
            for byte in text:
                node = self.node(CHAR, byte, 0, 0, node)
            self._texts[text] = node
        return node

    # --- stepping --------------------------------------------------------------------------------------------------

    def run(self, state: int, data: bytes) -> int:
        """The state after `data`, or DEAD. Raises LimitError when a budget is reached."""
        return self._run(state, data, 0, to_mark=False)[0]

    def run_to_mark(self, state: int, data: bytes, position: int) -> tuple[int, int]:
        """The state after `data` from `position` on, or after as much of it as it takes until a mark can be passed, and the position
        after it; DEAD with the position of the byte that is refused."""
        return self._run(state, data, position, to_mark=True)

    def _run(self, state: int, data: bytes, position: int, *, to_mark: bool) -> tuple[int, int]:
        view = np.frombuffer(data, np.uint8)
        state, text = self.split_record(state)
        start = position
        while True:
            result = int(kernels.run(self.memory, state, view, position, text, start, to_mark, self._out, self._found))
            text, start = int(self.header[H_TEXT]), int(self.header[H_START])
            if result >= 0:
                return self._beside(result, self._longer(text, data[start:])), len(data)
            state, position = int(self.header[H_STATE]), int(self.header[H_POSITION])
            if result == MARKED:
                return self._beside(state, self._longer(text, data[start:position])), position
            if result == DEAD:
                return DEAD, position
            if result == NEED and self.header[H_NEED] == NEED_TEXT:
                text, start = self._longer(text, data[start:position]), position
            elif result == NEED and self.header[H_NEED] == NEED_GUARD:
                if not self._goes_on(state):
                    text, start = self.node(TEXT, int(self.header[H_NEED_B]), 0, 0, NIL), position
                if to_mark and self.frontier(state).marks:
                    return self._beside(state, self._longer(text, data[start:position])), position
            else:
                self.serve(result)

    # --- recorded text ---------------------------------------------------------------------------------------------

    def split_record(self, state: int) -> tuple[int, int]:
        """The state without the text recorded beside it, and that text (NIL: none)."""
        if not self._has_records:
            return state, NIL
        kind, a, b = self.nodes[state, :3].tolist()
        return (a, b) if kind == RECORD else (state, NIL)

    def with_record(self, state: int, text: int) -> int:
        """The state with a text recorded beside it, unless that is NIL."""
        return state if text == NIL else self.node(RECORD, state, text, 0, NIL)

    def _beside(self, state: int, text: int) -> int:
        """The state with `text` beside it as long as that matters, questions answered."""
        if text == NIL or not self._is_recorded(state):
            return state
        self._has_records = True
        members = self.members(state)
        if any(self.nodes[member, KIND] == ASK for member in members):
            state = self.union([after for member in members for after in self._answered(member, text)])
        return self.with_record(state, text)

    def _goes_on(self, state: int) -> bool:
        """Whether text recorded before a bracket that led to `state` still matters.

        Raises:
            LimitError: the bracket opens a value that is recorded, but is a part of something else in another one.
        """
        if not self._is_recorded(int(self.header[H_NEED_A])):
            return False
        for member in self.members(state):
            if self.nodes[member, KIND] not in (ARRAY_OPEN, OBJECT_OPEN) and self._is_recorded(member):
                raise LimitError("the text can be read in two ways, in each of which other items must differ")
        return True

    def _is_recorded(self, state: int) -> bool:
        """Whether a state is inside a value that is recorded."""
        known, nodes = self._recorded, self.nodes
        todo = [state]
        while todo:
            around = [int(nodes[member, PARENT]) for member in self.members(todo[-1])]
            missing = [outer for outer in around if outer not in known]
            if missing:
                todo += missing
            else:
                guards = any(nodes[node, KIND] == GUARD for outer in around for node in self.members(outer))
                known[todo.pop()] = guards or any(known[outer] for outer in around)
        return known[state]

    def _answered(self, node: int, text: int) -> list[int]:
        kind, a, b, c, parent = self.nodes[node, :5].tolist()
        if kind != ASK:
            return [node]
        return [self.node(after, frame, b, c, parent) for after, frame in self._questions[a].answer(text)]

    def _longer(self, text: int, more: bytes) -> int:
        if text == NIL or not more:
            return text
        chunk = self._chunk_ids.get(more)
        if chunk is None:
            chunk = self._chunk_ids[more] = len(self._chunks)
            self._chunks.append(more)
        return self.node(TEXT, chunk, 0, 0, text)

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
        for member in self.members(state):
            if self.nodes[member, KIND] in _INSIDE_SCALARS:
                around = self.members(int(self.nodes[member, PARENT]))
                for node in around:
                    outer = self.members(int(self.nodes[node, PARENT])) if self.nodes[node, KIND] == GUARD else [node]
                    found.update(int(self.nodes[after, A]) for after in outer if self.nodes[after, KIND] == ASK)
        return found

    def accepting(self, state: int) -> bool:
        """Whether the text may end in `state`."""
        return self.frontier(state).accepting

    def frontier(self, state: int) -> Frontier:
        """What can happen in `state` without a further byte."""
        state, _ = self.split_record(state)
        while True:
            count = int(kernels.ends_and_marks(self.memory, state, self._out, self._found))
            if count >= 0:
                found = int(self._found[0])
                return Frontier(bool(found & kernels.MAY_END), bool(found & kernels.GOES_ON), tuple(self._out[:count].tolist()))
            self.serve(count)

    def continuations(self, fork: int) -> list[int]:
        """The nodes that a fork node leads to."""
        value = int(self.nodes[fork, A])
        if self.values[value] < 0:
            self._fill_value(value)
        at = int(self.values[value])
        found = []
        alternatives, at = int(self.table[at]), at + 1
        for _ in range(alternatives):
            count, at = int(self.table[at]), at + 1
            node = int(self.nodes[fork, PARENT])
            for _ in range(count):
                kind, a, b, c = (int(x) for x in self.table[at : at + 4])
                node, at = self.node(kind, a, b, c, node), at + 4
            found.append(node)
        return found

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
        elif what == NEED_ESCAPE:
            self._fill_escape(a)
        else:
            raise LimitError(f"more than {kernels.MAX_MEMBERS} alternatives are open at one place of the text")

    def serve_until_done(self, kernel: Callable[[], int]) -> int:
        """Calls a kernel until it answers no code any more; that answer."""
        while (code := int(kernel())) < DEAD:
            self.serve(code)
        return code

    def _fill_row(self, row: int) -> None:
        self._num_rows += 1
        if self._num_rows > self.limits.max_states:
            raise LimitError(f"the constraint needs more than {self.limits.max_states} leaf states (max_states)")
        STORE.fill(row)

    def _fill_escape(self, at: int) -> None:
        lo, hi, depth = (int(self.table[at + column]) for column in (NAME_LO, NAME_HI, NAME_DEPTH))
        names, make = self._name_tries[-1 - int(self.table[at + NAME_ESCAPE])]
        row = make(lo, hi, len(names[lo].encode()[:depth].decode()))
        self.table[at + NAME_ESCAPE] = row

    def _fill_value(self, value: int) -> None:
        parts = self._value_makers[value]()
        if isinstance(parts, ForkParts):
            nodes = [[len(alternative), *(x for element in reversed(alternative) for x in element)] for alternative in parts.alternatives]
            self.values[value] = self._append([len(nodes), *(x for alternative in nodes for x in alternative)])
            return
        if isinstance(parts, PositionParts):
            flat = [x for row, positions in parts.alternatives for x in (row, len(positions), *positions)]
            self.values[value] = self._append([len(parts.alternatives), *flat])
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
        key_row, names = (-1 if x is None else x for x in (made.key_row, made.names))
        self.frames[frame] = self._append([int(made.can_close), key_row, made.classes, words, names])

    def _fill_transition(self, frame: int, outcome: int) -> None:
        ways = self._transition_makers[frame](outcome)
        at = self._append([len(ways), *(x for pair in ways for x in pair)])
        if 2 * self._transitions_used >= len(self.transitions):
            old = self.transitions[self.transitions[:, 0] >= 0]
            self.transitions = np.full((2 * len(self.transitions), 3), -1, np.int32)
            self._pack()
            for f, o, offset in old.tolist():
                kernels.add_transition(self.memory, f, o, offset)
        kernels.add_transition(self.memory, frame, outcome, at)
        self._transitions_used += 1

    # --- memory ----------------------------------------------------------------------------------------------------

    def append_bits(self, bits: int, count: int) -> int:
        """Stores the lowest `count` bits; answers their offset in the table."""
        words = np.frombuffer(bits.to_bytes((count + 31) // 32 * 4, "little"), np.int32)
        return self._append(words.tolist())

    def _append(self, data: list[int] | np.ndarray) -> int:
        at = self._table_used
        while at + len(data) > len(self.table):
            self.table = _doubled(self.table, 0)
            self._pack()
        self.table[at : at + len(data)] = data
        self._table_used = at + len(data)
        return at

    def _grow_nodes(self) -> None:
        if len(self.nodes) >= self.limits.max_nodes:
            raise LimitError(f"the constraint needs more than {self.limits.max_nodes} nodes (max_nodes)")
        self.nodes = _doubled(self.nodes, 0)
        self.buckets = np.full(len(self.nodes) // 4, -1, np.int32)
        self._pack()
        kernels.rehash_nodes(self.memory)

    def _pack(self) -> None:
        """Tells the kernels where the arrays are now."""
        self.header[H_NODE_CAPACITY] = len(self.nodes)
        self.header[H_BUCKET_MASK] = len(self.buckets) - 1
        self.header[H_TRANSITION_MASK] = len(self.transitions) - 1
        self._arrays = (self.nodes, self.buckets, STORE.rows, self.table, self.values, self.frames, self.transitions, self.header)
        self.memory = np.array([a.ctypes.data for a in self._arrays], np.int64)

    @property
    def num_nodes(self) -> int:
        """Nodes made so far."""
        return int(self.header[H_NODES])

    @property
    def num_bytes(self) -> int:
        """Memory that goes with this grammar and no other, about."""
        nodes, rows = int(self.header[H_NODES]), sum(leaf.num_rows for leaf in self._own)
        arrays = nodes * 4 * NODE + self.buckets.nbytes + 4 * (self._table_used + 3 * self._transitions_used) + rows * STORE.row_bytes
        return _BASE_BYTES + arrays + _OBJECT_BYTES * (rows + len(self._value_makers) + len(self._frame_makers))

    @property
    def is_half_full(self) -> bool:
        """Whether half of `max_nodes` or `max_states`, or of the budget of a leaf, is used."""
        if 2 * int(self.header[H_NODES]) > self.limits.max_nodes or 2 * self._num_rows > self.limits.max_states:
            return True
        return any(getattr(owner, "is_worn", False) for owner in tuple(self._held))


_BASE_BYTES = 150_000  # of a grammar without any state: arrays, schema, expander
_OBJECT_BYTES = 3_000  # of what Python keeps for a row, value or frame


def _no_frame() -> ArrayFrame:
    raise AssertionError("a question has no frame of its own")


def _doubled(array: np.ndarray, fill: int) -> np.ndarray:
    shape = (2 * array.shape[0], *array.shape[1:])
    grown = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)  # zeros take memory only once used
    grown[: array.shape[0]] = array
    return grown


def leaf_row(machine: Machine, automaton: CharAutomaton) -> int:
    """Row at the start of a leaf of raw text."""
    return machine.lower(automaton, json=False).start_row()
