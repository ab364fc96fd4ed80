"""The names that an object tells apart, and what the value of each must be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..cancellation import check
from ..errors import LimitError
from ..lazily import lazy
from ..regex import Language
from .emptiness import members
from .nodes import NOTHING, Node
from .shapes import ObjectShape

if TYPE_CHECKING:
    from .expand import Expander

_MAX_CLASSES = 30  # bits of KEY_CLASSES
_MAX_LISTED = 64  # a class of undeclared names with at most so many members is listed as names


class NameClass(NamedTuple):
    """Undeclared names that are alike.

    Attributes:
        language: the names; None: every name.
        node: what their values must be.
        invited: the schema speaks of them itself: by a pattern, or by `additionalProperties`.
    """

    language: Language | None
    node: Node
    invited: bool


class Names:
    """The names an object shape tells apart, and the node of each name's value. Parts are made when first asked for.

    Args:
        expander: expands nodes.
        shape: the object shape.
        more: further names to tell apart.
    """

    def __init__(self, expander: Expander, shape: ObjectShape, more: Iterable[str] = ()):
        self._expander = expander
        self._shape = shape
        self._more = tuple(more)
        self._nodes: dict[str, Node] = {}

    @lazy
    def ordered(self) -> tuple[str, ...]:
        """Names that `properties` declares, in the order of the schema."""
        return tuple(dict.fromkeys(name for m in self._shape.members for name in m.properties))

    @lazy
    def mentioned(self) -> tuple[str, ...]:
        """All names that the schema mentions: the declared ones first."""
        shape = self._shape
        names = dict.fromkeys((*self.ordered, *shape.required, *self._more))
        for name, needed in shape.dependencies:
            names.update(dict.fromkeys((name, *sorted(needed))))
        return tuple(names)

    def node(self, name: str) -> Node:
        """What the value of a member called `name` must be."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = self._value_of(name)
        return node

    def _value_of(self, name: str) -> Node:
        check()
        if self._shape.names is not None and not self._shape.names.matches(name):
            return NOTHING
        if not name.isascii() and any("\ud800" <= char <= "\udfff" for char in name):
            return NOTHING  # no text can hold it
        if len(self._shape.members) == 1 and not self._shape.members[0].patterns:
            return self._shape.members[0].known(name)
        parts: list[Node] = []
        for m in self._shape.members:
            matched = [node for language, node in m.patterns if language.matches(name)]
            if name in m.properties:
                matched.append(m.properties[name])
            parts.extend(matched or (m.additional,))
        return self._expander.nodes.all_of(parts)

    @lazy
    def _invites(self) -> bool:
        return any(m.invites for m in self._shape.members)

    def invited(self, name: str) -> bool:
        """Whether the schema speaks of the undeclared `name` itself: by a pattern, or by `additionalProperties`."""
        return self._invites or any(language.matches(name) for m in self._shape.members for language, _ in m.patterns)

    @lazy
    def _split(self) -> tuple[tuple[NameClass, ...], tuple[str, ...]]:
        """Classes of undeclared names by the patterns they match; small ones as lists of names."""
        expander, shape = self._expander, self._shape
        limits = expander.limits
        languages = dict.fromkeys(language for m in shape.members for language, _ in m.patterns)
        languages.update(dict.fromkeys(w.names for w in shape.witnesses))
        if len(languages) > 8 * _MAX_CLASSES:
            raise LimitError(f"there are more than {8 * _MAX_CLASSES} name patterns", pointer=shape.pointer)
        if not languages and shape.names is None:
            node = expander.nodes.all_of(m.additional for m in shape.members)
            return ((NameClass(None, node, self._invites),) if node is not NOTHING else ()), ()
        patterns = frozenset(language for m in shape.members for language, _ in m.patterns)
        parts: list[tuple[Language | None, frozenset[Language]]] = [(shape.names, frozenset())]
        for language in languages:
            split: list[tuple[Language | None, frozenset[Language]]] = []
            for part, matched in parts:
                inside = language if part is None else part & language
                outside = ~language if part is None else part & ~language
                if not inside.is_empty(limits):
                    split.append((inside, matched | {language}))
                if not outside.is_empty(limits):
                    split.append((outside, matched))
            parts = split
            if len(parts) > 8 * _MAX_CLASSES:
                raise LimitError("the name patterns overlap in too many ways", pointer=shape.pointer)
        classes: list[NameClass] = []
        listed: list[str] = []
        for part, matched in parts:
            assert part is not None
            node = self._class_node(matched)
            if node is NOTHING:
                continue
            declared = [n for n in self.mentioned if part.matches(n)]
            rest = part & ~Language.literals(declared) if declared else part
            if rest.is_empty(limits):
                continue
            found = members(rest, _MAX_LISTED, limits)
            if found is None:
                classes.append(NameClass(rest, node, self._invites or not patterns.isdisjoint(matched)))
            else:
                listed.extend(found)
        if len(classes) > _MAX_CLASSES:
            raise LimitError(f"the name patterns tell apart more than {_MAX_CLASSES} classes of names", pointer=shape.pointer)
        return tuple(classes), tuple(listed)

    def _class_node(self, matched: frozenset[Language]) -> Node:
        parts: list[Node] = []
        for m in self._shape.members:
            here = [node for language, node in m.patterns if language in matched]
            parts.extend(here or (m.additional,))
        return self._expander.nodes.all_of(parts)

    @lazy
    def classes(self) -> tuple[NameClass, ...]:
        """Unbounded classes of undeclared names."""
        return self._split[0]

    @lazy
    def unordered(self) -> tuple[str, ...]:
        """Undeclared names of bounded classes."""
        return self._split[1]

    @lazy
    def live_classes(self) -> int:
        """Bit set of classes whose value is inhabited."""
        return sum(1 << j for j, c in enumerate(self.classes) if self._expander.inhabited(c.node))

    # --- in sorted order, where bit sets stand for sets of names --------------------------------------------------------

    @lazy
    def sorted(self) -> tuple[str, ...]:
        return tuple(sorted(self.mentioned + self.unordered))

    @lazy
    def index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.sorted)}

    def bits(self, names: Iterable[str]) -> int:
        """The bit set of some of the names."""
        digits = bytearray(len(self.sorted) // 8 + 1)
        for name in names:
            i = self.index[name]
            digits[i >> 3] |= 1 << (i & 7)
        return int.from_bytes(digits, "little")

    @lazy
    def usable(self) -> int:
        """Names that may have a value; required ones do, else the shape itself has none."""
        required, inhabited = frozenset(self._shape.required), self._expander.inhabited
        digits = ["1" if name in required or inhabited(self.node(name)) else "0" for name in reversed(self.sorted)]
        return int("".join(digits) or "0", 2)

    # --- witnesses -------------------------------------------------------------------------------------------------

    def witness_names(self, index: int) -> frozenset[str]:
        names = self._shape.witnesses[index].names
        return frozenset(n for n in self.mentioned + self.unordered if names.matches(n))

    def witness_node(self, index: int, node: Node) -> Node:
        return self._expander.nodes.all_of((node, self._shape.witnesses[index].node))

    def witness_class(self, index: int, j: int) -> bool:
        """Whether names of class j are names of the witness (classes are split so that all or none are)."""
        language = self.classes[j].language
        return language is None or not (language & self._shape.witnesses[index].names).is_empty(self._expander.limits)


def ones(bits: int) -> Iterator[int]:
    """The places of the ones of a bit set."""
    for k, byte in enumerate(bits.to_bytes((bits.bit_length() + 7) // 8, "little")):
        while byte:
            low = byte & -byte
            yield 8 * k + low.bit_length() - 1
            byte ^= low
