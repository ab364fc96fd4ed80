"""Where `re.match` ends: a backtracking regular expression as an automaton that reads each character once.

A state is the list of ways to go on, in the order in which a backtracking matcher would try them (the threads of Pike's machine;
Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009). A way that has matched hides the ways after it: a greedy
loop stays before its exit, a lazy one behind it. Lookarounds are exact: each way carries the set of texts that may follow.

A match that depends on what follows stays in the list, for as long as it is not decided.

When the text so far can be the match, `condition` is the set of the texts that may follow such that it *is* the match: none of the
ways before it comes to an end in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ..errors import GrammarError
from ..limits import Limits
from ..regex import CharSet, nodes
from ..regex.budget import Budget
from ..regex.charset import partition
from ..regex.derivative import locate, row
from ..regex.emptiness import is_live
from ..regex.nodes import ANYTHING, EMPTY, EPSILON, Node
from ..regex.parser import Group
from ..regex.python import PythonParser
from ..regex.syntax import (
    After,
    Alternatives,
    Atomic,
    Before,
    Item,
    Lookahead,
    Lookbehind,
    Repetition,
    Sequence,
    width,
)

# Nesting of one pattern; the functions here recurse over it.
_MAX_DEPTH = 60


@dataclass(frozen=True, eq=False, slots=True)
class LazyRepetition(Repetition):
    """A repetition that prefers to end."""


class OrderedParser(PythonParser):
    """Reads a pattern without losing the order in which its alternatives are tried."""

    def __init__(self, text: str, limits: Limits):
        super().__init__(text, Budget(replace(limits, max_depth=min(limits.max_depth, _MAX_DEPTH))))

    def _finish_branch(self, group: Group) -> None:
        self._flush(group)
        parts = group.parts
        group.branches.append(parts[0] if len(parts) == 1 else Sequence(tuple(parts)))
        group.parts = []

    def _finish_group(self, group: Group) -> Item:
        self._finish_branch(group)
        branches = [branch for branch in group.branches if not isinstance(branch, str)]
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _repeat(self, size: int, lo: int, hi: int | None) -> None:
        position = self.pos
        if not self._repeatable:
            raise self.error("a quantifier follows nothing that can be repeated")
        self.pos += size
        if self.peek() == "+":
            raise self.error("a possessive quantifier is not supported in a grammar", position)
        kind = Repetition
        if self.peek() == "?":
            self.pos += 1
            kind = LazyRepetition
        self.add(kind(self._take_last(), lo, hi, False, position), False)


@lru_cache(maxsize=1024)
def parse_ordered(pattern: str, limits: Limits) -> Item:
    """The items of a pattern of the module `re`.

    Raises:
        GrammarError: with the position in the pattern.
        LimitError: too long, or nested too deeply.
    """
    return OrderedParser(pattern, limits).parse()


class _Way(NamedTuple):
    """What is still to be matched, as the id of a stack, and what may follow from here on."""

    stack: int
    rest: Node


_MATCHED = 0  # the empty stack
_PAST = 1  # a match that ended earlier, if what followed it is in its set


@dataclass(eq=False)
class _State:
    ways: tuple[_Way, ...]
    seen: tuple[Node, ...]  # for each lookbehind the set of texts that make it true, moved to here
    num_read: int  # counted up to the widest lookbehind
    row: list[tuple[CharSet, int]] | None = None
    condition: Node | None = None
    condition_known: bool = False


class OrderedMatcher:
    """The automaton of one pattern. States are ints made on demand; raises LimitError when the budget is used up."""

    def __init__(self, item: Item, limits: Limits):
        self._budget = Budget(limits)
        self._stacks: list[tuple[Item, int]] = [(EPSILON, _MATCHED), (EPSILON, _PAST)]
        self._stack_ids: dict[tuple[Item, int], int] = {}
        self._counted: dict[tuple[Item, int, int | None], Item] = {}
        self._plain_ends: dict[int, Node] = {_MATCHED: ANYTHING, _PAST: ANYTHING}
        self._lookbehinds: dict[Before | Lookbehind, int] = {}
        self._sets: list[Node] = []
        self._need = 0
        self._has_assertions = _has_assertion(item)
        self._plain_nodes: dict[Item, Node] = {}
        for assertion in _assertions(item):
            self._add_lookbehind(assertion)
        self._states: list[_State] = []
        self._state_ids: dict[object, int] = {}
        start = self._push(item, _MATCHED)
        self.start = self._state(self._closed([(start, ANYTHING)], tuple(self._sets), 0), tuple(self._sets), 0)

    @property
    def num_states(self) -> int:
        return len(self._states)

    def row(self, state: int) -> list[tuple[CharSet, int]]:
        """Disjoint `(characters, next state)`."""
        found = self._states[state]
        if found.row is None:
            found.row = self._make_row(found)
        return found.row

    def matches(self, state: int) -> bool:
        """Whether the text so far can be the match, if the right text follows."""
        return any(way.stack == _MATCHED for way in self._states[state].ways)

    def condition(self, state: int) -> Node | None:
        """Texts that may follow if the match ends here; None if it cannot."""
        found = self._states[state]
        if not found.condition_known:
            found.condition = self._make_condition(found)
            found.condition_known = True
        return found.condition

    # --- lookbehinds -----------------------------------------------------------------------------------------------

    def _add_lookbehind(self, assertion: Before | Lookbehind) -> None:
        if assertion in self._lookbehinds:
            return
        self._lookbehinds[assertion] = len(self._sets)
        if isinstance(assertion, Before):
            self._sets.append(assertion.prefix)
        else:
            body = _plain_node(assertion.body, assertion.position)
            self._sets.append(nodes.cat(ANYTHING, body))
        self._need = max(self._need, _reach(assertion))

    def _check_reach(self, assertion: Before | Lookbehind, num_read: int) -> None:
        if num_read < _reach(assertion):
            raise GrammarError("an assertion about the text before a terminal is not supported")

    # --- stacks ----------------------------------------------------------------------------------------------------

    def _push(self, item: Item, below: int) -> int:
        key = (item, below)
        found = self._stack_ids.get(key)
        if found is None:
            found = self._stack_ids[key] = len(self._stacks)
            self._stacks.append(key)
        return found

    def _less(self, item: Repetition) -> Item:
        """The repetition after one round."""
        low, high = max(item.lo - 1, 0), None if item.hi is None else item.hi - 1
        if (low, high) == (item.lo, item.hi):
            return item
        key = (item.body, low, high)
        found = self._counted.get(key)
        if found is None or type(found) is not type(item):
            found = self._counted[key] = type(item)(item.body, low, high, False, item.position)
        return found

    def _closed(self, ways: Iterable[tuple[int, Node]], seen: tuple[Node, ...], num_read: int) -> list[_Way]:
        """The ways with everything done that reads no character, in order, up to the first that has matched for sure."""
        todo = list(ways)
        todo.reverse()
        visited: set[tuple[int, int]] = set()
        result: list[_Way] = []
        while todo:
            stack, rest = todo.pop()
            if (stack, rest.uid) in visited or (stack, ANYTHING.uid) in visited:
                continue
            visited.add((stack, rest.uid))
            self._budget.spend(1)
            if stack in (_MATCHED, _PAST):
                result.append(_Way(stack, rest))
                if rest is ANYTHING:
                    break
                continue
            item, below = self._stacks[stack]
            if isinstance(item, Node):
                if item is EPSILON:
                    todo.append((below, rest))
                elif item is not EMPTY:
                    result.append(_Way(stack, rest))
            elif isinstance(item, Sequence):
                for part in reversed(item.parts):
                    below = self._push(part, below)
                todo.append((below, rest))
            elif isinstance(item, Alternatives):
                todo.extend((self._push(part, below), rest) for part in reversed(item.parts))
            elif isinstance(item, Repetition):
                todo.extend((way, rest) for way in reversed(self._rounds(item, below)))
            elif isinstance(item, Before | Lookbehind):
                if self._holds(item, seen, num_read):
                    todo.append((below, rest))
            else:
                follow = nodes.conj((rest, self._follow(item, seen, num_read)))
                if is_live(locate(follow), self._budget):
                    todo.append((below, locate(follow)))
        while result and result[-1].stack == _PAST:  # it hides nothing
            result.pop()
        return result

    def _rounds(self, item: Repetition, below: int) -> list[int]:
        """Stacks of the ways into and past a repetition, the preferred one first."""
        if item.hi == 0:
            return [below]
        again = self._push(item.body, self._push(self._less(item), below))
        if item.lo:
            return [again]
        return [below, again] if isinstance(item, LazyRepetition) else [again, below]

    def _holds(self, item: Before | Lookbehind, seen: tuple[Node, ...], num_read: int) -> bool:
        self._check_reach(item, num_read)
        return seen[self._lookbehinds[item]].nullable != (isinstance(item, Lookbehind) and item.negative)

    def _follow(self, item: Item, seen: tuple[Node, ...], num_read: int) -> Node:
        """The set of texts in which an assertion about what follows is true."""
        if isinstance(item, After):
            return item.rest
        if isinstance(item, Lookahead):
            return self._texts(item, ANYTHING, seen, num_read)
        raise GrammarError("an atomic group is not supported in a grammar")

    # --- states ----------------------------------------------------------------------------------------------------

    def _state(self, ways: list[_Way], seen: tuple[Node, ...], num_read: int) -> int:
        key = (tuple((way.stack, way.rest.uid) for way in ways), tuple(node.uid for node in seen), num_read)
        found = self._state_ids.get(key)
        if found is None:
            self._budget.add_state()
            found = self._state_ids[key] = len(self._states)
            self._states.append(_State(tuple(ways), seen, num_read))
        return found

    def _make_row(self, state: _State) -> list[tuple[CharSet, int]]:
        heads = [self._stacks[way.stack][0] for way in state.ways if way.stack not in (_MATCHED, _PAST)]
        rows = [row(head, self._budget) for head in heads if isinstance(head, Node)]
        if not rows:
            return []
        others = [*(row(way.rest, self._budget) for way in state.ways), *(row(node, self._budget) for node in state.seen)]
        sets = dict.fromkeys(cell for pairs in (*rows, *others) for cell, _ in pairs)
        found: dict[int, CharSet] = {}
        for cell, _ in partition(tuple(sets)):
            target = self._target(state, cell.ranges[0][0])
            if target is not None:
                found[target] = found[target] | cell if target in found else cell
        return [(cell, target) for target, cell in found.items()]

    def _target(self, state: _State, code_point: int) -> int | None:
        ways: list[tuple[int, Node]] = []
        for stack, rest in state.ways:
            follow = self._after(rest, code_point)
            if follow is None:
                continue
            if stack in (_MATCHED, _PAST):
                ways.append((_PAST, follow))
                continue
            head, below = self._stacks[stack]
            left = self._after(head, code_point) if isinstance(head, Node) else None
            if left is not None:
                ways.append((below if left is EPSILON else self._push(left, below), follow))
        seen = tuple(self._after(node, code_point) or EMPTY for node in state.seen)
        num_read = min(state.num_read + 1, self._need)
        closed = self._closed(ways, seen, num_read)
        return self._state(closed, seen, num_read) if closed else None

    def _after(self, node: Node, code_point: int) -> Node | None:
        """What is left of a set after one character, None if nothing."""
        if node is ANYTHING:
            return node
        for cell, target in row(node, self._budget):
            if code_point in cell:
                target = locate(target)
                return target if is_live(target, self._budget) else None
        return None

    # --- what follows a match --------------------------------------------------------------------------------------

    def _make_condition(self, state: _State) -> Node | None:
        options: list[Node] = []
        before: list[Node] = []  # texts in which a way that is tried earlier does not come to its end
        for way in state.ways:
            if way.stack == _MATCHED:
                options.append(nodes.conj((way.rest, *before)))
            if way is not state.ways[-1]:
                before.append(nodes.complement(nodes.conj((way.rest, self._ends(way.stack, state)))))
        condition = locate(nodes.alt(options))
        return condition if options and is_live(condition, self._budget) else None

    def _ends(self, stack: int, state: _State) -> Node:
        """Texts with a beginning that a stack matches."""
        if not self._has_assertions:
            return self._ends_of_plain(stack)
        items: list[Item] = []
        while stack not in (_MATCHED, _PAST):
            item, stack = self._stacks[stack]
            items.append(item)
        return self._texts(Sequence(tuple(items)), ANYTHING, state.seen, state.num_read)

    def _ends_of_plain(self, stack: int) -> Node:
        """The same for a pattern without assertions."""
        unknown: list[int] = []
        while stack not in self._plain_ends:
            unknown.append(stack)
            stack = self._stacks[stack][1]
        ends = self._plain_ends[stack]
        for stack in reversed(unknown):
            item = self._stacks[stack][0]
            if ends is ANYTHING and isinstance(item, Repetition):
                item = self._least(item)
            ends = self._plain_ends[stack] = nodes.cat(self._plain(item), ends)
        return ends

    def _least(self, item: Repetition) -> Item:
        """As many rounds as a repetition needs: where anything may follow, further ones say nothing."""
        return EPSILON if item.lo == 0 else Repetition(item.body, item.lo, item.lo, False, item.position)

    def _plain(self, item: Item) -> Node:
        if isinstance(item, Node):
            return item
        if isinstance(item, Repetition):
            return nodes.rep(self._plain(item.body), item.lo, item.hi)
        node = self._plain_nodes.get(item)
        if node is None:
            node = self._plain_nodes[item] = _plain_node(item, 0)
        return node

    def _texts(self, item: Item, rest: Node, seen: tuple[Node, ...], num_read: int) -> Node:
        """Texts that `item` and then `rest` read, after at least `num_read` characters."""
        if isinstance(item, Node):
            return nodes.cat(item, rest)
        if isinstance(item, Sequence):
            for part, start in reversed(list(zip(item.parts, _starts(item.parts, num_read), strict=True))):
                rest = self._texts(part, rest, seen, start)
            return rest
        if isinstance(item, Alternatives):
            return nodes.alt([self._texts(part, rest, seen, num_read) for part in item.parts])
        if isinstance(item, Repetition):
            return self._repeated(item, rest, seen, num_read)
        if isinstance(item, After):
            return nodes.conj((item.rest, rest))
        if isinstance(item, Lookahead):
            body = self._texts(item.body, ANYTHING, seen, num_read)
            return nodes.conj((nodes.complement(body) if item.negative else body, rest))
        if isinstance(item, Atomic):
            raise GrammarError("an atomic group is not supported in a grammar")
        self._check_reach(item, num_read)
        prefix = seen[self._lookbehinds[item]]
        negative = isinstance(item, Lookbehind) and item.negative
        return nodes.cat(nodes.behind(nodes.complement(prefix) if negative else prefix), rest)

    def _repeated(self, item: Repetition, rest: Node, seen: tuple[Node, ...], num_read: int) -> Node:
        if item.hi == 0 or (item.lo == 0 and rest is ANYTHING):
            return rest
        high = item.lo if rest is ANYTHING else item.hi
        if not _has_assertion(item.body):
            return nodes.cat(nodes.rep(_plain_node(item.body, item.position), item.lo, high), rest)
        if width(item.body)[0] == 0:
            raise GrammarError("a repetition of assertions that may read nothing is not supported in a grammar")
        var = rest.free.bit_length()
        body = self._texts(item.body, nodes.variable(var), seen, num_read)
        return nodes.loop(body, rest, item.lo, high, var)


def _starts(parts: tuple[Item, ...], num_read: int) -> list[int]:
    """How many characters at least were read before each part."""
    starts: list[int] = []
    for part in parts:
        starts.append(num_read)
        num_read += width(part)[0]
    return starts


def _reach(assertion: Before | Lookbehind) -> int:
    """How many characters an assertion looks back."""
    if isinstance(assertion, Before):
        return 1  # a boundary of a text, line or word
    return width(assertion.body)[1] or 0


def _plain_node(item: Item, position: int) -> Node:
    """The set of texts of an item without assertions."""
    if isinstance(item, Node):
        return item
    if isinstance(item, Sequence):
        result = EPSILON
        for part in reversed(item.parts):
            result = nodes.cat(_plain_node(part, position), result)
        return result
    if isinstance(item, Alternatives):
        return nodes.alt([_plain_node(part, position) for part in item.parts])
    if isinstance(item, Repetition):
        return nodes.rep(_plain_node(item.body, position), item.lo, item.hi)
    raise GrammarError("an assertion inside a lookbehind is not supported in a grammar")


def _children(item: Item) -> tuple[Item, ...]:
    if isinstance(item, Sequence | Alternatives):
        return item.parts
    return (item.body,) if isinstance(item, Repetition | Atomic | Lookahead) else ()


def _assertions(item: Item) -> list[Before | Lookbehind]:
    """Every assertion about the text before, outside of other such assertions."""
    found: list[Before | Lookbehind] = []
    todo = [item]
    while todo:
        current = todo.pop()
        if isinstance(current, Before | Lookbehind):
            found.append(current)
        todo.extend(_children(current))
    return found


def _has_assertion(item: Item) -> bool:
    todo = [item]
    while todo:
        current = todo.pop()
        if not isinstance(current, Node | Sequence | Alternatives | Repetition):
            return True
        todo.extend(_children(current))
    return False


def check_never_empty(item: Item) -> None:
    """Raises GrammarError if an item may match the empty text."""
    if width(item)[0] == 0:
        raise GrammarError("a terminal may not match the empty text")
