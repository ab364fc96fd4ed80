"""Hash-consed regular expressions over Unicode scalar values.

A node denotes a set of strings. Nodes are made by the functions of this module only, which simplify (units, zeros,
merged counters, length rules) and return the same object for the same expression; identity is equality.

Three kinds exist for assertions, and only there:

* `BEHIND(p)` is the empty string if `p` accepts *what was read so far*, else nothing. `p` moves with every character
  read before the node is reached (see `derivative`), so a node that contains one is *located*.
* `LOOP(body, tail, lo, hi)` is the repetition of a body that holds assertions: `body` is a node in which the variable
  `var` stands for "the rest of the loop", and `tail` is what follows the loop.
* `VAR(i)` is that variable.

The set of a located node is always meant from the place it has been moved to. `SEAL(x)` holds a located node that has
not started yet and therefore is not moved by what stands before it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..languages import Recognizer
from .budget import NODE_PRICE, Budget
from .charset import ALL_CHARS, CharSet

KIND_EMPTY: Final = 0
KIND_EPSILON: Final = 1
KIND_CHARS: Final = 2
KIND_WORDS: Final = 3
KIND_CAT: Final = 4
KIND_ALT: Final = 5
KIND_AND: Final = 6
KIND_NOT: Final = 7
KIND_REP: Final = 8
KIND_BEHIND: Final = 9
KIND_LOOP: Final = 10
KIND_VAR: Final = 11
KIND_SEAL: Final = 12
KIND_STATE: Final = 13

# A single remaining word up to this length gets a table of its own, so that equal suffixes are the same node.
_CANONICAL_SUFFIX = 32
# Conjunctions over loops are brought into disjunctive form up to this many terms.
_MAX_DISTRIBUTED_TERMS = 256
# The length of a shortest string where there is none.
NO_STRING: Final = 1 << 62

Row = tuple[tuple[CharSet, "Node"], ...]


class WordTable:
    """Distinct words in code point order, shared by all `WORDS` nodes that are suffix sets of it."""

    __slots__ = ("__weakref__", "uid", "words")

    words: tuple[str, ...]
    uid: int


class Node:
    """One regular expression. Read-only, except for the memo slots `row`, `shifts`, `first_round`, `here`,
    `live`, `lengths`, `least`, `reach`, `padded` and `core`.

    Attributes:
        kind: one of the `KIND_*` numbers.
        items: child nodes: CAT (head, tail), LOOP (body, tail), ALT and AND (all), NOT, REP, BEHIND, SEAL (one).
        lo, hi: counts of REP and LOOP (`hi` None = unbounded).
        chars: the set of CHARS.
        words: table, first word, end word, characters already read, of WORDS.
        state: recognizer and its state, of STATE.
        var: the variable's number, of LOOP and VAR.
        nullable: whether the empty string is in the set.
        min_len, max_len: bounds for the length in code points (`max_len` None = unbounded); reached when `positive`.
        positive: without complement, conjunction or assertion; such a node is never empty.
        located: contains a `BEHIND` that moves with the text.
        loopy: contains a `LOOP` or `VAR`.
        free: bit set of variables that no enclosing LOOP of this node binds.
        least, reach: no string is shorter than `least`, and one is `reach` long (NO_STRING if none is known).
        padded: strings of all lengths above `reach` are known to exist, too.
        core: see `shortest.bounded_core`.
    """

    __slots__ = (
        "__weakref__",
        "chars",
        "core",
        "first_round",
        "free",
        "here",
        "hi",
        "items",
        "kind",
        "least",
        "lengths",
        "live",
        "lo",
        "located",
        "loopy",
        "max_len",
        "min_len",
        "nullable",
        "padded",
        "positive",
        "reach",
        "row",
        "shifts",
        "state",
        "uid",
        "var",
        "words",
    )

    kind: int
    items: tuple[Node, ...]
    lo: int
    hi: int | None
    chars: CharSet
    words: tuple[WordTable, int, int, int]
    state: tuple[Recognizer, Any]
    var: int
    nullable: bool
    min_len: int
    max_len: int | None
    positive: bool
    located: bool
    loopy: bool
    free: int
    row: Row | None
    shifts: Row | None
    first_round: Node | None
    here: Node | None
    live: bool | None
    lengths: tuple[int, int] | None
    least: int
    reach: int
    padded: bool
    core: tuple[Node, int, int] | None
    uid: int

    def __repr__(self) -> str:
        return f"<Node {self.uid} kind={self.kind}>"


class _Ref(weakref.ref):
    __slots__ = ("key",)

    key: Any


# Reentrant: a garbage collection inside the lock may call `_forget` in the same thread.
_lock = threading.RLock()
_table: dict[Any, _Ref] = {}
_word_tables: weakref.WeakValueDictionary[tuple[str, ...], WordTable] = weakref.WeakValueDictionary()
_uids = itertools.count()


def _forget(ref: _Ref) -> None:
    with _lock:
        if _table.get(ref.key) is ref:
            del _table[ref.key]


def _known(key: Any) -> Node | None:
    ref = _table.get(key)
    return None if ref is None else ref()


def _new(
    key: Any,
    kind: int,
    items: tuple[Node, ...] = (),
    *,
    nullable: bool,
    min_len: int,
    max_len: int | None,
    positive: bool = False,
    located: bool = False,
    loopy: bool = False,
    free: int = 0,
    lo: int = 0,
    hi: int | None = None,
    var: int = 0,
    payload: Any = None,
) -> Node:
    node = Node()
    node.kind = kind
    node.items = items
    node.nullable = nullable
    node.min_len = min_len
    node.max_len = max_len
    node.positive = positive
    node.located = located
    node.loopy = loopy
    node.free = free
    node.lo = lo
    node.hi = hi
    node.var = var
    if kind == KIND_CHARS:
        node.chars = payload
    elif kind == KIND_WORDS:
        node.words = payload
    elif kind == KIND_STATE:
        node.state = payload
    node.row = None
    node.shifts = None
    node.first_round = None
    node.here = None
    node.live = True if nullable or (positive and kind != KIND_EMPTY) else None
    node.lengths = None
    node.least = NO_STRING if kind == KIND_EMPTY else min_len
    node.reach = NO_STRING
    node.padded = False
    node.core = None
    node.uid = next(_uids)
    ref = _Ref(node, _forget)
    ref.key = key
    with _lock:
        other = _known(key)
        if other is not None:
            return other
        _table[key] = ref
    return node


EMPTY: Final = _new((KIND_EMPTY,), KIND_EMPTY, nullable=False, min_len=0, max_len=0, positive=True)
EMPTY.live = False
EPSILON: Final = _new((KIND_EPSILON,), KIND_EPSILON, nullable=True, min_len=0, max_len=0, positive=True)


def chars(allowed: CharSet) -> Node:
    """One character of `allowed`."""
    key = (KIND_CHARS, allowed.uid)
    found = _known(key)
    if found is not None:
        return found
    if not allowed:
        return EMPTY
    return _new(key, KIND_CHARS, nullable=False, min_len=1, max_len=1, positive=True, payload=allowed)


def state(recognizer: Recognizer, at: Any) -> Node:
    """What a recognizer accepts from one of its states."""
    key = (KIND_STATE, recognizer, at)
    found = _known(key)
    if found is not None:
        return found
    accepting = recognizer.accepting(at)
    shortest = 0 if accepting else max(1, recognizer.shortest(at))
    node = _new(key, KIND_STATE, nullable=accepting, min_len=shortest, max_len=None, payload=(recognizer, at))
    node.live = accepting or recognizer.is_live(at)
    return node


def words(texts: Iterable[str]) -> Node:
    """Exactly the given strings. They must not contain surrogates. Cost: one sort."""
    ordered = tuple(sorted(set(texts)))
    if not ordered:
        return EMPTY
    return _suffixes(_word_table(ordered), 0, len(ordered), 0)


def word(text: str) -> Node:
    """Exactly one string."""
    if not text:
        return EPSILON
    if len(text) == 1:
        return chars(CharSet.single(ord(text)))
    return _suffixes(_word_table((text,)), 0, 1, 0)


def _word_table(ordered: tuple[str, ...]) -> WordTable:
    with _lock:
        table = _word_tables.get(ordered)
        if table is None:
            table = WordTable()
            table.words = ordered
            table.uid = next(_uids)
            _word_tables[ordered] = table
        return table


def _suffixes(table: WordTable, start: int, end: int, depth: int) -> Node:
    """What follows the first `depth` characters, common to `table.words[start:end]`."""
    key = (KIND_WORDS, table.uid, start, end, depth)
    found = _known(key)
    if found is not None:
        return found
    nullable = len(table.words[start]) == depth
    if end - start == 1:
        remaining = len(table.words[start]) - depth
        if remaining <= 1:
            return EPSILON if nullable else chars(CharSet.single(ord(table.words[start][depth])))
        if depth and remaining <= _CANONICAL_SUFFIX:
            return _suffixes(_word_table((table.words[start][depth:],)), 0, 1, 0)
        shortest = longest = remaining
    else:
        sizes = [len(text) for text in table.words[start:end]]
        shortest, longest = min(sizes) - depth, max(sizes) - depth
        if longest == 1:
            single = chars(CharSet.of((ord(text[depth]), ord(text[depth])) for text in table.words[start:end] if len(text) > depth))
            return rep(single, 0, 1) if nullable else single
    return _new(
        key,
        KIND_WORDS,
        nullable=nullable,
        min_len=shortest,
        max_len=longest,
        positive=True,
        payload=(table, start, end, depth),
    )


def word_row(node: Node) -> list[tuple[CharSet, Node]]:
    """First characters of a WORDS node and the suffix sets after them."""
    table, start, end, depth = node.words
    result: list[tuple[CharSet, Node]] = []
    index = start + 1 if node.nullable else start
    while index < end:
        char = table.words[index][depth]
        stop = index + 1
        if stop < end:
            stop = bisect_right(table.words, char, stop, end, key=lambda text: text[depth])
        result.append((CharSet.single(ord(char)), _suffixes(table, index, stop, depth + 1)))
        index = stop
    return result


def cat(head: Node, tail: Node, budget: Budget | None = None) -> Node:
    """`head` followed by `tail`, associated to the right. Cost: the length of `head`, spent from `budget`."""
    if head.kind == KIND_CAT and tail.kind > KIND_EPSILON:
        spine: list[Node] = []
        while head.kind == KIND_CAT:
            spine.append(head.items[0])
            head = head.items[1]
        if budget is not None:
            budget.spend(NODE_PRICE * len(spine))
        result = _cat(head, tail)
        for part in reversed(spine):
            result = _cat(part, result)
        return result
    return _cat(head, tail)


def _cat(head: Node, tail: Node) -> Node:
    """`cat` of a head that is not a CAT itself."""
    if head.kind <= KIND_EPSILON:
        return EMPTY if head is EMPTY else tail
    if tail.kind <= KIND_EPSILON:
        return EMPTY if tail is EMPTY else head
    key = (KIND_CAT, head.uid, tail.uid)
    found = _known(key)
    if found is not None:
        return found
    merged = _merge_repetitions(head, tail)
    if merged is not None:
        return merged
    max_len = None if head.max_len is None or tail.max_len is None else head.max_len + tail.max_len
    return _new(
        key,
        KIND_CAT,
        (head, tail),
        nullable=head.nullable and tail.nullable,
        min_len=head.min_len + tail.min_len,
        max_len=max_len,
        positive=head.positive and tail.positive,
        located=head.located or tail.located,
        loopy=head.loopy or tail.loopy,
        free=head.free | tail.free,
    )


def _merge_repetitions(head: Node, tail: Node) -> Node | None:
    """`x{a,b} x{c,d} rest` is `x{a+c,b+d} rest`, where a plain `x` counts as `x{1,1}`; None if it has another shape.
    Of two plain ones, only characters are joined."""
    first = tail.items[0] if tail.kind == KIND_CAT else tail
    if head.kind == KIND_REP:
        body, lo, hi = head.items[0], head.lo, head.hi
        if first.kind == KIND_REP and first.items[0] is body:
            lo, hi = lo + first.lo, _add(hi, first.hi)
        elif first is body:
            lo, hi = lo + 1, _add(hi, 1)
        else:
            return None
    elif first.kind == KIND_REP and first.items[0] is head:
        body, lo, hi = head, first.lo + 1, _add(first.hi, 1)
    elif first is head and head.kind == KIND_CHARS:
        body, lo, hi = head, 2, 2
    else:
        return None
    merged = rep(body, lo, hi)
    return _cat(merged, tail.items[1]) if tail.kind == KIND_CAT else merged


def rep(body: Node, lo: int, hi: int | None) -> Node:
    """`body` repeated `lo` to `hi` times (None = without bound)."""
    if hi == 0:
        return EPSILON
    if lo == 1 and hi == 1:
        return body
    if body.kind <= KIND_EPSILON:
        return EPSILON if body is EPSILON or lo == 0 else EMPTY
    if body.nullable and not body.located:
        lo = 0
    key = (KIND_REP, body.uid, lo, hi)
    found = _known(key)
    if found is not None:
        return found
    if body.kind == KIND_REP:
        nested = _flatten_repetition(body, lo, hi)
        if nested is not None:
            return nested
    if body.kind == KIND_ALT and EPSILON in body.items:
        return rep(alt([item for item in body.items if item is not EPSILON]), 0, hi)
    max_len = None if hi is None or body.max_len is None else body.max_len * hi
    return _new(
        key,
        KIND_REP,
        (body,),
        nullable=lo == 0,
        min_len=body.min_len * lo,
        max_len=max_len,
        positive=body.positive,
        located=body.located,
        loopy=body.loopy,
        free=body.free,
        lo=lo,
        hi=hi,
    )


def _flatten_repetition(body: Node, lo: int, hi: int | None) -> Node | None:
    """`x{a,b}{lo,hi}` as one repetition where the reachable counts have no gaps, else None."""
    inner, a, b = body.items[0], body.lo, body.hi
    total = None if hi is None or b is None else hi * b
    if a <= 1 or lo == hi or (b is None and lo > 0):
        return rep(inner, lo * a, total)
    return None


def _add(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def alt(nodes: Iterable[Node]) -> Node:
    """The union."""
    flat: dict[int, Node] = {}
    allowed: CharSet | None = None
    with_empty = False
    complemented = False
    counted = 0
    stack = list(nodes)
    stack.reverse()
    while stack:
        node = stack.pop()
        kind = node.kind
        if kind == KIND_ALT:
            stack.extend(node.items)
        elif kind == KIND_CHARS:
            allowed = node.chars if allowed is None else allowed | node.chars
        elif kind == KIND_EPSILON:
            with_empty = True
        elif kind != KIND_EMPTY:
            if node is ANYTHING:
                return ANYTHING
            flat[node.uid] = node
            if kind == KIND_NOT:
                complemented = True
            elif kind == KIND_REP or (kind == KIND_CAT and node.items[0].kind == KIND_REP):
                counted += 1
    if allowed is not None:
        single = chars(allowed)
        flat[single.uid] = single
    if with_empty:
        flat[EPSILON.uid] = EPSILON
    if len(flat) > 1:
        if complemented and any(node.kind == KIND_NOT and node.items[0].uid in flat for node in flat.values()):
            return ANYTHING
        if counted:
            flat = _merge_counters(flat)
            if ANYTHING.uid in flat:
                return ANYTHING
        if with_empty and any(node is not EPSILON and node.nullable and not node.located for node in flat.values()):
            flat.pop(EPSILON.uid, None)
        if len(flat) > 1:
            flat = _absorb(flat, KIND_AND)
    if len(flat) <= 1:
        return next(iter(flat.values()), EMPTY)
    return _alt_of(flat)


def _alt_of(flat: dict[int, Node]) -> Node:
    uids = sorted(flat)
    key = (KIND_ALT, *uids)
    found = _known(key)
    if found is not None:
        return found
    items = tuple([flat[uid] for uid in uids])
    longest: int | None = 0
    nullable = located = loopy = False
    positive = True
    free = 0
    for node in items:
        nullable = nullable or node.nullable
        positive = positive and node.positive
        located = located or node.located
        loopy = loopy or node.loopy
        free |= node.free
        if longest is not None:
            longest = None if node.max_len is None else max(longest, node.max_len)
    return _new(
        key,
        KIND_ALT,
        items,
        nullable=nullable,
        min_len=min([node.min_len for node in items]),
        max_len=longest,
        positive=positive,
        located=located,
        loopy=loopy,
        free=free,
    )


class _Counters:
    """Alternatives `body{lo,hi} tail` that differ in their counts only."""

    __slots__ = ("body", "entries", "tail")

    def __init__(self, body: Node, tail: Node):
        self.body = body
        self.tail = tail
        self.entries: list[tuple[int, int | None, Node]] = []


def _merge_counters(flat: dict[int, Node]) -> dict[int, Node]:
    """Join `x{a,b} rest` and `x{c,d} rest` where the counts overlap or touch; a plain `x rest` counts as `x{1,1} rest`."""
    groups: dict[tuple[int, int], _Counters] = {}
    for node in flat.values():
        head, tail = (node.items[0], node.items[1]) if node.kind == KIND_CAT else (node, EPSILON)
        if head.kind == KIND_REP:
            body = head.items[0]
            group = groups.get((body.uid, tail.uid))
            if group is None:
                group = groups[body.uid, tail.uid] = _Counters(body, tail)
            group.entries.append((head.lo, head.hi, node))
    for node in flat.values():
        head, tail = (node.items[0], node.items[1]) if node.kind == KIND_CAT else (node, EPSILON)
        group = groups.get((head.uid, tail.uid))
        if group is not None:
            group.entries.append((1, 1, node))
        if EPSILON.uid in flat and head is node:
            group = groups.get((node.items[0].uid, EPSILON.uid)) if node.kind == KIND_REP else None
            if group is not None:
                group.entries.append((0, 0, EPSILON))
    result = flat
    for group in groups.values():
        if len(group.entries) > 1:
            if result is flat:
                result = dict(flat)
            _merge_group(group, result)
    return result


def _merge_group(group: _Counters, result: dict[int, Node]) -> None:
    entries = sorted(group.entries, key=lambda entry: entry[0])
    index = 0
    while index < len(entries):
        lo, hi, _ = entries[index]
        stop = index + 1
        while stop < len(entries) and (hi is None or entries[stop][0] <= hi + 1):
            other = entries[stop][1]
            hi = None if hi is None or other is None else max(hi, other)
            stop += 1
        if stop > index + 1:
            for _, _, node in entries[index:stop]:
                if node is not EPSILON:
                    result.pop(node.uid, None)
            merged = cat(rep(group.body, lo, hi), group.tail)
            result[merged.uid] = merged
        index = stop


def _absorb(flat: dict[int, Node], dual: int) -> dict[int, Node]:
    """`a | (a & b)` is `a`, and `a & (a | b)` is `a`."""
    doomed = {node.uid for node in flat.values() if node.kind == dual and any(item.uid in flat for item in node.items)}
    if not doomed:
        return flat
    return {uid: node for uid, node in flat.items() if uid not in doomed}


def conj(nodes: Iterable[Node]) -> Node:
    """The intersection."""
    flat: dict[int, Node] = {}
    uniform: tuple[CharSet, int, int | None] | None = None
    stack = list(nodes)
    while stack:
        node = stack.pop()
        kind = node.kind
        if kind == KIND_AND:
            stack.extend(node.items)
            continue
        if kind == KIND_EMPTY:
            return EMPTY
        counted = _uniform_run(node)
        if counted is None:
            flat[node.uid] = node
        else:
            uniform = counted if uniform is None else _meet_runs(uniform, counted)
    if uniform is not None:
        allowed, lo, hi = uniform
        if hi is not None and allowed is ALL_CHARS:
            hi = _bound_states(flat, hi)
        run = EMPTY if hi is not None and lo > hi else rep(chars(allowed), lo, hi)
        if not flat or run is EMPTY:
            return run
        if any(_length_outside(node, run) for node in flat.values()):
            return EMPTY
        if allowed is not ALL_CHARS or not any(_length_inside(node, lo, hi) for node in flat.values()):
            flat[run.uid] = run
    if not flat:
        return ANYTHING
    if len(flat) > 1:
        flat = _with_small_states(flat)
        if EMPTY.uid in flat:
            return EMPTY
        settled = _conj_rules(flat)
        if settled is not None:
            return settled
        flat = _absorb(flat, KIND_ALT)
    if len(flat) == 1:
        return next(iter(flat.values()))
    return _conj_of(flat)


def _bound_states(flat: dict[int, Node], hi: int) -> int | None:
    """Moves the upper bound of a length into a recognizer of `flat` that can count itself; what is left of the bound."""
    for node in flat.values():
        if node.kind == KIND_STATE:
            recognizer, at = node.state
            bounded = recognizer.at_most(at, hi)
            if bounded is not None:
                del flat[node.uid]
                node = state(recognizer, bounded)
                flat[node.uid] = node
                return None
    return hi


def _with_small_states(flat: dict[int, Node]) -> dict[int, Node]:
    """The parts of a conjunction, recognizers in states that may stand there."""
    if not any(map(_has_state, flat.values())) or sum(not _is_length(node) for node in flat.values()) == 1:
        return flat
    small = [_small(node) for node in flat.values()]
    return {node.uid: node for node in small}


def _has_state(node: Node) -> bool:
    return node.kind == KIND_STATE or (node.kind == KIND_ALT and any(item.kind == KIND_STATE for item in node.items))


def are_few_parts(node: Node, most: int) -> bool:
    """Whether the conjunctions in it have at most so many parts together, and no part is a recognizer. Cost: its size."""
    seen: set[int] = set()
    stack = [node]
    parts = 0
    while stack:
        node = stack.pop()
        if node.positive or node.uid in seen:
            continue
        seen.add(node.uid)
        parts += len(node.items) if node.kind == KIND_AND else 0
        if node.kind == KIND_STATE or parts > most:
            return False
        stack.extend(node.items)
    return True


def _small(node: Node) -> Node:
    if node.kind == KIND_ALT and _has_state(node):
        return alt([_small(item) for item in node.items])
    if node.kind != KIND_STATE:
        return node
    recognizer, at = node.state
    at = recognizer.beside_others(at)
    return EMPTY if at is None else state(recognizer, at)


def _is_length(node: Node) -> bool:
    run = _uniform_run(node)
    return run is not None and run[0] is ALL_CHARS


def _conj_rules(flat: dict[int, Node]) -> Node | None:
    if EPSILON.uid in flat and not any(node.located or node.free or node.loopy for node in flat.values()):
        return EPSILON if all(node.nullable for node in flat.values()) else EMPTY
    if any(node.kind == KIND_NOT and node.items[0].uid in flat for node in flat.values()):
        return EMPTY
    loops = [node for node in flat.values() if node.kind == KIND_ALT and node.loopy]
    terms = 1
    for node in loops:
        terms *= len(node.items)
    if loops and terms <= _MAX_DISTRIBUTED_TERMS:
        first = loops[0]
        others = [node for node in flat.values() if node is not first]
        return alt([conj([item, *others]) for item in first.items])
    return None


def _conj_of(flat: dict[int, Node]) -> Node:
    uids = sorted(flat)
    key = (KIND_AND, *uids)
    found = _known(key)
    if found is not None:
        return found
    items = tuple([flat[uid] for uid in uids])
    longest: int | None = None
    nullable = True
    located = loopy = False
    free = 0
    for node in items:
        nullable = nullable and node.nullable
        located = located or node.located
        loopy = loopy or node.loopy
        free |= node.free
        if node.max_len is not None:
            longest = node.max_len if longest is None else min(longest, node.max_len)
    shortest = max([node.min_len for node in items])
    if longest is not None and shortest > longest:
        return EMPTY
    return _new(
        key,
        KIND_AND,
        items,
        nullable=nullable,
        min_len=shortest,
        max_len=longest,
        located=located,
        loopy=loopy,
        free=free,
    )


def _uniform_run(node: Node) -> tuple[CharSet, int, int | None] | None:
    """`(set, lo, hi)` of a node that is one set of characters repeated, else None."""
    if node.kind == KIND_CHARS:
        return node.chars, 1, 1
    if node.kind == KIND_EPSILON:
        return ALL_CHARS, 0, 0
    if node.kind == KIND_REP and node.items[0].kind == KIND_CHARS:
        return node.items[0].chars, node.lo, node.hi
    return None


def _meet_runs(left: tuple[CharSet, int, int | None], right: tuple[CharSet, int, int | None]) -> tuple[CharSet, int, int | None]:
    bounds = [hi for hi in (left[2], right[2]) if hi is not None]
    return left[0] & right[0], max(left[1], right[1]), min(bounds, default=None)


def _length_outside(node: Node, run: Node) -> bool:
    return (run.max_len is not None and node.min_len > run.max_len) or (node.max_len is not None and node.max_len < run.min_len)


def _length_inside(node: Node, lo: int, hi: int | None) -> bool:
    return node.min_len >= lo and (hi is None or (node.max_len is not None and node.max_len <= hi))


def complement(node: Node) -> Node:
    """Every string that `node` does not accept."""
    if node.kind == KIND_NOT:
        return node.items[0]
    if node is EMPTY:
        return ANYTHING
    windows = _length_windows(node)
    if windows is not None:
        return _outside_lengths(windows)
    key = (KIND_NOT, node.uid)
    found = _known(key)
    if found is not None:
        return found
    nullable = not node.nullable
    return _new(
        key,
        KIND_NOT,
        (node,),
        nullable=nullable,
        min_len=0 if nullable or node.located else 1,
        max_len=None,
        located=node.located,
        loopy=node.loopy,
        free=node.free,
    )


def _length_windows(node: Node) -> list[tuple[int, int | None]] | None:
    """Sorted `(lo, hi)` of a node that only asks for lengths, else None."""
    windows: list[tuple[int, int | None]] = []
    for item in node.items if node.kind == KIND_ALT else (node,):
        run = _uniform_run(item)
        if run is None or run[0] is not ALL_CHARS:
            return None
        windows.append(run[1:])
    windows.sort(key=lambda window: window[0])
    return windows


def _outside_lengths(windows: list[tuple[int, int | None]]) -> Node:
    parts: list[Node] = []
    free: int | None = 0
    for lo, hi in windows:
        if free is not None:
            parts.append(length(free, lo - 1))
            free = None if hi is None else max(free, hi + 1)
    if free is not None:
        parts.append(length(free, None))
    return alt(parts)


def length(lo: int, hi: int | None) -> Node:
    """Every string of `lo` to `hi` code points."""
    if hi is not None and lo > hi:
        return EMPTY
    return rep(_ANY_CHAR, lo, hi)


def behind(prefix: Node) -> Node:
    """The empty string where `prefix` accepts what was read, else nothing."""
    if prefix is EMPTY or prefix is ANYTHING:
        return EMPTY if prefix is EMPTY else EPSILON
    key = (KIND_BEHIND, prefix.uid)
    found = _known(key)
    if found is not None:
        return found
    return _new(key, KIND_BEHIND, (prefix,), nullable=prefix.nullable, min_len=0, max_len=0, located=True)


def variable(index: int) -> Node:
    key = (KIND_VAR, index)
    found = _known(key)
    if found is not None:
        return found
    return _new(key, KIND_VAR, nullable=False, min_len=0, max_len=None, loopy=True, free=1 << index, var=index)


def loop(body: Node, tail: Node, lo: int, hi: int | None, var: int) -> Node:
    """Repeat `body`, whose `VAR(var)` is the rest of the loop, `lo` to `hi` times, then `tail`.

    Each round of `body` must read at least one character before its variable is reached.
    """
    if hi == 0:
        return tail
    key = (KIND_LOOP, body.uid, tail.uid, lo, hi, var)
    found = _known(key)
    if found is not None:
        return found
    return _new(
        key,
        KIND_LOOP,
        (body, tail),
        nullable=lo == 0 and tail.nullable,
        min_len=lo + tail.min_len,
        max_len=None,
        located=body.located or tail.located,
        loopy=True,
        free=(body.free & ~(1 << var)) | tail.free,
        lo=lo,
        hi=hi,
        var=var,
    )


def seal(node: Node) -> Node:
    """`node`, its lookbehinds starting where the node itself starts."""
    if not node.located:
        return node
    key = (KIND_SEAL, node.uid)
    found = _known(key)
    if found is not None:
        return found
    return _new(
        key,
        KIND_SEAL,
        (node,),
        nullable=node.nullable,
        min_len=node.min_len,
        max_len=node.max_len,
    )


def rebuild(node: Node, items: tuple[Node, ...]) -> Node:
    """The same operator over other children."""
    return _REBUILD[node.kind](node, items)


_REBUILD: dict[int, Callable[[Node, tuple[Node, ...]], Node]] = {
    KIND_CAT: lambda node, items: cat(items[0], items[1]),
    KIND_ALT: lambda node, items: alt(items),
    KIND_AND: lambda node, items: conj(items),
    KIND_NOT: lambda node, items: complement(items[0]),
    KIND_REP: lambda node, items: rep(items[0], node.lo, node.hi),
    KIND_BEHIND: lambda node, items: behind(items[0]),
    KIND_LOOP: lambda node, items: loop(items[0], items[1], node.lo, node.hi, node.var),
    KIND_SEAL: lambda node, items: seal(items[0]),
}

_ANY_CHAR: Final = chars(ALL_CHARS)
ANYTHING: Final = _new(
    (KIND_REP, _ANY_CHAR.uid, 0, None),
    KIND_REP,
    (_ANY_CHAR,),
    nullable=True,
    min_len=0,
    max_len=None,
    positive=True,
)
