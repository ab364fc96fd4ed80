"""The one representation of a context-free grammar that every notation is read into.

It is flat: a group, and whatever else is written inside a rule, is a rule of its own without a written name. Nothing here is nested,
so that no later step can run out of stack. Nothing is changed once it is made, but what is made by the hundred is not frozen, since
that doubles the time it takes to make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..errors import GrammarError
from ..json_schema.document import Document
from ..regex import Language


@dataclass(kw_only=True, eq=False)
class Terminal:
    """A set of texts, matched wherever the parse wants it to end (GBNF, EBNF).

    Attributes:
        literal: the text, if it is just one.
        texts: the texts, if they are not one literal.
    """

    literal: str | None = None
    texts: Language | None = None

    @cached_property
    def language(self) -> Language:
        if self.literal is not None:
            return Language.literal(self.literal)
        assert self.texts is not None
        return self.texts


@dataclass(kw_only=True, unsafe_hash=True)
class Lexeme:
    """A regular expression that ends where `re.match` ends it, whatever the parse would prefer (Lark).

    Attributes:
        pattern: the regular expression, dialect of the module `re`.
        literal: the text, if the pattern is just one.
        name: how the terminal is called in messages.
        position: offset in the grammar text.
    """

    pattern: str
    literal: str | None = field(compare=False)
    name: str = field(compare=False)
    position: int | None = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class SpecialToken:
    """One of some special tokens.

    Attributes:
        tokens: their names or ids.
        position: offset in the grammar text.
    """

    tokens: tuple[str | int, ...]
    position: int | None = field(compare=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class JsonValue:
    """A JSON value that a schema admits.

    Attributes:
        document: the schema, checked.
        position: offset in the grammar text.
    """

    document: Document
    position: int

    def placed(self, error: GrammarError) -> GrammarError:
        """The error of a schema, placed in the grammar text too."""
        return type(error)(error.reason, pointer=error.pointer or "", position=self.position, expected=error.expected)


@dataclass(kw_only=True, unsafe_hash=True)
class Reference:
    """What a rule derives."""

    name: str
    position: int | None = field(default=None, compare=False)


@dataclass(kw_only=True, eq=False)
class Repeat:
    """`minimum` to `maximum` times one symbol (None = no upper bound)."""

    symbol: Atom
    minimum: int
    maximum: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Difference:
    """Texts of one symbol that another does not have. Both must be regular."""

    whole: Atom
    removed: Atom
    position: int


Embedded = SpecialToken | JsonValue
Atom = Terminal | Lexeme | Embedded | Reference
Symbol = Atom | Repeat | Difference
Alternative = tuple[Symbol, ...]


@dataclass(kw_only=True, eq=False)
class Rule:
    """One rule.

    Attributes:
        name: unique; what references name.
        alternatives: each a sequence of symbols, the empty one derives the empty text.
        owner: the written rule that this one is a part of (its own name if it was written).
        position: offset of the written rule in the grammar text; None for a rule that was imported.
    """

    name: str
    alternatives: tuple[Alternative, ...]
    owner: str
    position: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextFreeGrammar:
    """A grammar whose references are all defined.

    Attributes:
        rules: by name.
        start: name of the start rule.
        ignored: lexemes that may stand before and after every lexeme.
        unused: written rules that are not among `rules`, since the start rule never leads to them.
    """

    rules: Mapping[str, Rule]
    start: str
    ignored: tuple[Lexeme, ...] = ()
    unused: tuple[str, ...] = ()

    def embedded(self) -> Iterator[Embedded]:
        """The JSON values and special tokens in its rules."""
        for rule in self.rules.values():
            for symbol in (symbol for alternative in rule.alternatives for symbol in alternative):
                atom = symbol.symbol if isinstance(symbol, Repeat) else symbol
                if isinstance(atom, Embedded):
                    yield atom
