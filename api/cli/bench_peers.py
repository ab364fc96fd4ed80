"""Other engines beside formcast in one `bench throughput`: commands that read and write JSON lines.

A peer gets one line with `model` (a GGUF file, or null), `folder` (the same weights in Hugging Face's layout, unpacked to float32),
`max_num_seqs` and `max_model_len`, and answers `{"ready": true}`. Each further line holds `prompts` (lists of token ids), `max_tokens` and
`schema` (null: free text). The peer runs all prompts at the same time, greedily and without heeding end tokens, and answers with
`tokens`, all that it generated, and `seconds`, or with `{"refused": reason}`. It ends with its input. `bench/peers` holds two.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from . import terminal
from .errors import CommandFailed, UsageError


@dataclass(frozen=True)
class PeerCommand:
    """What `--peer NAME=COMMAND` says."""

    name: str
    argv: tuple[str, ...]

    @classmethod
    def of_flag(cls, text: str) -> PeerCommand:
        """Raises ValueError for anything but NAME=COMMAND."""
        name, _, command = text.partition("=")
        argv = tuple(shlex.split(command))
        if not name or not argv:
            raise ValueError(f"{text!r} is not NAME=COMMAND")
        return cls(name, argv)


class Peer:
    """A running peer."""

    def __init__(self, command: PeerCommand, setup: dict[str, Any]):
        """Raises UsageError when there is no such command, CommandFailed when it doesn't get ready."""
        self.name = command.name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self._process = subprocess.Popen(command.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        except OSError as error:
            self._errors.close()
            raise UsageError(f"--peer {command.name}: {error}") from None
        try:
            self._ask(setup)
        except BaseException:
            self.close()
            raise

    def measure(self, prompts: Sequence[Sequence[int]], *, max_tokens: int, schema: Any) -> tuple[int, float] | None:
        """Tokens generated and seconds taken; None if the peer can't do that, which is said on stderr.

        Raises:
            CommandFailed: it ended, or broke the protocol.
        """
        answer = self._ask({"prompts": prompts, "max_tokens": max_tokens, "schema": schema})
        if "refused" in answer:
            terminal.note(f"{self.name}: {answer['refused']}")
            return None
        return answer["tokens"], answer["seconds"]

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=10)
        except (subprocess.TimeoutExpired, OSError):
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()
            self._errors.close()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise CommandFailed(f"peer {self.name} gave no answer: {self._last_words()}") from None

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing on stderr"


@contextmanager
def running_peers(commands: Sequence[PeerCommand], source: str, *, max_num_seqs: int, max_model_len: int) -> Iterator[list[Peer]]:
    """Peers that have the model loaded; they end with the block."""
    with ExitStack() as stack:
        if not commands:
            yield []
            return
        from ...engine.models.store import ModelStore

        gguf = ModelStore().resolve(source).gguf
        folder = stack.enter_context(_unpacked(source))
        setup = {
            "model": None if gguf is None else str(gguf),
            "folder": folder,
            "max_num_seqs": max_num_seqs,
            "max_model_len": max_model_len,
        }
        peers = []
        for command in commands:
            with terminal.status(f"starting {command.name}"):
                peers.append(Peer(command, setup))
            stack.callback(peers[-1].close)
        yield peers


@contextmanager
def _unpacked(source: str) -> Iterator[str]:
    """The weights in a folder that every engine can read, for as long as the block lasts."""
    from transformers import PreTrainedModel

    from ...engine.models.loader import load_model
    from ...engine.models.store import ModelStore

    with tempfile.TemporaryDirectory(prefix="formcast-peers-") as folder:
        with terminal.status("unpacking the weights for peers"):
            model = load_model(ModelStore().resolve(source).path)
            cast(PreTrainedModel, model.module).save_pretrained(folder)
            model.tokenizer.save(str(Path(folder) / "tokenizer.json"))
            (Path(folder) / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
        yield folder
