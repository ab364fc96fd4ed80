"""Runs a list of jobs to their ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..engine.request import EngineOverloaded, Request
from .constraints import raise_refusal
from .jobs import Job
from .ports import Engine
from .results import RequestResult
from .session import Session


class _Place(NamedTuple):
    """Where an output belongs: a job, and which of its requests."""

    job: int
    request: int


def run_jobs(
    engine: Engine, jobs: Sequence[Job], *, max_in_flight: int, report: Callable[[int], None] = lambda num_finished: None
) -> list[RequestResult]:
    """Results in the order of `jobs`. At most `max_in_flight` requests are submitted at a time, so any number of jobs will do.

    Args:
        report: called with the number of finished jobs whenever it grows.

    Raises:
        GrammarError: a constraint turned out not to be enforceable; the other requests are aborted.
    """
    builders = [job.builders() for job in jobs]
    num_open = [1 if job.beam_search else job.params.n for job in jobs]
    waiting = deque((request, _Place(index, number)) for index, job in enumerate(jobs) for number, request in enumerate(job.requests()))
    num_finished = 0
    with Session[_Place](engine) as session:
        while waiting or session.num_live:
            _submit(session, waiting, max_in_flight)
            place, output = session.next()
            raise_refusal(output.error)
            for answer, own in jobs[place.job].outputs(place.request, output):
                builders[place.job][answer].add(own)
            num_open[place.job] -= output.finished
            if output.finished and not num_open[place.job]:
                num_finished += 1
                report(num_finished)
    return [job.result(own) for job, own in zip(jobs, builders, strict=True)]


def _submit(session: Session[_Place], waiting: deque[tuple[Request, _Place]], max_in_flight: int) -> None:
    while waiting and session.num_live < max_in_flight:
        try:
            session.submit(*waiting[0])
        except EngineOverloaded:
            if not session.num_live:  # others fill the queue, and no output of ours will come to try again after
                raise
            return
        waiting.popleft()
