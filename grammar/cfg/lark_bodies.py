"""The right sides of Lark definitions."""

from __future__ import annotations

import re

from ..errors import GrammarError
from ..limits import Limits
from .lark_notation import Body, LarkSymbol, Name, NamedTokens, Nested, Part, Repeated, Usage, Value, Written
from .lark_patterns import literal_pattern, range_pattern
from .reader import BodyBuilder, Cursor
from .written_parts import read_json, read_token

# Blanks, comments with the blank lines before them, and line ends behind a backslash.
IGNORED = r"(?:[ \t]+|\s*//[^\n]*|\s*#[^\n]*|\\ *\n)*"
RULE_NAME = r"_?[a-z][_a-z0-9]*"
TERMINAL_NAME = r"_?[A-Z][_A-Z0-9]*"
# One part of a body with what is ignored before it. The last way always matches, so that nothing ignored is ever tried again.
_TOKEN = re.compile(
    IGNORED
    + "(?:"
    + "|".join(
        [
            rf"(?P<rule>{RULE_NAME})",
            rf"(?P<terminal>{TERMINAL_NAME})",
            r'(?P<string>"(?:\\[^\n]|[^"\\\n])*"i?)',
            r"(?P<count>[+*]|\?(?![a-z_]))",
            r"(?P<line>\r?\n\s*\|?)",
            r"(?P<or>\|)",
            r"(?P<open>[(\[])",
            r"(?P<close>[)\]])",
            r"(?P<regexp>/(?!/)(?:\\.|[^/\\])*/[imslux]*)",
            r"(?P<alias>->)",
            r"(?P<times>~)",
            r"(?P<other>.?)",
        ]
    )
    + ")",
    re.DOTALL,
)
_VALUES = frozenset(("rule", "terminal", "string", "regexp", "other"))
_RULE = re.compile(RULE_NAME)
_SKIPPED = re.compile(IGNORED)
_COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_CLOSERS = {"(": ")", "[": "]"}


class BodyReader(Cursor):
    """A cursor that reads bodies and what is ignored between the parts of a grammar."""

    def __init__(self, text: str, limits: Limits):
        super().__init__(text, limits)
        self._parts: list[Body] = []

    def skip(self) -> None:
        """Reads what is ignored."""
        self.match(_SKIPPED)

    def body(self, *, aliases: bool) -> tuple[Body, tuple[Body, ...]]:
        """Reads alternatives up to the end of the statement: the body, and those of its groups."""
        self._parts = []
        body: BodyBuilder[LarkSymbol] = BodyBuilder(self.pos, self._add_part)
        countable = False  # whether the last thing read is a symbol without a quantifier
        while True:
            kind, token, start = self._token()
            if kind in _VALUES:
                if not token or token == "\r":
                    return self._finished(body, start)
                body.sequence.append(self._value(kind, token, start, body.closer))
                countable = True
                continue
            if kind == "line" and not token.endswith("|"):
                return self._finished(body, start)
            if kind in ("line", "or"):
                body.next_alternative()
            elif kind == "open":
                body.open(start, _CLOSERS[token])
            elif kind == "close" and token == body.closer:
                body.close()
                if token == "]":
                    body.sequence.append(self._repeated(body.sequence.pop(), 0, 1))
                countable = True
                continue
            elif kind == "alias":
                self._alias(start, aliases)
            elif countable and kind in ("count", "times"):
                low, high = _COUNTS[token] if kind == "count" else self._times(start)
                body.sequence.append(self._repeated(body.sequence.pop(), low, high))
            else:
                raise self._unexpected(start, body.closer)
            countable = False

    def _token(self) -> tuple[str, str, int]:
        """Reads one token: its kind, its text, where it begins."""
        found = _TOKEN.match(self.text, self.pos)
        assert found is not None and found.lastgroup is not None
        kind = found.lastgroup
        self.pos = found.end()
        return kind, found.group(kind), found.start(kind)

    def _finished(self, body: BodyBuilder[LarkSymbol], end: int) -> tuple[Body, tuple[Body, ...]]:
        self.pos = end
        if body.closer:
            raise self.error(body.closer, "|")
        return tuple(body.finish()), tuple(self._parts)

    def _unexpected(self, position: int, closer: str) -> GrammarError:
        expected = ("a name", "a string", "a regular expression", "(", "[", "|", closer or "the end of the line")
        return self.error(*expected, position=position)

    def _alias(self, start: int, allowed: bool) -> None:
        if not allowed:
            raise GrammarError("a terminal cannot have an alias", position=start)
        self.skip()
        if self.match(_RULE) is None:
            raise self.error("the name of an alias")
        self.skip()
        if not (self.at_end or self.peek() in "\r\n|)]"):
            raise self.error("|", "the end of the line")

    def _add_part(self, alternatives: list[tuple[LarkSymbol, ...]]) -> LarkSymbol:
        self._parts.append(tuple(alternatives))
        return Part(index=len(self._parts) - 1)

    def _repeated(self, body: LarkSymbol, low: int, high: int | None) -> LarkSymbol:
        if isinstance(body, Repeated):
            body = self._add_part([(body,)])
        assert not isinstance(body, Repeated)
        return Repeated(body=body, low=low, high=high)

    def _times(self, start: int) -> tuple[int, int]:
        """Reads the numbers after `~`."""
        self.skip()
        low = high = self.number()
        self.skip()
        if self.take(".."):
            self.skip()
            high = self.number()
            if high < low:
                raise GrammarError("the numbers of a quantifier are out of order", position=start)
        return low, high

    def _value(self, kind: str, token: str, start: int, closer: str) -> Value:
        """The value that begins with a token."""
        if kind == "terminal":
            return Name(name=token, position=start)
        if kind == "rule":
            self.skip()
            if self.take("{"):
                return Usage(name=token, arguments=self._arguments(), position=start)
            return Name(name=token, position=start)
        if kind == "string":
            self.skip()
            if self.take(".."):
                last_kind, last, position = self._token()
                if last_kind != "string":
                    raise self.error("a string", position=position)
                return Written(pattern=range_pattern(token, last, start), position=start)
        if kind in ("string", "regexp"):
            return Written(pattern=literal_pattern(token, start), position=start)
        self.pos = start
        if self.take("%json"):
            self.skip()
            return Nested(schema=read_json(self), position=start)
        tokens = read_token(self, named=False)
        if tokens is None:
            raise self._unexpected(start, closer)
        return NamedTokens(tokens=tokens, position=start)

    def _arguments(self) -> tuple[Value, ...]:
        """Reads the arguments of a template, which may be templates with arguments, up to the closing brace."""
        stack: list[tuple[str, int, list[Value]]] = []
        arguments: list[Value] = []
        while True:
            self.skip()
            start = self.pos
            name = self.match(_RULE)
            self.skip()
            if name is not None and self.take("{"):
                stack.append((name, start, arguments))
                arguments = []
                continue
            self.pos = start
            kind, token, start = self._token()
            if kind not in _VALUES:
                raise self._unexpected(start, "}")
            arguments.append(self._value(kind, token, start, "}"))
            self.skip()
            while self.take("}"):
                if not stack:
                    return tuple(arguments)
                name, start, outer = stack.pop()
                outer.append(Usage(name=name, arguments=tuple(arguments), position=start))
                arguments = outer
                self.skip()
            if not self.take(","):
                raise self.error(",", "}")
