"""What a user asks of the engine, and what the engine answers.

    FormcastError
      InvalidRequest      the request can never be served as it stands (HTTP 400)
      EngineOverloaded    the waiting queue is full, try again later (HTTP 429 or 503)
      EngineStopped       the engine is closing or has failed, nothing more is accepted (HTTP 503)
      GenerationError     this one request failed while it was running (HTTP 500)
      DeadlineExceeded    its answer was not complete in time (HTTP 504)

Plain Python without tensors, so that front ends and tests can import it cheaply.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ..grammar.errors import FormcastError

if TYPE_CHECKING:
    from ..grammar import Grammar

FinishReason = Literal["stop", "length", "abort", "error"]

MAX_LOGPROBS = 20
MAX_BEAM_WIDTH = 128
MAX_STOP_STRINGS = 64
MAX_STOP_STRING_LENGTH = 4096


class InvalidRequest(FormcastError):
    """A request that can never be served.

    Attributes:
        param: name of the offending parameter, or None when it is the request as a whole.
    """

    def __init__(self, message: str, *, param: str | None = None):
        self.message = message
        self.param = param
        super().__init__(message)


class EngineOverloaded(FormcastError):
    """The queue of waiting requests is full."""


class EngineStopped(FormcastError):
    """The engine no longer accepts requests."""


class GenerationError(FormcastError):
    """A request that was running could not be continued."""


class DeadlineExceeded(FormcastError):
    """An answer was not complete in time.

    Attributes:
        timeout: the time that it had, in seconds.
    """

    def __init__(self, timeout: float):
        self.timeout = timeout
        super().__init__(f"the answer was not complete after {timeout:g} s")


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """How the next token is chosen and when to stop. Names and meanings follow vLLM.

    The order in which they act on the logits is: penalties and `logit_bias`, then the grammar's mask, then
    `temperature`, `min_p`, `top_k`, `top_p` and `typical_p`, each over what the one before it left. Tokens whose logits tie
    at a cut are kept together.

    Attributes:
        n: number of answers. One `Request` always makes one answer; `expand` turns n > 1 into n requests.
        temperature: 0 is greedy.
        top_p: share of the probability mass to keep, in (0, 1].
        top_k: number of tokens to keep; 0 keeps all.
        min_p: smallest probability to keep, relative to the likeliest token, in [0, 1].
        typical_p: share of the probability mass to keep, of the tokens whose log-probability is nearest to the mean of all, in (0, 1]
            (locally typical sampling).
        seed: makes the request's draws repeatable, whatever runs beside it. None draws a fresh one.
        max_tokens: most tokens to generate. None means to the end of the context.
        min_tokens: end tokens, stop ids and stop strings are held back until so many tokens exist. A grammar that
            allows nothing but the end wins over it.
        stop: strings that end the answer.
        stop_token_ids: token ids that end the answer, besides the model's own end tokens.
        ignore_eos: the model's end tokens do not end a free answer. The end of a grammar always does.
        presence_penalty: subtracted once from the logit of each token generated so far, in [-2, 2].
        frequency_penalty: subtracted for each time a token was generated so far, in [-2, 2].
        repetition_penalty: divides positive and multiplies negative logits of each token in prompt or answer; > 0.
        logit_bias: added to the logits of token ids, in [-100, 100].
        logprobs: report the log-probability of each generated token and of this many of the likeliest. They are
            those of the distribution after penalties, bias and mask and before temperature and truncation.
        include_stop_str_in_output: keep the stop string at the end of the text.
        skip_special_tokens: leave special tokens out of the text.
        timeout: seconds from `Request.arrival_time` until the answer is complete; then it ends with `DeadlineExceeded`, within one step
            of the engine. None sets no limit.
    """

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    typical_p: float = 1.0
    seed: int | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    timeout: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", _strings("stop", self.stop))
        object.__setattr__(self, "stop_token_ids", _integers("stop_token_ids", self.stop_token_ids))
        object.__setattr__(self, "logit_bias", _biases(self.logit_bias))
        _check_integer("n", self.n, low=1, high=1024)
        _check_number("temperature", self.temperature, low=0.0, high=math.inf)
        _check_number("top_p", self.top_p, low=0.0, high=1.0, low_open=True)
        _check_integer("top_k", self.top_k, low=0)
        _check_number("min_p", self.min_p, low=0.0, high=1.0)
        _check_number("typical_p", self.typical_p, low=0.0, high=1.0, low_open=True)
        _check_number("presence_penalty", self.presence_penalty, low=-2.0, high=2.0)
        _check_number("frequency_penalty", self.frequency_penalty, low=-2.0, high=2.0)
        _check_number("repetition_penalty", self.repetition_penalty, low=0.0, high=math.inf, low_open=True)
        if self.seed is not None:
            _check_integer("seed", self.seed, low=-(1 << 63), high=(1 << 64) - 1)
        if self.max_tokens is not None:
            _check_integer("max_tokens", self.max_tokens, low=1)
        _check_integer("min_tokens", self.min_tokens, low=0)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidRequest(f"min_tokens ({self.min_tokens}) is greater than max_tokens ({self.max_tokens})", param="min_tokens")
        if self.logprobs is not None:
            _check_integer("logprobs", self.logprobs, low=0, high=MAX_LOGPROBS)
        _check_timeout(self.timeout)
        for name in ("ignore_eos", "include_stop_str_in_output", "skip_special_tokens"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidRequest(f"{name} must be true or false", param=name)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken. Temperatures too small to divide by count as 0."""
        return self.temperature < 1e-5

    @property
    def has_penalties(self) -> bool:
        """Whether logits depend on the tokens seen so far."""
        return self.presence_penalty != 0 or self.frequency_penalty != 0 or self.repetition_penalty != 1


@dataclass(frozen=True, kw_only=True)
class BeamSearchParams:
    """How answers are searched with beams. Names follow vLLM, what they do follows transformers' `num_beams`.

    The score of an answer is its log-probability, as the model has it before any grammar's mask, divided by the number of its tokens to the
    power of `length_penalty`; an end token counts. So of all texts that a grammar allows, those are searched that the model itself finds
    likeliest. The search is over when there are `beam_width` answers and no beam, ended now, would be better than one of them.

    Attributes:
        beam_width: beginnings that are continued at a time, and answers that are given, best first. Fewer are given where a grammar
            allows fewer.
        max_tokens: most tokens of an answer. None means to the end of the context.
        ignore_eos: the model's end tokens do not end a free answer. The end of a grammar always does.
        temperature: logits are divided by it; 0 leaves them as they are.
        length_penalty: above 0 longer answers gain, below 0 shorter ones.
        skip_special_tokens, timeout: see `SamplingParams`.
    """

    beam_width: int
    max_tokens: int | None = None
    ignore_eos: bool = False
    temperature: float = 0.0
    length_penalty: float = 1.0
    skip_special_tokens: bool = True
    timeout: float | None = None

    def __post_init__(self) -> None:
        _check_integer("beam_width", self.beam_width, low=1, high=MAX_BEAM_WIDTH)
        _check_number("length_penalty", self.length_penalty, low=-10.0, high=10.0)
        self.sampling_params()

    def sampling_params(self) -> SamplingParams:
        """What of it applies to single tokens and answers. Raises InvalidRequest for values out of range."""
        return SamplingParams(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            ignore_eos=self.ignore_eos,
            skip_special_tokens=self.skip_special_tokens,
            timeout=self.timeout,
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """One prompt to continue into one answer.

    Attributes:
        request_id: unique among the open requests.
        prompt_token_ids: at least one token.
        params: how to sample; for a beam search its `sampling_params`.
        beam_search: answers are searched with beams instead. They all come with the last output.
        grammar: what the answer must match, or None for free text.
        priority: lower runs earlier; equal priorities run in order of arrival.
        arrival_time: seconds on the monotonic clock.
        cache_salt: requests share cached prompts only with requests of the same salt.
        family: open requests of one family, prompt and salt compute that prompt once, also without a prefix cache. `expand` makes them.
    """

    request_id: str
    prompt_token_ids: Sequence[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    beam_search: BeamSearchParams | None = None
    grammar: Grammar | None = None
    priority: int = 0
    arrival_time: float = field(default_factory=time.monotonic)
    cache_salt: str | None = None
    family: str | None = None

    @property
    def deadline(self) -> float | None:
        """When it ends at the latest, on the monotonic clock."""
        return None if self.params.timeout is None else self.arrival_time + self.params.timeout


def expand(request: Request) -> list[Request]:
    """The `params.n` single-answer requests of a request, in order.

    Each gets the id `<id>#<index>` and, when the request is seeded, its own seed `seed + index`.
    """
    if request.params.n == 1:
        return [request]
    return [
        replace(request, request_id=f"{request.request_id}#{index}", family=request.request_id, params=_single(request.params, index))
        for index in range(request.params.n)
    ]


def _single(params: SamplingParams, index: int) -> SamplingParams:
    seed = None if params.seed is None else (params.seed + index) % (1 << 64)
    return replace(params, n=1, seed=seed)


@dataclass(frozen=True, kw_only=True)
class TokenLogprob:
    """The log-probability of one generated token.

    Attributes:
        token_id: the token that was generated.
        logprob: its natural logarithm of probability, see `SamplingParams.logprobs`.
        top: the likeliest tokens and their log-probabilities, likeliest first; impossible tokens are left out.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Beam:
    """One answer of a beam search.

    Attributes:
        token_ids: of the answer, the end token among them.
        logprob: natural logarithm of its probability, see `BeamSearchParams`; `score` too.
        finish_reason: "stop", or "length" where it is as long as may be.
    """

    token_ids: tuple[int, ...]
    text: str
    logprob: float
    score: float
    finish_reason: FinishReason


@dataclass(frozen=True, kw_only=True)
class RequestOutput:
    """What one step added to an answer. The last one of a request, and only that, carries a finish reason.

    Attributes:
        new_token_ids: tokens generated since the last output, an end token among them.
        text: text that became certain since the last output: whole code points, and nothing that may yet turn
            out to be a stop string.
        finish_reason: "stop", "length", "abort" or "error" in the last output, None before.
        stop_reason: the stop string or stop token id that ended the answer; None for an end token or a grammar.
        error: what went wrong, exactly when the finish reason is "error".
        logprobs: one entry per new token, or None when not asked for.
        scheduled_time: when the request first took part in a step, in seconds on the monotonic clock; None before.
        num_cached_tokens: prompt tokens whose keys and values were taken from the prefix cache.
        num_draft_tokens, num_accepted_tokens, num_forced_tokens: tokens that were guessed and verified so far, those of them that
            became part of the answer, and how many of these the grammar forced.
        beams: the answers of a beam search, best first, in its last output; tokens and text are in them only, and the finish reason is that
            of the best.
    """

    request_id: str
    new_token_ids: tuple[int, ...] = ()
    text: str = ""
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    error: FormcastError | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    scheduled_time: float | None = None
    num_prompt_tokens: int = 0
    num_generated_tokens: int = 0
    num_cached_tokens: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_forced_tokens: int = 0
    beams: tuple[Beam, ...] = ()

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None


def _check_timeout(timeout: Any) -> None:
    if timeout is not None:
        _check_number("timeout", timeout, low=0.0, high=math.inf, low_open=True)


def _check_number(name: str, value: Any, *, low: float, high: float, low_open: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidRequest(f"{name} must be a finite number, not {value!r}", param=name)
    if value < low or value > high or (low_open and value == low):
        raise InvalidRequest(f"{name} must be {_range(low, high, low_open)}, not {value!r}", param=name)


def _check_integer(name: str, value: Any, *, low: int, high: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequest(f"{name} must be an integer, not {value!r}", param=name)
    if value < low or (high is not None and value > high):
        raise InvalidRequest(f"{name} must be {_range(low, math.inf if high is None else high, False)}, not {value}", param=name)


def _range(low: float, high: float, low_open: bool) -> str:
    lower = f"greater than {low:g}" if low_open else f"at least {low:g}"
    return lower if math.isinf(high) else f"{lower} and at most {high:g}"


def _strings(name: str, value: Any) -> tuple[str, ...]:
    strings = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else None
    if strings is None or not all(isinstance(item, str) for item in strings):
        raise InvalidRequest(f"{name} must be a string or a list of strings", param=name)
    if not all(strings):
        raise InvalidRequest(f"{name} must not contain an empty string", param=name)
    if len(strings) > MAX_STOP_STRINGS or any(len(item) > MAX_STOP_STRING_LENGTH for item in strings):
        raise InvalidRequest(f"{name}: at most {MAX_STOP_STRINGS} strings of {MAX_STOP_STRING_LENGTH} characters", param=name)
    return strings


def _integers(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(isinstance(i, int) and not isinstance(i, bool) for i in value):
        raise InvalidRequest(f"{name} must be a list of integers", param=name)
    return tuple(value)


def _biases(value: Any) -> dict[int, float]:
    if not isinstance(value, Mapping):
        raise InvalidRequest("logit_bias must map token ids to numbers", param="logit_bias")
    for token, bias in value.items():
        if isinstance(token, bool) or not isinstance(token, int) or token < 0:
            raise InvalidRequest(f"logit_bias: {token!r} is not a token id", param="logit_bias")
        _check_number("logit_bias", bias, low=-100.0, high=100.0)
    return dict(value)
