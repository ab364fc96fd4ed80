"""Token FSMs: byte automata over a vocabulary."""

from .compiler import CompilerStats, FsmCompiler
from .cursor import Cursor, advance_many, fill_masks
from .store import ArrayStore
from .token_fsm import TokenFSM, compile_grammar
from .vocabulary import Vocabulary, VocabularyError

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
