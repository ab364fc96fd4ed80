"""Readings of a text: which marks were passed where, as far as that is undecided.

All readings share their beginnings, so they are a tree. Its root is what all of them agree on; it moves on as soon as only one way
leads away from it. Each entry is made once and dropped once, so the work is linear in the number of marks.
"""

from __future__ import annotations

from collections.abc import Iterator


class Entry:
    """A mark that was passed, or the root."""

    __slots__ = ("children", "holders", "length", "mark", "parent", "position")

    def __init__(self, parent: Entry | None, mark: int, position: int, length: int):
        self.parent = parent
        self.mark = mark
        self.position = position  # of the byte after the boundary
        self.length = length  # of the boundary
        self.children: list[Entry] = []
        self.holders = 0

    @property
    def start(self) -> int:
        return self.position - self.length


class Readings:
    """The tree of readings.

    Attributes:
        root: the last entry that all readings share.
    """

    def __init__(self) -> None:
        self.root = Entry(None, -1, 0, 0)

    def hold(self, entry: Entry) -> Entry:
        """Notes that a reading has got to `entry`."""
        entry.holders += 1
        return entry

    def extend(self, entry: Entry, mark: int, position: int, length: int) -> Entry:
        """A reading that has passed one more mark."""
        child = Entry(entry, mark, position, length)
        entry.children.append(child)
        return self.hold(child)

    def release(self, entry: Entry) -> None:
        """Notes that a reading is dropped."""
        entry.holders -= 1
        while not entry.holders and not entry.children and entry is not self.root:
            parent = entry.parent
            assert parent is not None
            parent.children.remove(entry)
            entry = parent

    def settle(self) -> Iterator[Entry]:
        """Marks that all readings have passed by now and had not before."""
        while not self.root.holders and len(self.root.children) == 1:
            self.root = self.root.children[0]
            self.root.parent = None
            yield self.root

    def first_doubt(self) -> int | None:
        """Where the first boundary begins that only some readings see; None if there is none."""
        return min((child.start for child in self.root.children), default=None)
