"""Computes plans: a launch, and a landing that gives tokens. Between the two the host is free, where the device works by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import torch

from .batch import Batch, build
from .request import SamplingParams
from .runner import Runner
from .sampler import SampledToken, Sampler, SampleRow
from .step_meter import StepMeter
from .step_plan import Chunk, StepPlan

_NOBODYS_ROW = SampleRow(params=SamplingParams(temperature=0.0), seed=0, position=0)
"""Of requests that ended while their row was computed."""


class RowSource(Protocol):
    """Whoever has rows of logits in a step: an answer, or one beam of a search."""

    @property
    def sequence_id(self) -> str:
        """Its name in the plan."""
        ...

    def propose(self, limit: int) -> Sequence[int]:
        """At most `limit` guesses of the next tokens, for `rows`."""
        ...

    def rows(self, drafts: Sequence[int]) -> list[SampleRow]:
        """What the rows behind its last token and behind each draft are sampled with."""
        ...

    def note_scheduled(self, now: float) -> None:
        """It takes part in a step that begins now, in seconds on the monotonic clock."""
        ...


@dataclass(frozen=True, kw_only=True)
class Flight:
    """A step that was launched.

    Attributes:
        sources: who takes part, by the names in the plan.
        batch, logits: what is computed, unless that failed at once.
        error: why it did.
    """

    plan: StepPlan
    sources: Mapping[str, RowSource]
    batch: Batch | None = None
    logits: torch.Tensor | None = None
    error: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a step came to for one of those who take part.

    Attributes:
        tokens: behind the request's last token and behind each draft; none where the chunk does not sample.
        error: why its chunk could not be computed.
    """

    source: RowSource
    chunk: Chunk
    tokens: tuple[SampledToken, ...] = ()
    error: Exception | None = None


IsOpen = Callable[[RowSource], bool]
"""Whether a sequence still runs."""


class Executor:
    """Runs plans on a model. A plan that fails is computed again chunk by chunk and without drafts, so that only those fail who have to."""

    def __init__(self, runner: Runner, sampler: Sampler, meter: StepMeter):
        self._runner = runner
        self._sampler = sampler
        self._meter = meter

    def warm_up(self) -> None:
        """Compiles or loads the kernels, which the first request would wait for otherwise."""
        self._sampler.sample(self._runner.warm_up(), [_NOBODYS_ROW])

    def launch(self, plan: StepPlan, sources: Mapping[str, RowSource]) -> Flight:
        """Starts a step. On a GPU it returns before the step is computed."""
        flight = Flight(plan=plan, sources=sources)
        try:
            batch = build(plan, self._runner.device)
            with self._meter.model():
                logits = self._runner.forward(batch)
        except Exception as error:
            return replace(flight, error=error)
        return replace(flight, batch=batch, logits=logits)

    def land(self, flight: Flight, is_open: IsOpen) -> list[Outcome]:
        """Samples, and waits for the tokens. Those that ended since the launch have no outcome."""
        chunks = [chunk for chunk in flight.plan.chunks if is_open(flight.sources[chunk.request_id])]
        try:
            tokens = self._sample(flight, is_open)
        except Exception as error:
            return self._land_alone(flight, chunks, error)
        return self._outcomes(flight, chunks, tokens)

    def _sample(self, flight: Flight, is_open: IsOpen) -> dict[str, tuple[SampledToken, ...]]:
        """The tokens of each request that samples."""
        if flight.batch is None or flight.logits is None:
            raise flight.error or AssertionError("a step without logits")
        rows: list[SampleRow] = []
        for chunk in flight.batch.sampling:
            source = flight.sources[chunk.request_id]
            rows += source.rows(chunk.drafts) if is_open(source) else [_NOBODYS_ROW] * chunk.num_sampled
        if not rows:
            return {}
        settings = self._sampler.settings(rows, flight.logits.device)
        with self._meter.model():
            tokens = iter(self._sampler.draw(flight.logits, settings, rows))
        return {chunk.request_id: tuple(islice(tokens, chunk.num_sampled)) for chunk in flight.batch.sampling}

    def _land_alone(self, flight: Flight, chunks: Iterable[Chunk], error: Exception) -> list[Outcome]:
        """Each chunk by itself. Keys and values that are there already are written once more, the same as before."""
        outcomes: list[Outcome] = []
        for chunk in chunks:
            alone = replace(flight.plan, chunks=(chunk.without_drafts(),))
            if alone.chunks == flight.plan.chunks:
                outcomes.append(Outcome(source=flight.sources[chunk.request_id], chunk=chunk, error=error))
            else:
                outcomes += self.land(self.launch(alone, flight.sources), lambda _: True)
        return outcomes

    def _outcomes(self, flight: Flight, chunks: Iterable[Chunk], tokens: Mapping[str, tuple[SampledToken, ...]]) -> list[Outcome]:
        return [
            Outcome(source=flight.sources[chunk.request_id], chunk=chunk, tokens=tokens.get(chunk.request_id, ()))
            for chunk in chunks
        ]
