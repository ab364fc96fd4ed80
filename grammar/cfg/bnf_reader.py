"""What GBNF and EBNF have in common: `name ::= body`, strings, classes, groups and quantifiers."""

from __future__ import annotations

import re
from typing import ClassVar

from ..errors import GrammarError
from ..languages import MAX_CODE_POINT
from ..limits import Limits
from ..regex import Language
from .ir import Atom, ContextFreeGrammar, Difference, Reference, Repeat, Rule, Symbol, Terminal
from .reader import BodyBuilder, Cursor, like
from .regular import references_of
from .wellformed import check_sentences

_SURROGATES = (0xD800, 0xDFFF)
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_PLAIN = re.compile(r"""[^"'\\\r\n]+""")
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]+")


class BnfReader(Cursor):
    """Reads one grammar; a notation says what is blank, what a name is, and what else can stand in a rule."""

    name_pattern: ClassVar[re.Pattern[str]]
    blank_pattern: ClassVar[re.Pattern[str]]
    escapes: ClassVar[dict[str, str]]
    has_difference: ClassVar[bool] = False

    def __init__(self, text: str, limits: Limits):
        super().__init__(text, limits)
        self._limits = limits
        self._rules: dict[str, Rule] = {}
        self._owner = ""
        self._owner_position = 0
        self._parts = 0

    # What a notation decides.

    def skip(self) -> None:
        """Reads blanks, comments and line ends."""
        self.match(self.blank_pattern)

    def special_atom(self) -> Atom | None:
        """Reads an atom that only this notation has."""
        return None

    # Rules.

    def read(self, root: str) -> ContextFreeGrammar:
        """The whole text."""
        self.skip()
        while not self.at_end:
            self._read_rule()
            self.skip()
        if root not in self._rules:
            raise GrammarError(f"the grammar has no rule {root!r} to start with", position=len(self.text), expected=(f"{root} ::=",))
        self._check_references()
        grammar = ContextFreeGrammar(rules=self._rules, start=root)
        check_sentences(grammar, self._limits)
        return grammar

    def _read_rule(self) -> None:
        position = self.pos
        name = self.match(self.name_pattern)
        if name is None:
            raise self.error("the name of a rule")
        self.skip()
        if not self.take("::="):
            raise self.error("::=")
        if name in self._rules:
            raise GrammarError(f"the rule {name!r} is defined twice", position=position)
        self._owner, self._owner_position, self._parts = name, position, 0
        self._define(name, self._body())

    def _define(self, name: str, alternatives: list[tuple[Symbol, ...]]) -> None:
        self._rules[name] = Rule(name=name, alternatives=tuple(alternatives), owner=self._owner, position=self._owner_position)

    def _add_part(self, alternatives: list[tuple[Symbol, ...]]) -> Symbol:
        self._parts += 1
        name = f"{self._owner} {self._parts}"  # a blank is in no written name
        self._define(name, alternatives)
        return Reference(name=name, position=self._owner_position)

    def _heads_rule(self) -> bool:
        """Whether `name ::=` comes next."""
        start = self.pos
        found = self.match(self.name_pattern) is not None
        if found:
            self.skip()
            found = self.text.startswith("::=", self.pos)
        self.pos = start
        return found

    def _check_references(self) -> None:
        for rule in self._rules.values():
            for symbol in (symbol for alternative in rule.alternatives for symbol in alternative):
                for reference in references_of(symbol):
                    if reference.name not in self._rules:
                        reason = f"the rule {reference.name!r} is used but not defined"
                        raise GrammarError(reason, position=reference.position, expected=like(reference.name, self._rules))

    # Bodies.

    def _body(self) -> list[tuple[Symbol, ...]]:
        self.skip()
        body: BodyBuilder[Symbol] = BodyBuilder(self.pos, self._add_part)
        while True:
            if self._ends(body):
                return body.finish()
            start = self.pos
            if self.take("("):
                self._refuse_lookahead(start)
                body.open(start, ")")
            elif self.peek() not in ("|", body.closer):
                if self.has_difference and body.sequence and self.take("-"):
                    body.hold(start)
                else:
                    body.sequence.append(self._atom(body))
                    self._complete(body)
            else:
                self._refuse_open_difference(body)
                self.pos += 1
                if self.text[start] == "|":
                    body.next_alternative()
                else:
                    body.close()
                    self._complete(body)
            self.skip()

    def _ends(self, body: BodyBuilder[Symbol]) -> bool:
        if body.closer:
            if self.at_end:
                raise GrammarError("a group is not closed", position=body.group_position, expected=(body.closer,))
            return False
        if self.at_end or self._heads_rule():
            self._refuse_open_difference(body)
            return True
        return False

    def _complete(self, body: BodyBuilder[Symbol]) -> None:
        """The last symbol is there: reads its quantifiers and, if it is the right side of `-`, takes it away from the left side."""
        while True:
            counts = self._quantifier()
            if counts is None:
                break
            body.sequence.append(Repeat(symbol=self._atomic(body.sequence.pop()), minimum=counts[0], maximum=counts[1]))
        held = body.held()
        if held is not None:
            whole, position = held
            removed = self._atomic(body.sequence.pop())
            body.sequence.append(Difference(whole=self._atomic(whole), removed=removed, position=position))

    def _atomic(self, symbol: Symbol) -> Atom:
        if isinstance(symbol, Repeat | Difference):
            symbol = self._add_part([(symbol,)])
        assert not isinstance(symbol, Repeat | Difference)
        return symbol

    def _refuse_open_difference(self, body: BodyBuilder[Symbol]) -> None:
        if body.held() is not None:
            raise self.error("what is taken away")

    def _refuse_lookahead(self, start: int) -> None:
        if self.peek() == "=":
            raise GrammarError("an assertion about what follows is not context-free", position=start)

    def _atom(self, body: BodyBuilder[Symbol]) -> Atom:
        start = self.pos
        special = self.special_atom()
        if special is not None:
            return special
        char = self.peek()
        if char == '"':
            return self.string('"')
        if char == "[":
            return self._class()
        if char == ".":
            self.pos += 1
            return Terminal(texts=Language.chars([(0, MAX_CODE_POINT)]))
        name = self.match(self.name_pattern)
        if name is not None:
            return Reference(name=name, position=start)
        expected = ["a string", "a class", "the name of a rule", "(", "|"]
        raise self.error(*expected, *([body.closer] if body.closer else ["::=", "the end"]))

    def _quantifier(self) -> tuple[int, int | None] | None:
        char = self.peek()
        if char in _QUANTIFIERS:
            self.pos += 1
            return _QUANTIFIERS[char]
        if char != "{":
            return None
        start = self.pos
        self.pos += 1
        self.skip()
        low = 0 if self.peek() == "," else self.number()
        high: int | None = low
        self.skip()
        if self.take(","):
            self.skip()
            high = None if self.peek() == "}" else self.number()
            self.skip()
        if not self.take("}"):
            raise self.error("}")
        if high is not None and high < low:
            raise GrammarError("the numbers of a quantifier are out of order", position=start)
        return low, high

    # Strings and classes.

    def string(self, quote: str) -> Terminal:
        """Reads a string with escapes."""
        start = self.pos
        self.pos += 1
        chars: list[str] = []
        while not self.take(quote):
            if self.at_end or self.peek() in "\r\n":
                raise GrammarError("a string is not closed", position=start, expected=(quote,))
            chars.append(self.match(_PLAIN) or chr(self._character()))
        return Terminal(literal="".join(chars))

    def _class(self) -> Terminal:
        start = self.pos
        self.pos += 1
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        while not self.take("]"):
            if self.at_end:
                raise GrammarError("a class is not closed", position=start, expected=("]",))
            low = high = self.class_character()
            if self.peek() == "-" and self.text[self.pos + 1 : self.pos + 2] != "]":
                self.pos += 1
                if self.at_end:
                    raise GrammarError("a class is not closed", position=start, expected=("]",))
                high = self.class_character()
            if high < low:
                raise GrammarError("the ends of a range are out of order", position=start)
            ranges.append((low, high))
        return Terminal(texts=Language.chars(_gaps(ranges) if negated else ranges))

    def class_character(self) -> int:
        """Reads one character of a class."""
        return self._character()

    def _character(self) -> int:
        """Reads one character or escape: its code point."""
        start = self.pos
        char = self.peek()
        self.pos += 1
        if char != "\\":
            return ord(char)
        kind = self.peek()
        self.pos += 1
        if kind in _HEX_ESCAPES and kind:
            return self._code_point(start, _HEX_ESCAPES[kind])
        if kind and kind in self.escapes:
            return ord(self.escapes[kind])
        known = tuple(f"\\{escape}" for escape in (*self.escapes, *_HEX_ESCAPES))
        raise GrammarError(f"the escape \\{kind} is unknown", position=start, expected=known)

    def _code_point(self, start: int, size: int) -> int:
        digits = self.text[self.pos : self.pos + size]
        if len(digits) < size or _HEXADECIMAL.fullmatch(digits) is None:
            raise GrammarError(f"the escape needs {size} hexadecimal digits", position=start)
        self.pos += size
        return self.checked(int(digits, 16), start)

    def checked(self, code_point: int, position: int) -> int:
        if code_point > MAX_CODE_POINT or _SURROGATES[0] <= code_point <= _SURROGATES[1]:
            raise GrammarError(f"U+{code_point:X} is not a Unicode character", position=position)
        return code_point


def _gaps(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What lies between the ranges."""
    result: list[tuple[int, int]] = []
    free = 0
    for low, high in sorted(ranges):
        if low > free:
            result.append((free, low - 1))
        free = max(free, high + 1)
    if free <= MAX_CODE_POINT:
        result.append((free, MAX_CODE_POINT))
    return result
