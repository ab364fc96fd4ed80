"""`formcast generate --batch IN OUT`: many prompts from a file, answers to a file, and on with the rest after an interruption."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import Any

from ...grammar.errors import FormcastError
from ..constraints import Constraint, raise_refusal
from ..jobs import Job
from ..progress import Report, batch_progress
from ..results import CompletionBuilder, CompletionResult
from ..runtime import Runtime
from ..session import Session
from . import interrupt, options, terminal
from .asker import Asker, Manner
from .batch_file import BatchItem, BatchOutput, pending, read_items
from .batch_settings import settings_of
from .errors import FAILED, OK, UsageError
from .loading import load


def run(args: argparse.Namespace) -> int:
    """1 if an answer failed; what failed stands in the output."""
    if args.prompt is not None:
        raise UsageError("--batch takes its prompts from a file, not from the command line")
    manner = options.manner(args)
    runtime_options = options.runtime_options(args)
    constraint = options.constraint(args)
    source, target = args.batch
    items = read_items(source)
    settings = settings_of(runtime_options, manner, constraint)
    with closing(BatchOutput(target, items, settings, restart=args.restart)) as output:
        if len(output.done) == len(items):
            terminal.note(f"all {len(items)} answers are in {target} already")
            return OK
        with load(runtime_options, quiet=args.quiet) as runtime:
            batch = BatchRun(runtime, manner, constraint, output)
            num_failed = _go(batch, items, output, target, quiet=args.quiet)
    if num_failed:
        terminal.note(f"{num_failed} of {len(items)} answers failed; the 'error' of their lines in {target} says why")
        return FAILED
    return OK


def _go(batch: BatchRun, items: list[BatchItem], output: BatchOutput, target: str, *, quiet: bool) -> int:
    try:
        with batch_progress(not quiet and sys.stderr.isatty(), total=len(items)) as report:
            return batch.answer_all(items, report)
    except KeyboardInterrupt:
        terminal.note(f"{len(output.done)} of {len(items)} answers are in {target}; the same command goes on from there")
        raise


class BatchRun:
    """Answers the lines of one batch."""

    def __init__(self, runtime: Runtime, manner: Manner, constraint: Constraint | None, output: BatchOutput):
        self._runtime = runtime
        self._asker = Asker(runtime, manner)
        self._constraint = constraint
        self._output = output
        self._num_failed = 0
        self._open: dict[int, tuple[BatchItem, CompletionBuilder]] = {}

    def answer_all(self, items: list[BatchItem], report: Report) -> int:
        """Answer what has no answer yet; the number of those that failed.

        Raises:
            GrammarError: the constraint cannot be enforced.
        """
        waiting = list(reversed(list(pending(items, self._output))))
        with Session[int](self._runtime.engine) as session:
            while waiting or session.num_live:
                while waiting and session.num_live < self._runtime.max_waiting:
                    self._submit(session, waiting.pop())
                if session.num_live:
                    self._take(session)
                report(len(self._output.done))
        return self._num_failed

    def _submit(self, session: Session[int], item: BatchItem) -> None:
        """A prompt that cannot be served is an answer that failed; the others go on."""
        try:
            job = self._job(item)
            (request,), (builder,) = job.requests(), job.builders()
            session.submit(request, item.index)
        except FormcastError as error:
            self._fail(item, error)
        else:
            self._open[item.index] = (item, builder)

    def _job(self, item: BatchItem) -> Job:
        if item.messages is not None:
            return self._asker.of_messages(item.messages, self._constraint)
        return self._asker.of_text(item.prompt or "", self._constraint)

    def _take(self, session: Session[int]) -> None:
        interrupt.check()
        index, output = session.next()
        raise_refusal(output.error)
        item, builder = self._open[index]
        builder.add(output)
        if not output.finished:
            return
        del self._open[index]
        if output.error is not None:
            self._fail(item, output.error)
        else:
            self._output.write(item, _shown(builder.build(), output.num_prompt_tokens, self._constraint))

    def _fail(self, item: BatchItem, error: Exception) -> None:
        self._num_failed += 1
        self._output.write(item, {"text": None, "finish_reason": "error", "error": str(error)})


def _shown(answer: CompletionResult, num_prompt_tokens: int, constraint: Constraint | None) -> dict[str, Any]:
    parsed = {"parsed": answer.parsed} if constraint is not None and constraint.parse is not None and answer.parse_error is None else {}
    thought = {} if answer.reasoning is None else {"reasoning": answer.reasoning}
    return {
        "text": answer.content or "",
        **thought,
        **parsed,
        "finish_reason": answer.finish_reason,
        "prompt_tokens": num_prompt_tokens,
        "completion_tokens": len(answer.token_ids),
        "error": answer.parse_error,
    }
