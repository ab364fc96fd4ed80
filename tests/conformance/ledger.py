"""The recorded outcomes: for each suite, the ids of the cases that do not pass, with their status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .replay import STATUSES, Outcome

_FOLDER = Path(__file__).parent / "ledger"
HOW_TO_RECORD = "make conformance RECORD=1"


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Attributes:
    num_cases: cases of the file when it was recorded.
    exceptions: status by case key, of those that did not pass.
    """

    num_cases: int
    exceptions: Mapping[str, str]

    def status(self, key: str) -> str:
        return self.exceptions.get(key, "pass")


def _path(name: str) -> Path:
    return _FOLDER / f"{name}.json"


def load(name: str) -> Ledger | None:
    path = _path(name)
    if not path.exists():
        return None
    return Ledger(**json.loads(path.read_text(encoding="utf-8")))


def record(name: str, outcomes: Mapping[str, Outcome]) -> None:
    """Writes the ledger of a suite from the outcomes of all its cases."""
    exceptions = {key: outcome.status for key, outcome in sorted(outcomes.items()) if outcome.status != "pass"}
    content = json.dumps({"num_cases": len(outcomes), "exceptions": exceptions}, indent=1, ensure_ascii=False)
    _path(name).write_text(content + "\n", encoding="utf-8")


def differences(ledger: Ledger, outcomes: Mapping[str, Outcome]) -> str:
    """What got worse and what got better, for people; empty when everything is as recorded."""
    worse: list[str] = []
    better: list[str] = []
    for key, (status, why) in outcomes.items():
        recorded = ledger.status(key)
        if status != recorded:
            side = worse if STATUSES.index(status) > STATUSES.index(recorded) else better
            side.append(f"  {key}: {recorded} -> {status} {why}")
    parts: list[str] = []
    if worse:
        parts.append("\n".join((f"{len(worse)} cases got worse:", *worse)))
    if better:
        parts.append("\n".join((f"{len(better)} cases got better; record them with `{HOW_TO_RECORD}`:", *better)))
    return "\n".join(parts)
