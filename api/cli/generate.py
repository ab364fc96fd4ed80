"""`formcast generate`: one prompt, one answer; with `--batch` many."""

from __future__ import annotations

import argparse
import sys

from ..constraints import Constraint
from ..jobs import Job
from ..prompts import Prompt, PromptEncoder, check_length
from ..results import CompletionResult
from ..runtime import Runtime
from . import batch, options, terminal
from .answer import stream_answer
from .errors import FAILED, OK, UsageError
from .loading import load


def run(args: argparse.Namespace) -> int:
    if args.batch is not None:
        return batch.run(args)
    if args.prompt is None and options.reads_stdin(args):
        raise UsageError("stdin cannot be both the constraint and the prompt")
    params = options.sampling_params(args)
    runtime_options = options.runtime_options(args)
    constraint = options.constraint(args)
    text = _prompt_text(args.prompt)
    terminal.use_utf8()
    with load(runtime_options, quiet=args.quiet) as runtime:
        prompt = _encode(runtime, text, args)
        check_length(prompt, max_tokens=None, max_model_len=runtime.max_model_len)
        job = Job(prompt=prompt, params=params, constraint=constraint)
        answer = stream_answer(runtime.engine, job, terminal.write_answer)
    return _end(answer, constraint)


def _encode(runtime: Runtime, text: str, args: argparse.Namespace) -> Prompt:
    """A model with a chat template was trained on conversations, so that is what it gets unless told otherwise."""
    encoder = PromptEncoder(runtime.model)
    if args.raw or (runtime.model.chat_template is None and args.system is None):
        if args.system is not None:
            raise UsageError("--system needs a chat template, which --raw leaves out")
        return encoder.of_text(text)
    messages = [{"role": "system", "content": args.system}] if args.system is not None else []
    return encoder.of_chat([*messages, {"role": "user", "content": text}])


def _prompt_text(given: str | None) -> str:
    if given is not None:
        return given
    if sys.stdin.isatty():
        raise UsageError("a prompt is needed: give it as an argument or on stdin")
    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not valid UTF-8 (byte {error.start})") from None


def _end(answer: CompletionResult, constraint: Constraint | None) -> int:
    if not answer.text.endswith("\n"):
        terminal.write_answer("\n")
    if constraint is not None and answer.finish_reason == "length" and not constraint.grammar.accepts(answer.text):
        terminal.note(f"the answer was cut after {len(answer.token_ids)} tokens and is incomplete: raise --max-tokens")
        return FAILED
    return OK
