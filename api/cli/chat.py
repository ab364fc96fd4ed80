"""`formcast chat`: a conversation on the terminal."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...grammar.errors import FormcastError
from ..constraints import Constraint
from ..runtime import Runtime
from . import interrupt, options, terminal
from .answer import stream_answer
from .asker import Asker, Manner, Message
from .errors import OK, UsageError
from .loading import load

_PROMPT = "> "
_HISTORY_LINES = 1000
_HELP = """\
/schema SCHEMA   answers obey it from now on (file, inline JSON, formcast:NAME); without SCHEMA they are free again
/history         show the conversation so far
/reset           forget it
/exit            leave (also Ctrl-D); Ctrl-C stops an answer"""


def run(args: argparse.Namespace) -> int:
    manner = options.manner(args)
    runtime_options = options.runtime_options(args)
    constraint = options.constraint(args)
    terminal.use_utf8()
    with load(runtime_options) as runtime:
        if sys.stdin.isatty():
            _enable_line_editing()
            terminal.note("type a message; /help lists the commands")
        Conversation(runtime=runtime, manner=manner, constraint=constraint, shows_thoughts=args.thinking == "show").loop()
    return OK


@dataclass(kw_only=True)
class Conversation:
    """The turns so far and what answers must look like.

    Raises:
        UsageError: the model has no chat template.
    """

    runtime: Runtime
    manner: Manner
    constraint: Constraint | None = None
    shows_thoughts: bool = True
    turns: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.runtime.model.chat_template is None:
            raise UsageError(f"{self.runtime.model.name} has no chat template, so it can only continue texts (`formcast generate`)")
        self._asker = Asker(self.runtime, self.manner)

    def loop(self) -> None:
        """Read and answer until /exit or the end of the input."""
        while (line := _read_line()) is not None:
            if line.startswith("/"):
                if self._command(line):
                    return
            elif line:
                self._answer(line)

    def _command(self, line: str) -> bool:
        """Obey a command; True if it is the one to leave."""
        name, _, argument = line.partition(" ")
        if name in ("/exit", "/quit"):
            return True
        if name == "/reset":
            self.turns.clear()
        elif name == "/history":
            for turn in self.turns:
                terminal.note(f"{turn['role']}: {turn['content']}")
        elif name == "/schema":
            self._set_schema(argument.strip())
        else:
            terminal.note(_HELP if name == "/help" else f"there is no {name}; /help lists the commands")
        return False

    def _set_schema(self, source: str) -> None:
        try:
            self.constraint = options.schema_constraint(source) if source else None
        except (UsageError, FormcastError) as error:
            terminal.note(str(error))

    def _answer(self, text: str) -> None:
        """One turn. A turn that fails or is stopped is not part of the conversation."""
        user = {"role": "user", "content": text}
        try:
            job = self._asker.of_messages([*self.turns, user], self.constraint)
            with terminal.AnswerPrinter(shows_thoughts=self.shows_thoughts) as printer:
                answer = stream_answer(self.runtime.engine, job, printer.write, printer.think)
        except FormcastError as error:
            terminal.note(str(error))
            return
        except KeyboardInterrupt:
            interrupt.obeyed()
            terminal.write_answer("\n")
            return
        terminal.write_answer("\n")
        if answer.finish_reason == "length":
            terminal.note("the answer was cut: /reset makes room, --max-tokens allows longer ones")
        self.turns += [user, {"role": "assistant", "content": answer.content or ""}]


def _read_line() -> str | None:
    try:
        return input(_PROMPT if sys.stdin.isatty() else "").strip()
    except EOFError:
        return None


def _enable_line_editing() -> None:
    """What was typed can be edited and found again, also that of earlier days."""
    try:
        import readline
    except ImportError:  # Python may be built without it; typing works all the same
        return
    path = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "formcast" / "chat_history"
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES)
    atexit.register(_save_history, readline.write_history_file, path)


def _save_history(write: Callable[[Path], None], path: Path) -> None:
    with contextlib.suppress(OSError):
        write(path)
