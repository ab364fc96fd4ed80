"""One answer, written as it grows."""

from __future__ import annotations

from collections.abc import Callable

from ..answers.reader import ContentDelta, ReasoningDelta
from ..constraints import raise_refusal
from ..jobs import Job
from ..ports import Engine
from ..results import CompletionBuilder, CompletionResult
from ..session import Session
from . import interrupt
from .errors import CommandFailed

Write = Callable[[str], None]


def stream_answer(engine: Engine, job: Job, write: Write, think: Write = lambda text: None) -> CompletionResult:
    """Run a job of one answer and call `write` with each piece of its content, `think` with each piece of the thought before it.

    Raises:
        GrammarError: the constraint cannot be enforced.
        FormcastError: what the engine says went wrong.
        CommandFailed: the engine was closed under it.
    """
    (builder,) = job.builders()
    (request,) = job.requests()
    with Session[None](engine) as session:
        session.submit(request, None)
        while not builder.finished:
            _step(session, builder, write, think)
    return builder.build()


def _step(session: Session[None], builder: CompletionBuilder, write: Write, think: Write) -> None:
    interrupt.check()
    _, output = session.next()
    raise_refusal(output.error)
    if output.error is not None:
        raise output.error
    if output.finish_reason == "abort":
        raise CommandFailed("the engine was stopped")
    for delta in builder.add(output):
        if isinstance(delta, ContentDelta):
            write(delta.text)
        elif isinstance(delta, ReasoningDelta):
            think(delta.text)
