"""What a person asks -> jobs of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...engine.request import SamplingParams
from ..answers.conversations import Conversations, Turn
from ..answers.forms import AnswerForm, Asked
from ..constraints import Constraint
from ..jobs import Job
from ..prompts import check_length
from ..runtime import Runtime
from .errors import UsageError

DEFAULT_MAX_TOKENS = 1024
Message = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How all that a command asks is asked.

    Attributes:
        params: with `max_tokens` None, an answer has at most `DEFAULT_MAX_TOKENS` and what the context leaves.
        system: comes before every conversation.
        raw: a text is continued as it stands, without the chat template.
        thinks: False asks the model not to think.
        thinking_token_budget: most tokens of a thought.
        reasoning_parser: see `Conversations`.
    """

    params: SamplingParams
    system: str | None = None
    raw: bool = False
    thinks: bool = True
    thinking_token_budget: int | None = None
    reasoning_parser: str | None = None


class Asker:
    """Makes the jobs of one command.

    Raises:
        UsageError: there is a system message, and nothing to write it down with.
    """

    def __init__(self, runtime: Runtime, manner: Manner):
        self._conversations = Conversations(runtime, reasoning_parser=manner.reasoning_parser)
        self._max_model_len = runtime.max_model_len
        self._manner = manner
        self._raw = manner.raw or runtime.model.chat_template is None
        if self._raw and manner.system is not None:
            why = "--raw leaves out" if manner.raw else f"{runtime.model.name} does not have"
            raise UsageError(f"--system needs a chat template, which {why}")

    def of_text(self, text: str, constraint: Constraint | None) -> Job:
        """A prompt. A model with a chat template was trained on conversations, so that is what it gets unless told otherwise.

        Raises:
            InvalidRequest, ChatTemplateError: it can never be served.
        """
        if self._raw:
            return self._job(Turn(self._conversations.encoder.of_text(text), AnswerForm(constraint=constraint)))
        return self.of_messages([{"role": "user", "content": text}], constraint)

    def of_messages(self, messages: Sequence[Message], constraint: Constraint | None) -> Job:
        """A conversation. Raises what `of_text` raises."""
        system = [{"role": "system", "content": self._manner.system}] if self._manner.system else []
        budget, variables = self._manner.thinking_token_budget, {}
        if not self._manner.thinks and self._conversations.thinks:
            variables, budget = self._conversations.without_thought()
        asked = Asked(constraint=constraint)
        return self._job(
            self._conversations.turn([*system, *messages], asked, thinking_token_budget=budget, source="the prompt", variables=variables)
        )

    def _job(self, turn: Turn) -> Job:
        params = self._manner.params
        turn.check(params, stop_field="--stop")
        check_length(turn.prompt, max_tokens=params.max_tokens, max_model_len=self._max_model_len, field="--max-tokens")
        if params.max_tokens is None:
            room = self._max_model_len - len(turn.prompt.token_ids)
            params = replace(params, max_tokens=min(DEFAULT_MAX_TOKENS, room))
        return turn.job(params=params)
