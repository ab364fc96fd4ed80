"""Whitespace policies: what may stand where JSON allows insignificant whitespace (RFC 8259 section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .errors import GrammarError
from .languages import CharAutomaton, Edge
from .limits import Limits

MAX_INDENT = 40  # blanks after a newline under the policy "bounded"

_BLANKS = (0x09, 0x20)
_JSON_WHITESPACE = (0x09, 0x0A, 0x0D, 0x20)


@dataclass(frozen=True, eq=False)
class _Table:
    """A whitespace automaton given by its edges; every state in `accept` may end."""

    table: tuple[tuple[Edge, ...], ...]
    accept: frozenset[int]
    start: int = 0

    def accepting(self, q: int) -> bool:
        return q in self.accept

    def edges(self, q: int) -> tuple[Edge, ...]:
        return self.table[q]

    def universal(self, q: int) -> bool:
        return False

    def tail_count(self, q: int, cap: int) -> int | None:
        return None


def _bounded() -> _Table:
    """Nothing, one space, or a newline and up to MAX_INDENT blanks."""
    space, carriage, newline = 1, 2, 3
    table: list[tuple[Edge, ...]] = [
        ((0x0A, 0x0A, newline), (0x0D, 0x0D, carriage), (0x20, 0x20, space)),
        (),
        ((0x0A, 0x0A, newline),),
    ]
    for k in range(MAX_INDENT + 1):
        target = newline + k + 1
        table.append(tuple((b, b, target) for b in _BLANKS) if k < MAX_INDENT else ())
    return _Table(tuple(table), frozenset(range(len(table))) - {carriage})


def _exact(text: str) -> _Table:
    table = [((ord(c), ord(c), i + 1),) for i, c in enumerate(text)]
    return _Table((*table, ()), frozenset({len(text)}))


NONE = _exact("")
_BOUNDED = _bounded()
_ANY = _Table((tuple((b, b, 0) for b in _JSON_WHITESPACE),), frozenset({0}))


@dataclass(frozen=True, kw_only=True, eq=False)
class Whitespace:
    """One automaton for each place where JSON allows whitespace.

    Attributes:
        before, after: around the whole document.
        opened: after `[` or `{`.
        after_value: before `,`, `]` and `}`.
        after_comma, before_colon, after_colon: around separators.
    """

    before: CharAutomaton
    after: CharAutomaton
    opened: CharAutomaton
    after_value: CharAutomaton
    after_comma: CharAutomaton
    before_colon: CharAutomaton
    after_colon: CharAutomaton

    @staticmethod
    @lru_cache(maxsize=64)
    def policy(name: str, separators: tuple[str, str] | None = None, limits: Limits | None = None) -> Whitespace:
        """`bounded` (default), `compact` (none), `any`, or a regex for each run of whitespace.

        Only `any` and a regex allow whitespace after the document: without it, the last brace ends the answer.

        Args:
            name: the policy.
            separators: exact item and key separators as in `json.dumps`, for example `(", ", ": ")`; whitespace
                may then stand nowhere else unless the policy allows it.
            limits: budgets for a policy given as a regex.

        Raises:
            GrammarError: a regex that allows anything but whitespace, or separators that are none.
        """
        if not isinstance(name, str):
            raise GrammarError(f"whitespace must be a policy or a regex, not {type(name).__name__}")
        run = _run(name, limits or Limits())
        if separators is None:
            after = NONE if name == "bounded" else run
            return Whitespace(
                before=run, after=after, opened=run, after_value=run, after_comma=run, before_colon=run, after_colon=run
            )
        item, key = separators
        if item[:1] != "," or item[1:].strip(" \t\r\n"):
            raise GrammarError(f"the item separator must be a comma and then whitespace, not {item!r}")
        before, colon, after = key.partition(":")
        if not colon or before.strip(" \t\r\n") or after.strip(" \t\r\n"):
            raise GrammarError(f"the key separator must be a colon and whitespace, not {key!r}")
        return Whitespace(
            before=NONE,
            after=NONE,
            opened=NONE,
            after_value=NONE,
            after_comma=_exact(item[1:]),
            before_colon=_exact(before),
            after_colon=_exact(after),
        )


def _run(name: str, limits: Limits) -> CharAutomaton:
    if name == "bounded":
        return _BOUNDED
    if name == "compact":
        return NONE
    if name == "any":
        return _ANY
    from .regex import Language

    allowed = Language.pattern(r"[ \t\n\r]*", "ecma", "full")
    given = Language.pattern(name, "ecma", "full")
    if not (given & ~allowed).is_empty(limits):
        raise GrammarError(f"the whitespace pattern {name!r} matches more than whitespace")
    if given.is_empty(limits):
        raise GrammarError(f"the whitespace pattern {name!r} matches nothing")
    return given.automaton(limits)
