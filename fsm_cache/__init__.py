"""Token FSMs: byte automata over a vocabulary.

The public names, loaded when first used: whoever compiles kernels needs nothing else from here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler import CompilerStats, FsmCompiler
    from .cursor import Cursor, advance_many, fill_masks
    from .store import ArrayStore
    from .token_fsm import TokenFSM, compile_grammar
    from .vocabulary import Vocabulary, VocabularyError

_HOMES = {
    "ArrayStore": ".store",
    "CompilerStats": ".compiler",
    "Cursor": ".cursor",
    "FsmCompiler": ".compiler",
    "TokenFSM": ".token_fsm",
    "Vocabulary": ".vocabulary",
    "VocabularyError": ".vocabulary",
    "advance_many": ".cursor",
    "compile_grammar": ".token_fsm",
    "fill_masks": ".cursor",
}

__all__ = [
    "ArrayStore",
    "CompilerStats",
    "Cursor",
    "FsmCompiler",
    "TokenFSM",
    "Vocabulary",
    "VocabularyError",
    "advance_many",
    "compile_grammar",
    "fill_masks",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value
    return value
