"""The step loop: requests in, tokens out. Synchronous and single-threaded; `engine.client` gives it a thread."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import zip_longest
from queue import SimpleQueue
from threading import Event
from typing import Any, Protocol

from ..fsm_cache.mask_pool import MaskPool
from ..grammar.errors import FormcastError
from .config import EngineConfig, EngineLimits, resolve
from .constraint import Constraint, ResidentConstraint
from .detokenizer import TokenTable
from .drafts.factory import DrafterFactory
from .executor import Executor, Flight, Outcome
from .generation import EndTokens, Generation, Verdict
from .kernels.masked_sample import RowStatus
from .kv.manager import KVManager
from .mask_meter import MaskMeter
from .request import EngineOverloaded, GenerationError, InvalidRequest, Request, RequestOutput, TokenLogprob
from .residency import Residency
from .runner import Model, Runner
from .sampler import SampledToken, Sampler
from .scheduler import Scheduler
from .stats import Counters, EngineStats
from .step_meter import StepMeter
from .step_plan import StepResult

_log = logging.getLogger(__name__)

_ROWS_PER_REQUEST = 32
"""Mask rows for its place and its drafts, twice."""


class Vocabulary(Protocol):
    """The tokens of a model as grammars see them (`fsm_cache.Vocabulary`)."""

    vocab_size: int
    eos_token_ids: frozenset[int]
    token_bytes: tuple[bytes | None, ...]


class Compiler(Protocol):
    """Compiles grammars in the background (`fsm_cache.FsmCompiler`)."""

    vocabulary: Any
    """A `Vocabulary`."""

    def submit(self, grammar: Any) -> Future[Any]:
        """A future of the grammar's `TokenAutomaton`. It is cancelled where nobody waits for it any more."""
        ...


@dataclass(kw_only=True)
class _Step:
    """What a step gave one request, before it is read.

    Attributes:
        is_last: whether it is known already that the answer ends with it.
        error: why it does.
    """

    generation: Generation
    tokens: list[SampledToken]
    is_last: bool = False
    error: FormcastError | None = None


class EngineCore:
    """A model, its KV cache and its open requests.

    Each request that `add` accepts gets exactly one output with a finish reason, from `step`, `abort` or `fail_all`, whatever
    happens to it or to others. Not thread-safe, except for `validate` and `wake`.

    With `async_scheduling`, a step is launched as soon as the tokens of the one before it are known, and what else these come to is
    done while it computes: text, stop strings, masks, outputs, and whatever the caller does between two calls of `step`. A request whose
    end shows only then has a row in that step that nobody looks at.
    """

    def __init__(self, model: Model, config: EngineConfig, compiler: Compiler):
        vocabulary: Vocabulary = compiler.vocabulary
        if (vocabulary.vocab_size, vocabulary.eos_token_ids) != (model.vocab_size, model.eos_token_ids):
            raise ValueError(f"the vocabulary of the compiler is not that of {model.name}: its width or its end tokens differ")
        self._compiler = compiler
        self._table = TokenTable(token_bytes=vocabulary.token_bytes, special_name=model.tokenizer.id_to_token)
        self._num_tokens = model.vocab_size
        self._ends = EndTokens(token_ids=model.eos_token_ids, num_tokens=model.vocab_size)
        self._runner = Runner(model)
        self.limits: EngineLimits = resolve(
            config,
            model_max_len=model.max_model_len,
            block_bytes=self._runner.block_bytes(config.block_size),
            on_gpu=self._runner.on_gpu,
            memory=self._runner.memory(),
        )
        self._runner.allocate(self.limits.num_blocks, self.limits.block_size)
        self._kv = KVManager(self.limits.num_blocks, self.limits.block_size, enable_prefix_caching=self.limits.enable_prefix_caching)
        self._scheduler = Scheduler(self.limits, self._kv)
        self._step_meter = StepMeter()
        self._residency = self._make_residency(config, vocabulary)
        self._executor = Executor(self._runner, Sampler(model.vocab_size, self._residency), self._step_meter)
        self._flight: Flight | None = None
        self._overlaps = self._runner.on_gpu if config.async_scheduling is None else config.async_scheduling
        self._drafters = DrafterFactory(config)
        self._seeds = random.Random(config.seed)
        self._open: dict[str, Generation] = {}
        self._compiling: dict[str, Future[Any]] = {}
        self._compiled: SimpleQueue[str] = SimpleQueue()
        self._counters = Counters()
        self._mask_meter = MaskMeter()
        self._woken = Event()
        self._executor.warm_up()

    @property
    def has_work(self) -> bool:
        """Whether any request is open."""
        return bool(self._open)

    @property
    def stats(self) -> EngineStats:
        return EngineStats(
            num_running=self._scheduler.num_running,
            num_waiting=self._scheduler.num_waiting,
            num_waiting_for_grammar=len(self._compiling),
            kv=self._kv.usage,
            **vars(self._counters),
            **vars(self._mask_meter),
            model_seconds=self._step_meter.model_seconds,
            host_seconds=self._step_meter.host_seconds,
        )

    def validate(self, request: Request) -> None:
        """Checks a request against the model and the engine's sizes. May be called from any thread.

        Raises:
            InvalidRequest: it can never be served.
        """
        params, num_prompt, max_len = request.params, len(request.prompt_token_ids), self.limits.max_model_len
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

    def add(self, request: Request) -> None:
        """Opens a request.

        Raises:
            InvalidRequest: it can never be served, or its id is open already.
            EngineOverloaded: too many requests wait.
            GrammarError: its grammar was refused at once.
        """
        self.validate(request)
        if request.request_id in self._open:
            raise InvalidRequest(f"request id {request.request_id!r} is in use", param="request_id")
        if self._scheduler.num_waiting + len(self._compiling) >= self.limits.max_waiting:
            raise EngineOverloaded(f"{self.limits.max_waiting} requests are waiting already")
        if request.grammar is not None:
            self._await(request)
        generation = self._open[request.request_id] = self._generation(request)
        if request.grammar is None:
            self._let_draft(generation, None)
            self._enqueue(request)

    def abort(self, request_id: str) -> list[RequestOutput]:
        """Ends a request; its last output, or nothing for an id that is not open."""
        generation = self._open.get(request_id)
        return [] if generation is None else [self._finish(generation, Verdict(reason="abort"))]

    def fail_all(self, error: FormcastError) -> list[RequestOutput]:
        """Ends every open request with an error; their last outputs."""
        return [self._finish(generation, _error(error)) for generation in list(self._open.values())]

    def wake(self) -> None:
        """Makes a `step` that waits for grammars return. May be called from any thread."""
        self._woken.set()

    def step(self) -> list[RequestOutput]:
        """Computes one batch; with `async_scheduling`, waits for one and launches the next.

        While all open requests wait for their grammars, it waits too, until one is ready or `wake` is called.
        """
        self._step_meter.resume()
        outputs = self._start_compiled()
        if not self._overlaps:
            self._launch()
        was_busy = self._flight is not None
        steps = self._land()
        outputs += [self._report(step) for step in steps if step.is_last]
        if self._overlaps:
            self._launch()
        outputs += [self._report(step) for step in steps if not step.is_last]
        if not (self._open and (outputs or was_busy or self._flight)):
            self._step_meter.pause()
            if self._open and self._compiling:
                self._woken.wait()
                self._woken.clear()
        return outputs

    def _make_residency(self, config: EngineConfig, vocabulary: Vocabulary) -> Residency | None:
        if not (self._runner.on_gpu if config.resident_masks is None else config.resident_masks):
            return None
        pool = MaskPool(-(-vocabulary.vocab_size // 32), min_rows=_ROWS_PER_REQUEST * self.limits.max_num_seqs)
        return Residency(pool, self._runner.device, shared=not self._runner.on_gpu)

    def _constraint(self, automaton: Any) -> Constraint:
        if self._residency is None:
            return Constraint(automaton, self._mask_meter)
        return ResidentConstraint(automaton, self._mask_meter, self._residency.pool)

    def _let_draft(self, generation: Generation, automaton: object | None) -> None:
        drafter = self._drafters.make(generation.request, automaton)
        if drafter is not None:
            generation.draft_with(drafter)

    def _generation(self, request: Request) -> Generation:
        params = request.params
        return Generation(
            request,
            seed=self._seeds.getrandbits(64) if params.seed is None else params.seed % (1 << 64),
            max_tokens=params.max_tokens or self.limits.max_model_len - len(request.prompt_token_ids),
            ends=self._ends,
            table=self._table,
        )

    def _enqueue(self, request: Request) -> None:
        self._scheduler.add(
            request.request_id, request.prompt_token_ids, priority=request.priority, salt=request.cache_salt, family=request.family
        )

    def _await(self, request: Request) -> None:
        """Compiles a request's grammar meanwhile."""
        future = self._compiler.submit(request.grammar)
        self._compiling[request.request_id] = future

        def note(_: Future[Any]) -> None:
            self._compiled.put(request.request_id)
            self.wake()

        future.add_done_callback(note)

    def _start_compiled(self) -> list[RequestOutput]:
        """Hands requests whose grammar is ready to the scheduler; the last outputs of those whose grammar failed.

        Costs nothing for those that wait.
        """
        failed: list[RequestOutput] = []
        while not self._compiled.empty():
            request_id = self._compiled.get()
            future = self._compiling.get(request_id)
            if future is None or not future.done():  # it was aborted, and another may have its id
                continue
            generation = self._open[request_id]
            try:
                automaton = self._compiling.pop(request_id).result()
                generation.constrain(self._constraint(automaton))
                self._let_draft(generation, automaton)
                self._enqueue(generation.request)
            except Exception as error:
                failed.append(self._finish(generation, _error(_failure(error))))
        return failed

    def _propose(self, request_id: str, limit: int) -> Sequence[int]:
        return self._open[request_id].propose(limit)

    def _launch(self) -> None:
        """Starts the next batch, if there is anything to compute."""
        plan = self._scheduler.schedule(self._propose if self._drafters.enabled else None)
        if plan.chunks:
            self._counters.count_step(plan.num_tokens)
            self._counters.num_preemptions += plan.num_preempted
            self._counters.num_held_slots += self._kv.usage.held * self.limits.block_size
            self._counters.num_unused_slots += self._scheduler.num_unused_slots
            generations = {chunk.request_id: self._open[chunk.request_id] for chunk in plan.chunks}
            now = time.monotonic()
            for generation in generations.values():
                generation.scheduled_time = generation.scheduled_time or now
            self._flight = self._executor.launch(plan, generations)

    def _land(self) -> list[_Step]:
        """Takes what the batch in flight came to, if there is one, so that the next one can be planned."""
        flight, self._flight = self._flight, None
        if flight is None:
            return []
        if self._residency is not None:
            self._residency.pool.tick()
        outcomes = self._executor.land(flight, self._is_open)
        steps = [self._take(outcome) for outcome in outcomes if outcome.tokens or outcome.error is not None]
        new_token_ids = {step.generation.request_id: tuple(token.token_id for token in step.tokens) for step in steps}
        computed = tuple(outcome.chunk for outcome in outcomes if outcome.error is None)
        self._scheduler.commit(replace(flight.plan, chunks=computed), StepResult(new_token_ids=new_token_ids))
        return steps

    def _is_open(self, generation: Generation) -> bool:
        return self._open.get(generation.request_id) is generation

    def _take(self, outcome: Outcome) -> _Step:
        """Adds to an answer what plain decoding would have: a sampled token counts if all drafts before it are what was sampled.

        Noise depends on the request and the position alone, so the outcome is that of one token a step, greedy or not.
        """
        generation, drafts = outcome.generation, outcome.chunk.drafts
        step = _Step(generation=generation, tokens=[])
        try:
            if outcome.error is not None:
                raise outcome.error
            for draft, token in zip_longest(drafts, outcome.tokens):
                if token.status is not RowStatus.SAMPLED:
                    raise _no_token(generation, token.status)
                step.is_last = generation.take(token.token_id, token.target)
                step.tokens.append(token)
                if step.is_last or token.token_id != draft:
                    break
        except Exception as error:
            step.is_last, step.error = True, _failure(error)
        num_accepted = sum(token.token_id == draft for draft, token in zip(drafts, step.tokens, strict=False))
        generation.count_drafts(len(drafts), num_accepted)
        return step

    def _report(self, step: _Step) -> RequestOutput:
        """The output of a step, the last one if the answer ends with it."""
        generation = step.generation
        try:
            progress = generation.read()
            text, verdict = progress.text, progress.verdict
            del step.tokens[progress.num_tokens :]
        except Exception as error:
            text, verdict = "", _error(_failure(error))
        if verdict.reason is None and step.error is not None:
            verdict = _error(step.error)
        if step.tokens and generation.num_generated == len(step.tokens):
            generation.num_cached = self._scheduler.num_cached(generation.request_id)
            self._counters.num_prompt_tokens += len(generation.request.prompt_token_ids)
            self._counters.num_cached_tokens += generation.num_cached
        self._counters.num_generated_tokens += len(step.tokens)
        if verdict.reason is not None:
            return self._finish(generation, verdict, step.tokens, text)
        return _output(generation, verdict, step.tokens, text)

    def _finish(self, generation: Generation, verdict: Verdict, tokens: Sequence[SampledToken] = (), text: str = "") -> RequestOutput:
        """Closes a request and makes its last output. Nothing else closes one."""
        del self._open[generation.request_id]
        compiling = self._compiling.pop(generation.request_id, None)
        if compiling is not None:
            compiling.cancel()
        self._scheduler.finish(generation.request_id)
        self._counters.num_finished += 1
        self._counters.num_failed += verdict.reason == "error"
        self._counters.num_aborted += verdict.reason == "abort"
        self._counters.num_draft_tokens += generation.num_drafts
        self._counters.num_accepted_tokens += generation.num_accepted
        self._counters.num_forced_tokens += generation.num_forced
        return _output(generation, verdict, tokens, text)

    def _check_token_ids(self, token_ids: Iterable[int], param: str) -> None:
        for token_id in token_ids:
            if not 0 <= token_id < self._num_tokens:
                raise InvalidRequest(f"{param}: token id {token_id} is out of range (the model has {self._num_tokens})", param=param)


def _output(generation: Generation, verdict: Verdict, tokens: Sequence[SampledToken], text: str) -> RequestOutput:
    logprobs = None
    if generation.request.params.logprobs is not None:
        logprobs = tuple(TokenLogprob(token_id=token.token_id, logprob=token.logprob, top=token.top) for token in tokens)
    return RequestOutput(
        request_id=generation.request_id,
        new_token_ids=tuple(token.token_id for token in tokens),
        text=text,
        finish_reason=verdict.reason,
        stop_reason=verdict.stop_reason,
        error=verdict.error,
        logprobs=logprobs,
        num_prompt_tokens=len(generation.request.prompt_token_ids),
        scheduled_time=generation.scheduled_time,
        num_generated_tokens=generation.num_generated,
        num_cached_tokens=generation.num_cached,
        num_draft_tokens=generation.num_drafts,
        num_accepted_tokens=generation.num_accepted,
        num_forced_tokens=generation.num_forced,
    )


def _failure(error: Exception) -> FormcastError:
    """Errors that a user can cause are passed on; any other is logged in full and only named in the answer."""
    if isinstance(error, FormcastError):
        return error
    _log.error("a request failed", exc_info=error)
    wrapped = GenerationError(f"the engine failed: {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def _error(error: FormcastError) -> Verdict:
    return Verdict(reason="error", error=error)


def _no_token(generation: Generation, status: RowStatus) -> GenerationError:
    if status is RowStatus.NO_TOKEN:
        return GenerationError(f"no token can follow after {generation.num_generated} generated tokens")
    return GenerationError("the model's logits are not numbers")
