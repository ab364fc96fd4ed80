"""Refusals of trees whose parts could not be told from what stands around them."""

from __future__ import annotations

from ..errors import GrammarError
from ..limits import Limits
from .emptiness import Emptiness
from .free_text import FreeText, Pattern
from .pointers import child
from .spec import AnyText, Boundary, Node, Optional, Or, Sequence, Tag, Token, TriggeredTags, children, pieces, walk
from .symbols import Symbols, SymbolTable


class Checks:
    """Checks nodes whose content is checked already."""

    def __init__(self, symbols: SymbolTable, empty: Emptiness, limits: Limits):
        self._symbols = symbols
        self._empty = empty
        self._limits = limits
        self._passed: set[tuple[object, ...]] = set()  # texts that are watched for the same

    def free(self, node: TriggeredTags | AnyText, ends: tuple[Symbols, ...] = (), tag: Tag | None = None) -> None:
        """Refuses triggers and ends that no text can reach because of what else it is watched for."""
        watched = (isinstance(node, AnyText), node.excludes, ends)
        if watched in self._passed:
            return
        triggers = {self._symbols.of(trigger): 0 for trigger in node.triggers} if isinstance(node, TriggeredTags) else {}
        if () in triggers:
            raise GrammarError("a token that ends the text triggers nothing", pointer=child(node.pointer, "triggers"))
        for word in ends:
            if word in triggers:
                raise GrammarError("a trigger is the end of the tag around it too", pointer=child(node.pointer, "triggers"))
        patterns = [Pattern(word, 0, False) for word in triggers] + [Pattern(word, 0, True) for word in ends]
        known = {pattern.symbols for pattern in patterns}
        excluded = {word for word in map(self._symbols.of, node.excludes) if word and word not in known}
        patterns += [Pattern(word, None, False) for word in excluded]
        text = FreeText(patterns, may_end=not ends, limits=self._limits)
        if not text.can_leave:
            assert tag is not None
            reason = "the text inside can never reach this end: it holds a trigger, or an excluded text"
            raise GrammarError(reason, pointer=child(tag.pointer, "end"))
        if isinstance(node, AnyText):
            self._passed.add(watched)
        met = {patterns[index].symbols for index in text.reached} & triggers.keys()
        for inner in node.tags if isinstance(node, TriggeredTags) and node.text_before else ():
            begin = self._symbols.of(inner.begin)
            if not any(begin[: len(trigger)] == trigger for trigger in met):
                reason = "this tag can never begin: its trigger holds another one, an end, or an excluded text"
                raise GrammarError(reason, pointer=child(inner.pointer, "begin"))

    def tag(self, tag: Tag) -> None:
        """Checks the free texts that end with the tag."""
        ends = tuple(map(self._symbols.of, tag.end))
        if () in ends:
            return
        stack = [tag.content]
        while stack:
            node = stack.pop()
            if isinstance(node, AnyText | TriggeredTags):
                self.free(node, ends, tag)
            elif isinstance(node, Sequence):
                stack.append(node.elements[-1])
            elif isinstance(node, Or | Optional):
                stack.extend(children(node))

    def repeated(self, node: Node, pointer: str) -> None:
        """Refuses content that may be empty and cannot be told from nothing each time."""
        for inner in walk(node):
            if isinstance(inner, Tag) and self._empty.may_be(inner):
                raise GrammarError("a tag that may be empty cannot be repeated", pointer=pointer)
            if isinstance(inner, TriggeredTags) and self._empty.may_be(inner):
                raise GrammarError("free text with tags cannot be repeated: it goes on by itself", pointer=pointer)
            if isinstance(inner, AnyText) and (inner.max_tokens is not None or any(map(_has_token, inner.excludes))):
                raise GrammarError("free text whose tokens matter cannot be repeated", pointer=pointer)


def _has_token(boundary: Boundary) -> bool:
    return any(isinstance(piece, Token) for piece in pieces(boundary))
