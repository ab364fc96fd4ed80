"""Patterns of the terminals of a Lark grammar."""

from __future__ import annotations

from ..errors import GrammarError, LimitError
from ..limits import Limits
from .lark_definitions import MAIN, Definitions, Key, names_in
from .lark_notation import Body, Definition, LarkSymbol, Name, NamedTokens, Nested, Part, Repeated, Usage, Written, is_terminal_name
from .lark_patterns import PatternText, any_of, in_sequence, repeated


class Terminals:
    """Patterns of named terminals."""

    def __init__(self, definitions: Definitions, limits: Limits):
        self._definitions = definitions
        self._limits = limits
        self._patterns: dict[Key, PatternText] = {}

    def named(self, key: Key) -> PatternText:
        """The pattern of a terminal. What it uses is composed first, without recursion."""
        stack = [key]
        open_keys: set[Key] = set()
        while stack:
            current = stack[-1]
            if current in self._patterns:
                stack.pop()
                continue
            definition = self._definitions[current]
            missing = [used for used in self._used(current.library, definition) if used not in self._patterns]
            if not missing:
                self._patterns[current] = self.compose(current.library, definition)
                stack.pop()
                continue
            open_keys.add(current)
            for used in missing:
                if used in open_keys:
                    raise GrammarError(f"the terminal {used.name} uses itself", position=self._place(used))
            stack.extend(missing)
        return self._patterns[key]

    def _used(self, library: str, definition: Definition) -> list[Key]:
        names: list[Key] = []
        for name in names_in(definition):
            if isinstance(name, Usage) or not is_terminal_name(name.name):
                place = name.position if library == MAIN else None
                raise GrammarError(f"the terminal {definition.name} uses the rule {name.name}", position=place)
            names.append(self._definitions.find(library, name.name, name.position))
        return names

    def compose(self, library: str, definition: Definition) -> PatternText:
        """The pattern of a definition whose names have one."""
        if definition.body is None:
            place = definition.position if library == MAIN else None
            raise GrammarError(f"the terminal {definition.name} is declared but has no pattern", position=place)
        parts: list[PatternText] = []
        for body in definition.parts:
            parts.append(self._of_body(library, body, parts))
        return self._of_body(library, definition.body, parts)

    def ignored(self, definition: Definition) -> PatternText:
        """The pattern of an unnamed terminal of the grammar itself."""
        for key in self._used(MAIN, definition):
            self.named(key)
        return self.compose(MAIN, definition)

    def _of_body(self, library: str, body: Body, parts: list[PatternText]) -> PatternText:
        alternatives = [in_sequence([self._of_symbol(library, symbol, parts) for symbol in alternative]) for alternative in body]
        result = any_of(alternatives, self._limits)
        if len(result.value) > self._limits.max_bytes:
            raise LimitError(f"a terminal is longer than {self._limits.max_bytes} characters (max_bytes)")
        return result

    def _of_symbol(self, library: str, symbol: LarkSymbol, parts: list[PatternText]) -> PatternText:
        if isinstance(symbol, Repeated):
            return repeated(self._of_symbol(library, symbol.body, parts), symbol.low, symbol.high)
        if isinstance(symbol, Part):
            return parts[symbol.index]
        if isinstance(symbol, Written):
            return symbol.pattern
        if isinstance(symbol, Nested | NamedTokens):
            raise GrammarError("JSON values and special tokens stand in rules, not in terminals", position=symbol.position)
        assert isinstance(symbol, Name)
        return self._patterns[self._definitions.find(library, symbol.name, symbol.position)]

    def _place(self, key: Key) -> int | None:
        return self._definitions[key].position if key.library == MAIN else None
