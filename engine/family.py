"""Requests for several answers to one prompt."""

from __future__ import annotations

from collections.abc import Sequence

from .sequence import TokenSequence


class Family:
    """Requests that share a prompt. One of them computes it; the others wait for that, and go on from its blocks.

    Attributes:
        running: members that have blocks.
        parked: members that were next in line while the prompt was being computed.
        num_members: those that have not ended.
    """

    def __init__(self, name: str, prompt: Sequence[int], salt: str | None):
        self.name = name
        self._prompt = list(prompt)
        self._salt = salt
        self.running: list[TokenSequence] = []
        self.parked: list[TokenSequence] = []
        self.num_members = 0

    def has(self, prompt: Sequence[int], salt: str | None) -> bool:
        """Whether this is the family of a prompt."""
        return self._salt == salt and self._prompt == list(prompt)

    @property
    def source(self) -> TokenSequence | None:
        """A running member that has computed the whole prompt."""
        return next((member for member in self.running if member.num_computed >= len(self._prompt)), None)

    @property
    def is_computing(self) -> bool:
        """Whether the prompt will be there soon."""
        return bool(self.running) and self.source is None

    def num_shared(self, member: TokenSequence) -> int:
        """Tokens of which the member can use the keys and values of the source. Its last token is its own, for the logits."""
        return min(len(self._prompt), len(member.token_ids) - 1)

    def unpark(self) -> list[TokenSequence]:
        """Empties `parked`; those of them that are still open."""
        parked, self.parked = self.parked, []
        return [member for member in parked if not member.closed]


class FamilyBook:
    """The families of all open requests, by name."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def join(self, name: str, sequence: TokenSequence) -> None:
        """Makes a new request a member, unless the name stands for another prompt."""
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = Family(name, sequence.token_ids, sequence.salt)
        if family.has(sequence.token_ids, sequence.salt):
            sequence.family = family
            self.add(sequence)

    def add(self, sequence: TokenSequence) -> None:
        """The request is one more member of its family, if it has one."""
        if sequence.family is not None:
            sequence.family.num_members += 1

    def leave(self, sequence: TokenSequence) -> None:
        """The request has ended."""
        family = sequence.family
        if family is not None:
            family.num_members -= 1
            if family.num_members == 0:
                del self._families[family.name]
