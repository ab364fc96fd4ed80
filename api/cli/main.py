"""The `formcast` command."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from . import interrupt
from .errors import BAD_INPUT, FAILED, INTERRUPTED, READER_GONE, CommandFailed, UsageError
from .parser import build_parser

_COMMANDS = {
    "serve": "serve",
    "generate": "generate",
    "chat": "chat",
    "pull": "models",
    "list": "models",
    "show": "models",
    "rm": "models",
    "check": "check",
    "bench": "bench",
    "completion": "completion",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is the exit code (see `errors`)."""
    try:
        with interrupt.heeded():
            return _run(build_parser().parse_args(argv))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return READER_GONE
    except Exception as error:
        return _report(error)


def _run(args: argparse.Namespace) -> int:
    # Imported here, so that `--help` and a misspelt flag answer at once.
    module = "bench_mask" if args.command == "bench" and args.bench == "mask" else _COMMANDS[args.command]
    command = importlib.import_module(f".{module}", __package__)
    code = command.run(args)
    sys.stdout.flush()
    return code


def _report(error: Exception) -> int:
    """One line on stderr for what a user can cause, and below it the place in a pattern or grammar; anything else is our mistake and
    shows its traceback."""
    from ...grammar.errors import GrammarError

    code = _exit_code(error)
    if code is None:
        raise error
    if isinstance(error, GrammarError) and error.excerpt is not None:
        print(f"formcast: {_one_line(error.summary)}\n{error.excerpt}", file=sys.stderr)
    else:
        print(f"formcast: {_one_line(str(error))}", file=sys.stderr)
    return code


def _exit_code(error: Exception) -> int | None:
    from ...engine.errors import DownloadError
    from ...engine.request import EngineOverloaded, EngineStopped, GenerationError
    from ...grammar.errors import FormcastError
    from ..constraints import ConstraintError

    if isinstance(error, (CommandFailed, DownloadError, EngineOverloaded, EngineStopped, GenerationError)):
        return FAILED
    if isinstance(error, (UsageError, FormcastError, ConstraintError)):
        return BAD_INPUT
    return FAILED if isinstance(error, OSError) else None


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _discard_stdout() -> None:
    """Keep the interpreter from complaining when it flushes a pipe that nobody reads."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
