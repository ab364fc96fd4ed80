"""Which requests an engine can serve at all."""

from __future__ import annotations

from collections.abc import Iterable

from .config import EngineLimits
from .request import InvalidRequest, Request


class RequestChecks:
    """Checks requests against a model and the sizes of its engine. Thread-safe.

    Args:
        num_tokens: V, the width of the logits.
        num_end_tokens: tokens with which the model ends an answer.
    """

    def __init__(self, limits: EngineLimits, *, num_tokens: int, num_end_tokens: int):
        self._limits = limits
        self._num_tokens = num_tokens
        self._num_end_tokens = num_end_tokens

    def check(self, request: Request) -> None:
        """Raises InvalidRequest for a request that can never be served."""
        params, num_prompt, max_len = request.params, len(request.prompt_token_ids), self._limits.max_model_len
        if params.n != 1:
            raise InvalidRequest("one request makes one answer: use `expand` for n > 1", param="n")
        if num_prompt == 0:
            raise InvalidRequest("the prompt has no tokens", param="prompt")
        if num_prompt >= max_len:
            raise InvalidRequest(f"the prompt has {num_prompt} tokens, but prompt and answer together may have {max_len}", param="prompt")
        if params.max_tokens is not None and num_prompt + params.max_tokens > max_len:
            message = f"max_tokens ({params.max_tokens}) and the prompt's {num_prompt} tokens exceed the context of {max_len}"
            raise InvalidRequest(message, param="max_tokens")
        if num_prompt + params.min_tokens > max_len:
            raise InvalidRequest(f"min_tokens ({params.min_tokens}) does not fit into the context of {max_len}", param="min_tokens")
        self._check_token_ids(request.prompt_token_ids, "prompt")
        self._check_token_ids(params.stop_token_ids, "stop_token_ids")
        self._check_token_ids(params.logit_bias, "logit_bias")
        if request.beam_search is not None:
            self._check_beams(request.beam_search.beam_width)

    def _check_beams(self, width: int) -> None:
        if width > self._limits.max_num_seqs:
            message = f"beam_width ({width}) exceeds max_num_seqs ({self._limits.max_num_seqs}): all beams of a request run together"
            raise InvalidRequest(message, param="beam_width")
        if width * (1 + self._num_end_tokens) > self._num_tokens:
            message = f"beam_width ({width}) needs more candidates than the model has tokens ({self._num_tokens})"
            raise InvalidRequest(message, param="beam_width")

    def _check_token_ids(self, token_ids: Iterable[int], param: str) -> None:
        for token_id in token_ids:
            if not 0 <= token_id < self._num_tokens:
                raise InvalidRequest(f"{param}: token id {token_id} is out of range (the model has {self._num_tokens})", param=param)
