"""Where the names of an object may stand: the order that `property_order="schema"` keeps."""

from __future__ import annotations

from typing import NamedTuple

from .names import Names
from .shapes import ObjectShape


class KeyOrder(NamedTuple):
    """Required declared names come in one of the `sequences`; all else comes anywhere, but for names that wait.

    Attributes:
        sequences: orders of the required declared names, each complete. An object keeps to one of them.
        ordered: bit set of the names in the sequences.
        waiting: bit set of the names that come behind all ordered ones.
    """

    sequences: tuple[tuple[int, ...], ...] = ((),)
    ordered: int = 0
    waiting: int = 0

    @staticmethod
    def of_schema(names: Names, shape: ObjectShape) -> KeyOrder:
        """The order of `properties`, and that of `required` where the former is alphabetical, as if a program had sorted it. Names
        that the schema does not speak of wait, so that a model cannot wander off first."""
        ordered, required = names.ordered, frozenset(shape.required)
        sequences = [[name for name in ordered if name in required]]
        if len(sequences[0]) > 1 and list(ordered) == sorted(ordered):
            declared = frozenset(ordered)
            sequences.append([name for name in shape.required if name in declared])
        waiting: list[str] = []
        if len(names.sorted) > len(ordered):
            spoken_of = required.union(ordered)
            waiting = [name for name in names.sorted if name not in spoken_of and not names.invited(name)]
        if not sequences[0] and not waiting:
            return KeyOrder()
        indices = dict.fromkeys(tuple([names.index[name] for name in sequence]) for sequence in sequences)
        return KeyOrder(tuple(indices), names.bits(sequences[0]), names.bits(waiting))

    @property
    def all_open(self) -> int:
        """Bit set of all sequences."""
        return (1 << len(self.sequences)) - 1

    def is_complete(self, seen: int) -> bool:
        """Whether all ordered names are among the names `seen`."""
        return not self.ordered & ~seen

    def held_back(self, seen: int, open_sequences: int) -> int:
        """Names that may not come next."""
        missing = self.ordered & ~seen
        if not missing:
            return 0
        at = (self.ordered & seen).bit_count()
        following = 0
        for k, sequence in enumerate(self.sequences):
            if open_sequences >> k & 1:
                following |= 1 << sequence[at]
        return missing & ~following | self.waiting

    def after(self, seen: int, open_sequences: int, name: int) -> int:
        """The sequences still open once `name` comes behind the names `seen`."""
        if not self.ordered >> name & 1:
            return open_sequences
        at = (self.ordered & seen).bit_count()
        return sum(1 << k for k, sequence in enumerate(self.sequences) if open_sequences >> k & 1 and sequence[at] == name)
