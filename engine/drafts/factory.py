"""Which drafts a request gets."""

from __future__ import annotations

from ..config import EngineConfig
from ..request import Request
from .drafter import Drafter
from .habits import HabitBook
from .ngrams import NgramIndex


class DrafterFactory:
    """Makes drafters for the requests of an engine, which share the habits of their grammars."""

    def __init__(self, config: EngineConfig):
        self._draft_from_grammar = config.draft_from_grammar
        self._speculative = config.speculative
        self._habits = HabitBook()

    @property
    def enabled(self) -> bool:
        """Whether any request may get drafts."""
        return self._draft_from_grammar or self._speculative is not None

    def make(self, request: Request, automaton: object | None) -> Drafter | None:
        """The drafter of a request and its compiled grammar, if it has one; None where there is nothing to draft from."""
        from_grammar = automaton is not None and self._draft_from_grammar
        if not from_grammar and self._speculative is None:
            return None
        return Drafter(
            habits=self._habits.of(automaton, request.cache_salt) if from_grammar else None,
            ngrams=self._ngrams(request),
            num_ngram_drafts=0 if self._speculative is None else self._speculative.num_speculative_tokens,
        )

    def _ngrams(self, request: Request) -> NgramIndex | None:
        if self._speculative is None:
            return None
        ngrams = NgramIndex(self._speculative.prompt_lookup_min, self._speculative.prompt_lookup_max)
        ngrams.extend(request.prompt_token_ids)
        return ngrams
