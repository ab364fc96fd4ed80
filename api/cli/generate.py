"""`formcast generate`: one prompt, one answer; with `--batch` many."""

from __future__ import annotations

import argparse
import sys

from ..constraints import Constraint
from ..results import CompletionResult
from . import batch, options, terminal
from .answer import stream_answer
from .asker import Asker
from .errors import FAILED, OK, UsageError
from .loading import load


def run(args: argparse.Namespace) -> int:
    if args.batch is not None:
        return batch.run(args)
    if args.restart:
        raise UsageError("--restart needs --batch")
    if args.prompt is None and options.reads_stdin(args):
        raise UsageError("stdin cannot be both the constraint and the prompt")
    manner = options.manner(args)
    runtime_options = options.runtime_options(args)
    constraint = options.constraint(args)
    text = _prompt_text(args.prompt)
    terminal.use_utf8()
    with load(runtime_options, quiet=args.quiet) as runtime:
        job = Asker(runtime, manner).of_text(text, constraint)
        with terminal.AnswerPrinter(shows_thoughts=args.thinking == "show" and not args.quiet) as printer:
            answer = stream_answer(runtime.engine, job, printer.write, printer.think)
    return _end(answer, constraint)


def _prompt_text(given: str | None) -> str:
    if given is not None:
        return given
    if sys.stdin.isatty():
        raise UsageError("a prompt is needed: give it as an argument or on stdin")
    try:
        text = sys.stdin.buffer.read().decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not valid UTF-8 (byte {error.start})") from None
    if not text:
        raise UsageError("a prompt is needed: there is none on stdin")
    return text


def _end(answer: CompletionResult, constraint: Constraint | None) -> int:
    content = answer.content or ""
    if not content.endswith("\n"):
        terminal.write_answer("\n")
    if answer.finish_reason != "length":
        return OK
    in_thought = answer.content is None and answer.reasoning is not None
    if in_thought or (constraint is not None and not constraint.grammar.accepts(content)):
        place = "inside its thought" if in_thought else "and is incomplete"
        terminal.note(f"the answer was cut after {len(answer.token_ids)} tokens {place}: raise --max-tokens")
        return FAILED
    return OK
