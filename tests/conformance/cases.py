"""The case files: where they are and what a line of them means.

A line is a JSON object with an `id`, one constraint (`schema`, `regex`, `lark`, `ebnf` or `gbnf`) and `tests`, each with a
verdict `valid` and either `data`, a JSON value, or `text`. They are not part of the repository: FORMCAST_CASES names their
folder, by default `../shared/cases` beside it.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

REPOSITORY = Path(__file__).resolve().parents[2]
KINDS = ("schema", "regex", "lark", "ebnf", "gbnf")
_SUFFIXES = (".jsonl.gz", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Attributes:
    key: the id, with a number behind it where several cases of a file share one.
    kind: one of `KINDS`.
    source: the constraint.
    options: what the case itself asks of the constructor.
    tests: texts and whether the constraint admits them.
    """

    key: str
    kind: str
    source: Any
    options: Mapping[str, Any]
    tests: tuple[tuple[str, bool], ...]

    def sampled(self, one_in: int) -> bool:
        """Whether the case belongs to a fixed sample of about one in `one_in`."""
        return crc32(self.key.encode()) % one_in == 0


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One case file under one set of options.

    Attributes:
        file: name of the case file without its suffix.
        options: keyword arguments of `Grammar.json_schema`.
        variant: tells suites of the same file apart.
        sample: the sample for every change holds one case in so many.
        tokens_sample: of these, one in so many are replayed token by token.
    """

    file: str
    options: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    sample: int = 1
    tokens_sample: int = 8

    @property
    def name(self) -> str:
        return f"{self.file}.{self.variant}" if self.variant else self.file


def cases_folder() -> Path:
    return Path(os.environ.get("FORMCAST_CASES") or REPOSITORY.parent / "shared" / "cases")


def find_file(name: str) -> Path | None:
    """The case file called `name`, or None where there is none."""
    paths = (cases_folder() / (name + suffix) for suffix in _SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file, in its order."""
    times = Counter[str]()
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            given = json.loads(line)
            times[given["id"]] += 1
            nth = times[given["id"]]
            kind = next(kind for kind in KINDS if kind in given)
            yield Case(
                key=given["id"] if nth == 1 else f"{given['id']} #{nth}",
                kind=kind,
                source=given[kind],
                options={"dialect": given["dialect"]} if "dialect" in given else {},
                tests=tuple((_text(test), test["valid"]) for test in given["tests"]),
            )


def _text(test: Mapping[str, Any]) -> str:
    return test["text"] if "text" in test else json.dumps(test["data"], ensure_ascii=False)
