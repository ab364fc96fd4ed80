"""The lazy byte automaton: what Python makes when a step asks for it.

`Machine` runs the kernels on the arrays of `machine_layout` and answers their requests: fill a row, expand a
value, a frame or a transition. Each thing is made at most once and only when some text (or mask) reaches it.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .errors import LimitError
from .kernels import entries
from .kernels.keys import build_names
from .kernels.step import GOES_ON, MAY_END
from .languages import CharAutomaton
from .leaves import Leaf, ScalarStart, shared_leaf, whitespace_rows
from .limits import Limits
from .lowering import GENERIC_STRING_ROW, KeyAutomaton, Lowering
from .machine_layout import (
    CHAR,
    DEAD,
    END,
    EXTRA,
    FINAL_ROW,
    FORK,
    FR_SIZE,
    GENERIC_STRING,
    GROW,
    H_NEED,
    H_NEED_B,
    H_NODES,
    H_POSITION,
    H_START,
    H_STATE,
    H_TEXT,
    LEAF,
    MARKED,
    NAME_DEPTH,
    NAME_ESCAPE,
    NAME_HI,
    NAME_LO,
    NAME_NODE,
    NEED,
    NEED_AHEAD,
    NEED_ESCAPE,
    NEED_FRAME,
    NEED_GUARD,
    NEED_ROW,
    NEED_TEXT,
    NEED_TRANSITION,
    NEED_VALUE,
    NIL,
    OFF,
    PARENT,
    TEXT,
    VALUE,
    WS_OUTER_AFTER,
    WS_OUTER_BEFORE,
    A,
)
from .machine_memory import FRAMES, TOO_MANY, VALUES, doubled, words_of
from .machine_parts import ArrayFrame, EscapeMaker, ForkParts, Frontier, ObjectFrame, PositionParts, Question, Transition, ValueParts
from .node_memory import KEPT_NODES
from .recorded_text import RecordedText
from .row_store import STORE
from .whitespace import Whitespace

if TYPE_CHECKING:
    from .counted_text import CountedText

K = TypeVar("K")
_NOT_RAW = re.compile('[\x00-\x1f"\\\\\ud800-\udfff]')  # characters that only an escape can spell, or nothing


class Machine(RecordedText):
    """Steps and expansion of one grammar. Thread-safe: hold `lock` around every call that can step.

    Args:
        whitespace: policy for JSON grammars.
        limits: `max_nodes` and `max_states` bound the memory.

    Attributes:
        counted_texts: texts that may take a bounded number of tokens.
    """

    def __init__(self, whitespace: Whitespace | None = None, limits: Limits | None = None):
        super().__init__(limits or Limits())
        self.lock = threading.RLock()
        self._found = np.empty(1, np.int32)
        self.counted_texts: list[CountedText] = []
        self._value_makers: list[tuple[Callable[[Any], ValueParts | PositionParts | ForkParts], object]] = []
        self._frame_makers: list[tuple[Callable[[Any], ObjectFrame | ArrayFrame], Callable[[Any, int], Transition] | None, object]] = []
        self._name_tries: list[tuple[Sequence[str], EscapeMaker]] = []
        self._texts: dict[bytes, int] = {}
        self._held: set[object] = set()  # whoever owns rows that this grammar can reach
        self._own: list[Lowering] = []
        self._num_rows = 0
        places = whitespace_rows(whitespace or Whitespace.policy("compact"))
        self.table[: len(places.rows)] = places.rows
        self.table[GENERIC_STRING] = GENERIC_STRING_ROW
        self._held.update(places.leaves)

    # --- construction ----------------------------------------------------------------------------------------------

    def start_of_text(self, row: int) -> int:
        """State before a whole text whose language is a leaf row."""
        return self.node(LEAF, row, 0, 0, self.node(END, 0, FINAL_ROW, 0, NIL))

    def start_of_sentence(self, position: int | None) -> int:
        """State before a whole text that a position of a context-free grammar derives; None for the empty text only."""
        end = self.node(END, 0, FINAL_ROW, 0, NIL)
        return end if position is None else int(entries.push_position(self.memory, position, end))

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

    def shared_row(
        self,
        key: Hashable,
        make: Callable[[], CharAutomaton],
        *,
        json: bool,
        tidy: bool = False,
        is_key: bool = False,
        counted: bool = False,
    ) -> int:
        """Start row of a leaf that grammars share, held from now on; see `shared_leaf`."""
        return self._hold(self.shared_leaf(key, make, json=json, tidy=tidy, is_key=is_key, counted=counted))

    def shared_leaf(
        self,
        key: Hashable,
        make: Callable[[], CharAutomaton],
        *,
        json: bool,
        tidy: bool = False,
        is_key: bool = False,
        counted: bool = False,
    ) -> Leaf:
        """A leaf that grammars share: `key` says which one, `make` makes its automaton (a key automaton if `is_key`) if none has it
        yet. Its strings may be `counted`."""

        def lower() -> Lowering:
            automaton = make()
            keys = automaton if is_key and isinstance(automaton, KeyAutomaton) else None
            return Lowering(automaton, json=json, tidy=tidy, keys=keys, counted=counted, limits=self.limits)

        return shared_leaf((key, json, tidy, counted, self.limits), lower)

    def hold(self, leaf: Lowering) -> None:
        """Keeps rows that this grammar can reach."""
        self._held.add(leaf)

    def _hold(self, leaf: Leaf) -> int:
        self._held.add(leaf)
        return leaf.start_row()

    def scalar_row(self, key: Hashable, make: Callable[[], ScalarStart]) -> int | None:
        """The row that says how a scalar value begins, None if it cannot. Grammars share it: `key` says which one."""
        start = shared_leaf(("scalars", key, self.limits), make)
        return self._hold(start) if start else None

    def new_position(self, maker: Callable[[K], PositionParts], key: K, nullable: bool) -> int:
        """A place in a context-free grammar that may read nothing if `nullable`."""
        return 2 * self.new_value(maker, key) + nullable

    def new_value(self, maker: Callable[[K], ValueParts | PositionParts | ForkParts], key: K) -> int:
        """A value or a fork, made as `maker(key)` when a step first needs it."""
        value = len(self._value_makers)
        if value == len(self.values):
            self.values = doubled(self.values, -1)
            self.moved(VALUES, self.values)
        self._value_makers.append((maker, key))
        return value

    def new_frame(
        self, maker: Callable[[K], ObjectFrame | ArrayFrame], key: K, on_key: Callable[[K, int], Transition] | None = None
    ) -> int:
        """A frame made as `maker(key)` when a step needs it; `on_key(key, outcome)` answers where a key of an object leads."""
        frame = len(self._frame_makers)
        if frame == len(self.frames):
            self.frames = doubled(self.frames, -1)
            self.moved(FRAMES, self.frames)
        self._frame_makers.append((maker, on_key, key))
        return frame

    def new_names(self, names: Sequence[str], *, tidy: bool, escapes: EscapeMaker) -> int:
        """The trie of declared names, sorted by code point.

        Args:
            names: outcome i is `names[i]`.
            tidy: printable ASCII characters are never escaped.
            escapes: makes rows where an escape can come.
        """
        joined, cuts = "".join(names), np.zeros(len(names), np.int32)
        if joined.isascii() and _NOT_RAW.search(joined) is None:
            data, lengths = joined.encode(), list(map(len, names))
        else:
            raw: list[bytes] = []
            for i, name in enumerate(names):
                special = _NOT_RAW.search(name)
                cuts[i] = special is not None
                raw.append((name if special is None else name[: special.start()]).encode())
            data, lengths = b"".join(raw), list(map(len, raw))
        if len(data) > self.limits.max_nodes:
            raise LimitError(f"the names of an object need more than {self.limits.max_nodes} nodes (max_nodes)")
        ends = np.fromiter(accumulate(lengths), np.int32, len(names))
        out = np.empty((len(data) + 1) * NAME_NODE, np.int32)
        path = np.zeros(max(lengths, default=0) + 1, np.int32)
        owner = len(self._name_tries)
        used = build_names(np.frombuffer(data, np.uint8), ends, cuts, int(tidy), owner, out, path)
        self._name_tries.append((names, escapes))
        return self._append(out[:used])

    def new_question(self, question: Question) -> int:
        """A frame's place that is taken by a question; see `machine_layout.ASK`."""
        place = self.new_frame(_no_frame, question, _answer)
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
            result = int(entries.run(self.memory, state, view, position, text, start, to_mark, self._out, self._found))
            text = int(self.header[H_TEXT])
            if result >= 0 and text == NIL:
                return result, len(data)
            start = int(self.header[H_START])
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

    def accepting(self, state: int) -> bool:
        """Whether the text may end in `state`."""
        return self.frontier(state).accepting

    def frontier(self, state: int) -> Frontier:
        """What can happen in `state` without a further byte."""
        state, _ = self.split_record(state)
        while True:
            count = int(entries.ends_and_marks(self.memory, state, self._out, self._found))
            if count >= 0:
                found = int(self._found[0])
                return Frontier(bool(found & MAY_END), bool(found & GOES_ON), tuple(self._out[:count].tolist()))
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
            result = int(entries.mask_state(self.memory, state))
            if result >= 0:
                return result
            self.serve(result)

    def serve(self, code: int) -> None:
        """Does what a kernel asked for by `code`."""
        if code == GROW:
            self._grow_nodes()
            return
        assert code == NEED
        what, a, b = self.header[H_NEED : H_NEED_B + 1].tolist()
        if what == NEED_ROW:
            self._fill_row(a)
        elif what == NEED_VALUE:
            self._fill_value(a)
        elif what == NEED_AHEAD:
            STORE.look_ahead(a, b)
        elif what == NEED_FRAME:
            self._fill_frame(a)
        elif what == NEED_TRANSITION:
            self._fill_transition(a, b)
        elif what == NEED_ESCAPE:
            self._fill_escape(a)
        else:
            raise LimitError(TOO_MANY)

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
        make, key = self._value_makers[value]
        parts = make(key)
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
            low, high, first = parts.counted
            counted = self._append([low, -1 if high is None else high, first])
        row, string, raw, unlike = (
            -1 if x is None else x for x in (parts.scalar_row, parts.distinct_string, parts.distinct_raw, parts.unlike)
        )
        frames = [len(parts.objects), len(parts.arrays), *parts.objects, *parts.arrays]
        self.values[value] = self._append([row, counted, string, raw, unlike, *frames])

    def _fill_frame(self, frame: int) -> None:
        make, _, key = self._frame_makers[frame]
        made = make(key)
        if isinstance(made, ArrayFrame):
            flat = [x for pair in made.alternatives for x in pair]
            self.frames[frame] = self._append([int(made.can_close), len(made.alternatives), *flat])
            return
        can_close, key_row, classes, declared, count, names = made
        row, trie = -1 if key_row is None else key_row, -1 if names is None else names
        words = self._table_used + FR_SIZE
        self.frames[frame] = self._append([can_close, row, classes, words, trie, *words_of(declared, count)])

    def _fill_transition(self, frame: int, outcome: int) -> None:
        _, on_key, key = self._frame_makers[frame]
        assert on_key is not None
        ways = on_key(key, outcome)
        at = self._append([len(ways), *(x for pair in ways for x in pair)])
        self._add_transition(frame, outcome, at)

    # --- memory ----------------------------------------------------------------------------------------------------

    @property
    def num_bytes(self) -> int:
        """Memory that goes with this grammar and no other, about. Nodes that were never used take none."""
        rows = sum(leaf.num_rows for leaf in self._own)
        arrays = self.nodes[: max(self.num_nodes, KEPT_NODES)].nbytes + self.buckets.nbytes
        arrays += 4 * (self._table_used + 3 * self._transitions_used) + rows * STORE.row_bytes
        return _BASE_BYTES + arrays + _OBJECT_BYTES * (rows + len(self._value_makers) + len(self._frame_makers))

    @property
    def is_half_full(self) -> bool:
        """Whether half of `max_nodes` or `max_states`, or of the budget of a leaf, is used."""
        if 2 * int(self.header[H_NODES]) > self.limits.max_nodes or 2 * self._num_rows > self.limits.max_states:
            return True
        return any(getattr(owner, "is_worn", False) for owner in tuple(self._held))


_BASE_BYTES = 100_000  # of a grammar beside its arrays: schema, expander
_OBJECT_BYTES = 3_000  # of what Python keeps for a row, value or frame


def _no_frame(question: Question) -> ArrayFrame:
    raise AssertionError("a question has no frame of its own")


def _answer(question: Question, text: int) -> Transition:
    return question.answer(None if text == OFF else text)


def leaf_row(machine: Machine, automaton: CharAutomaton) -> int:
    """Row at the start of a leaf of raw text."""
    return machine.lower(automaton, json=False).start_row()
