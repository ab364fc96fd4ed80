"""A structural tag as a grammar, and the parser of its texts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from .. import json_text
from ..collector import RELAXED
from ..errors import GrammarError, LimitError
from ..grammar import Compiled, Grammar
from ..limits import Limits
from .bare_values import BARE_STYLES
from .compile import compile_tree
from .compiled import CompiledTag
from .parameters import with_parameters
from .parser import StructuralParser, Vocabulary
from .parts import Parts
from .reader import read_tree
from .spec import AnyToken, JsonSchema, Node, Tag, tokens_of, walk
from .symbols import SymbolTable
from .writer import to_json

_MAX_SHARED_NODES = 200_000  # a machine for parsers that has grown beyond is left to those that use it


class TagGrammar(Grammar):
    """Made by `Grammar.structural_tag`.

    Attributes:
        tree: its tree.
    """

    def __init__(self, spec: Any, limits: Limits):
        text, data = _load(spec, limits)
        self.tree: Node = read_tree(data)
        self._parts = Parts(self.tree, limits)
        self._whole = with_parameters(self.tree, self._parts, limits)
        self._limits = limits
        self._tags = tuple(node for node in walk(self._whole) if isinstance(node, Tag))
        self._for_parsers: dict[frozenset[tuple[str, int | None]], CompiledTag] = {}
        self._parsers_lock = threading.Lock()
        self._has_tokens = self._parts.have_tokens or any(map(_depends_on_tokens, walk(self._whole)))
        self._checked: CompiledTag | None = compile_tree(
            self._whole, self._parts, SymbolTable(None, lenient=True), limits, marks=False
        )  # what the check made, for the first who needs it
        super().__init__("structural_tag", json_text.dumps(["structural_tag", text]), self.compile, lambda: list(self._parts.findings()))

    def compile(self, limits: Limits | None = None, special_tokens: Mapping[str, int | None] | None = None) -> Compiled:
        made, self._checked = self._checked, None
        if made is None or self._has_tokens or (limits or Limits()) != self._limits:
            with RELAXED:
                made = compile_tree(self._whole, self._parts, SymbolTable(special_tokens), limits or Limits(), marks=False)
        return Compiled(made.machine, made.start)

    def parser(self, vocabulary: Vocabulary | None = None) -> StructuralParser:
        """A parser of one text.

        Args:
            vocabulary: the one that the text was made with, if it is to be read as tokens.

        Raises:
            GrammarError: a token of the tree is not in the vocabulary.
        """
        special = vocabulary.named_tokens if vocabulary is not None else None
        key = frozenset((special or {}).items())
        with self._parsers_lock, RELAXED:
            made = self._for_parsers.get(key)
            if made is None or made.machine.num_nodes > _MAX_SHARED_NODES:
                made = compile_tree(self._whole, self._parts, SymbolTable(special), self._limits, marks=True)
                self._for_parsers[key] = made
        return StructuralParser(made, self._tags, vocabulary)


def _depends_on_tokens(node: Node) -> bool:
    is_bare = isinstance(node, JsonSchema) and node.style in BARE_STYLES
    return is_bare or isinstance(node, AnyToken) or next(tokens_of(node), None) is not None


def _load(spec: Any, limits: Limits) -> tuple[str, Any]:
    """JSON text of a spec and a private copy with exact decimals."""
    try:
        text = spec if isinstance(spec, str) else json_text.dumps(to_json(spec) if isinstance(spec, Node) else spec)
        if len(text) > limits.max_bytes:
            raise LimitError(f"the structural tag is longer than {limits.max_bytes} bytes (max_bytes)")
        return text, json_text.loads(text)
    except ValueError as error:
        raise GrammarError(f"the structural tag is not JSON: {error}", pointer="") from error
