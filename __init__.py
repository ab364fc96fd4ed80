"""formcast: an LLM inference engine built around structured generation.

The public names, loaded when first used, so that `import formcast` needs neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.answers.reader import ToolCall
    from .api.async_engine import AsyncLLM
    from .api.constraints import ConstraintError
    from .api.deltas import Delta
    from .api.llm import LLM
    from .api.results import CompletionResult, RequestResult
    from .api.tools.tool import Tool, ToolError
    from .engine.request import BeamSearchParams, DeadlineExceeded, InvalidRequest, SamplingParams
    from .fsm_cache import Vocabulary, compile_grammar
    from .grammar import FormcastError, Grammar, GrammarError, LimitError, Limits

__version__ = "0.1.0"

_HOMES = {
    "AsyncLLM": ".api.async_engine",
    "BeamSearchParams": ".engine.request",
    "CompletionResult": ".api.results",
    "ConstraintError": ".api.constraints",
    "DeadlineExceeded": ".engine.request",
    "Delta": ".api.deltas",
    "FormcastError": ".grammar",
    "Grammar": ".grammar",
    "InvalidRequest": ".engine.request",
    "RequestResult": ".api.results",
    "GrammarError": ".grammar",
    "LLM": ".api.llm",
    "LimitError": ".grammar",
    "Limits": ".grammar",
    "SamplingParams": ".engine.request",
    "Tool": ".api.tools.tool",
    "ToolCall": ".api.answers.reader",
    "ToolError": ".api.tools.tool",
    "Vocabulary": ".fsm_cache",
    "compile_grammar": ".fsm_cache",
}

__all__ = [
    "LLM",
    "AsyncLLM",
    "BeamSearchParams",
    "CompletionResult",
    "ConstraintError",
    "DeadlineExceeded",
    "Delta",
    "FormcastError",
    "Grammar",
    "GrammarError",
    "InvalidRequest",
    "LimitError",
    "Limits",
    "RequestResult",
    "SamplingParams",
    "Tool",
    "ToolCall",
    "ToolError",
    "Vocabulary",
    "__version__",
    "compile_grammar",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
