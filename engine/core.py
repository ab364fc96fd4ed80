"""The step loop: requests in, tokens out. Synchronous and single-threaded; `engine.client` gives it a thread."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, Protocol

from ..fsm_cache.mask_pool import MaskPool
from ..grammar.errors import FormcastError
from .beams.group import BeamGroup, BeamRow
from .compilations import Compilations, Compiler
from .config import EngineConfig, EngineLimits, resolve
from .constraint import Constraint, ResidentConstraint
from .deadlines import Deadlines
from .detokenizer import TokenTable
from .drafts.factory import DrafterFactory
from .executor import Executor, Flight, Outcome, RowSource
from .failures import failure
from .generation import EndTokens, Generation, Verdict
from .kv.manager import KVManager
from .mask_meter import MaskMeter
from .outputs import error_verdict, output_of
from .request import DeadlineExceeded, EngineOverloaded, InvalidRequest, Request, RequestOutput
from .request_checks import RequestChecks
from .residency import Residency
from .runner import Model, Runner
from .sampler import SampledToken, Sampler
from .scheduler import Scheduler
from .stats import Counters, EngineStats
from .step_meter import StepMeter
from .step_plan import StepResult
from .steps import Step, take

_ROWS_PER_REQUEST = 32
"""Mask rows for its place and its drafts, twice."""


class Vocabulary(Protocol):
    """The tokens of a model as grammars see them (`fsm_cache.Vocabulary`)."""

    vocab_size: int
    eos_token_ids: frozenset[int]
    token_bytes: tuple[bytes | None, ...]


class EngineCore:
    """A model, its KV cache and its open requests.

    Each request that `add` accepts gets exactly one output with a finish reason, from `step`, `abort` or `fail_all`, whatever
    happens to it or to others. Not thread-safe, except for `validate` and `wake`.

    With `async_scheduling`, a step is launched as soon as the tokens of the one before it are known, and what else these come to is
    done while it computes: text, stop strings, masks, outputs, and whatever the caller does between two calls of `step`. A request whose
    end shows only then has a row in that step that nobody looks at.

    Args:
        clock: seconds, those of `Request.arrival_time`.
    """

    def __init__(self, model: Model, config: EngineConfig, compiler: Compiler, *, clock: Callable[[], float] = time.monotonic):
        vocabulary: Vocabulary = compiler.vocabulary
        if (vocabulary.vocab_size, vocabulary.eos_token_ids) != (model.vocab_size, model.eos_token_ids):
            raise ValueError(f"the vocabulary of the compiler is not that of {model.name}: its width or its end tokens differ")
        self._table = TokenTable(token_bytes=vocabulary.token_bytes, special_name=model.tokenizer.id_to_token)
        self._ends = EndTokens(token_ids=model.eos_token_ids, num_tokens=model.vocab_size)
        self._runner = Runner(model)
        self.limits: EngineLimits = resolve(
            config,
            model_max_len=model.max_model_len,
            block_bytes=self._runner.block_bytes(config.block_size),
            on_gpu=self._runner.on_gpu,
            memory=self._runner.memory(),
        )
        self._checks = RequestChecks(self.limits, num_tokens=model.vocab_size, num_end_tokens=len(model.eos_token_ids))
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
        self._open: dict[str, Generation | BeamGroup] = {}
        self._sources: dict[str, RowSource] = {}  # by their names in the scheduler
        self._compilations = Compilations(compiler, self.wake)
        self._clock = clock
        self._deadlines = Deadlines()
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
            num_waiting_for_grammar=len(self._compilations),
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
        self._checks.check(request)

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
        if self._scheduler.num_waiting + len(self._compilations) >= self.limits.max_waiting:
            raise EngineOverloaded(f"{self.limits.max_waiting} requests are waiting already")
        if request.grammar is not None:
            self._compilations.start(request.request_id, request.grammar)
        generation = self._open[request.request_id] = self._generation(request)
        if request.deadline is not None:
            self._deadlines.add(request.request_id, request.deadline)
        if request.grammar is None:
            self._enqueue(generation, None)

    def abort(self, request_id: str) -> list[RequestOutput]:
        """Ends a request; its last output, or nothing for an id that is not open."""
        generation = self._open.get(request_id)
        return [] if generation is None else [self._finish(generation, Verdict(reason="abort"))]

    def fail_all(self, error: FormcastError) -> list[RequestOutput]:
        """Ends every open request with an error; their last outputs."""
        return [self._finish(generation, error_verdict(error)) for generation in list(self._open.values())]

    def wake(self) -> None:
        """Makes a `step` that waits for grammars return. May be called from any thread."""
        self._woken.set()

    def step(self) -> list[RequestOutput]:
        """Computes one batch; with `async_scheduling`, waits for one and launches the next.

        While all open requests wait for their grammars, it waits too, until one is ready or due, or `wake` is called.
        """
        self._step_meter.resume()
        outputs = self._end_late() + self._start_compiled()
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
            if self._open and self._compilations:
                self._woken.wait(self._deadlines.until_next(self._clock()))
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

    def _generation(self, request: Request) -> Generation | BeamGroup:
        params = request.params
        max_tokens = params.max_tokens or self.limits.max_model_len - len(request.prompt_token_ids)
        if request.beam_search is not None:
            return BeamGroup(request, request.beam_search, max_tokens=max_tokens, ends=self._ends, table=self._table)
        return Generation(
            request,
            seed=self._seeds.getrandbits(64) if params.seed is None else params.seed % (1 << 64),
            max_tokens=max_tokens,
            ends=self._ends,
            table=self._table,
        )

    def _enqueue(self, generation: Generation | BeamGroup, automaton: Any | None) -> None:
        """Hands a request to the scheduler, with the automaton of its grammar, if it has one."""
        request, family = generation.request, generation.request.family
        if automaton is not None:
            generation.constrain(self._constraint(automaton))
        if isinstance(generation, BeamGroup):
            family = family or request.request_id
            self._sources[request.request_id] = generation.rows[0]
        else:
            drafter = self._drafters.make(request, automaton)
            if drafter is not None:
                generation.draft_with(drafter)
            self._sources[request.request_id] = generation
        self._scheduler.add(
            request.request_id, request.prompt_token_ids, priority=request.priority, salt=request.cache_salt, family=family
        )

    def _start_compiled(self) -> list[RequestOutput]:
        """Hands requests whose grammar is ready to the scheduler; the last outputs of those whose grammar failed."""
        failed: list[RequestOutput] = []
        for request_id, future in self._compilations.ready():
            generation = self._open[request_id]
            try:
                self._enqueue(generation, future.result())
            except Exception as error:
                failed.append(self._finish(generation, error_verdict(failure(error))))
        return failed

    def _end_late(self) -> list[RequestOutput]:
        """Ends the requests whose deadline has passed; their last outputs."""
        late = (self._open[request_id] for request_id in self._deadlines.expired(self._clock()))
        return [self._finish(generation, error_verdict(DeadlineExceeded(generation.request.params.timeout or 0.0))) for generation in late]

    def _propose(self, request_id: str, limit: int) -> Sequence[int]:
        return self._sources[request_id].propose(limit)

    def _launch(self) -> None:
        """Starts the next batch, if there is anything to compute."""
        plan = self._scheduler.schedule(self._propose if self._drafters.enabled else None)
        if plan.chunks:
            self._counters.count_step(plan.num_tokens)
            self._counters.num_preemptions += plan.num_preempted
            self._counters.num_held_slots += self._kv.usage.held * self.limits.block_size
            self._counters.num_unused_slots += self._scheduler.num_unused_slots
            sources = {chunk.request_id: self._sources[chunk.request_id] for chunk in plan.chunks}
            now = self._clock()
            for source in sources.values():
                source.note_scheduled(now)
            self._flight = self._executor.launch(plan, sources)

    def _land(self) -> list[Step]:
        """Takes what the batch in flight came to, if there is one, so that the next one can be planned."""
        flight, self._flight = self._flight, None
        if flight is None:
            return []
        if self._residency is not None:
            self._residency.pool.tick()
        outcomes = self._executor.land(flight, self._is_open)
        steps, searched = self._take(outcomes)
        new_token_ids = {step.generation.request_id: tuple(token.token_id for token in step.tokens) for step in steps}
        computed = tuple(outcome.chunk for outcome in outcomes if outcome.error is None)
        self._scheduler.commit(replace(flight.plan, chunks=computed), StepResult(new_token_ids=new_token_ids))
        self._advance(searched)
        return steps + [Step(generation=group, is_last=True, error=group.error) for group in searched if group.is_over]

    def _is_open(self, source: RowSource) -> bool:
        return self._sources.get(source.sequence_id) is source

    def _take(self, outcomes: Iterable[Outcome]) -> tuple[list[Step], list[BeamGroup]]:
        """What outcomes gave to answers, and the searches of which beams were computed."""
        steps: list[Step] = []
        groups: dict[BeamGroup, None] = {}
        for outcome in outcomes:
            source = outcome.source
            if not outcome.tokens and outcome.error is None:
                continue
            if isinstance(source, BeamRow):
                source.take(outcome)
                groups[source.group] = None
            elif isinstance(source, Generation):
                steps.append(take(source, outcome))
        return steps, list(groups)

    def _advance(self, groups: Iterable[BeamGroup]) -> None:
        """Takes the steps of those searches that are ready."""
        for group in groups:
            if group.error is not None or not group.is_ready:
                continue
            if group.num_steps == 0:
                self._count_prompt(group)
            moves = group.advance()
            for sequence_id in moves.dropped:
                self._scheduler.finish(sequence_id)
                del self._sources[sequence_id]
            for parent_id, child_id in moves.forks:
                self._scheduler.fork(parent_id, child_id)
            for sequence_id, token_id in moves.tokens:
                self._scheduler.extend(sequence_id, token_id)
            self._sources.update((row.sequence_id, row) for row in group.rows)
            group.follow()

    def _report(self, step: Step) -> RequestOutput:
        """The output of a step, the last one if the answer ends with it."""
        generation = step.generation
        try:
            progress = generation.read()
            text, verdict = progress.text, progress.verdict
            del step.tokens[progress.num_tokens :]
        except Exception as error:
            text, verdict = "", error_verdict(failure(error))
        if verdict.reason is None and step.error is not None:
            verdict = error_verdict(step.error)
        if step.tokens and generation.num_generated == len(step.tokens):
            self._count_prompt(generation)
        self._counters.num_generated_tokens += len(step.tokens) + sum(len(beam.token_ids) for beam in verdict.beams)
        if verdict.reason is not None:
            return self._finish(generation, verdict, step.tokens, text)
        return output_of(generation, verdict, step.tokens, text)

    def _count_prompt(self, generation: Generation | BeamGroup) -> None:
        generation.num_cached = self._scheduler.num_cached(generation.request_id)
        self._counters.num_prompt_tokens += len(generation.request.prompt_token_ids)
        self._counters.num_cached_tokens += generation.num_cached

    def _finish(
        self, generation: Generation | BeamGroup, verdict: Verdict, tokens: Sequence[SampledToken] = (), text: str = ""
    ) -> RequestOutput:
        """Closes a request and makes its last output. Nothing else closes one."""
        del self._open[generation.request_id]
        self._deadlines.discard(generation.request_id)
        self._compilations.cancel(generation.request_id)
        for sequence_id in generation.sequence_ids:
            self._scheduler.finish(sequence_id)
            self._sources.pop(sequence_id, None)
        self._counters.count_end(
            verdict.reason, num_drafts=generation.num_drafts, num_accepted=generation.num_accepted, num_forced=generation.num_forced
        )
        return output_of(generation, verdict, tokens, text)
