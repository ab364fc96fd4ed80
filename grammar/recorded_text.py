"""Text that is recorded beside a state, as long as what may follow depends on it."""

from __future__ import annotations

from collections.abc import Callable

from .errors import LimitError
from .limits import Limits
from .machine_layout import ARRAY_OPEN, ASK, COUNTED, GUARD, H_NEED_A, KEY, KIND, LEAF, NIL, OBJECT_OPEN, PARENT, RECORD, TEXT, A
from .machine_memory import MachineMemory
from .machine_parts import Question

_INSIDE_SCALARS = (LEAF, KEY, COUNTED)


class RecordedText(MachineMemory):
    """States beside which text is recorded, and the questions that are answered from it."""

    def __init__(self, limits: Limits):
        super().__init__(limits)
        self._questions: dict[int, Question] = {}
        self._has_records = False
        self._chunks: list[bytes] = []
        self._chunk_ids: dict[bytes, int] = {}
        self._recorded: dict[int, bool] = {NIL: False}

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
