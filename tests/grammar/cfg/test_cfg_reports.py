"""Grammars that were reported as failing elsewhere, from the shared case files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from formcast.grammar.cfg import parse_ebnf, parse_gbnf, parse_lark

pytestmark = pytest.mark.conformance

_PARSERS = {"lark": parse_lark, "ebnf": parse_ebnf, "gbnf": parse_gbnf}
_FOLDER = Path(os.environ.get("FORMCAST_CASES", Path(__file__).resolve().parents[4] / "shared" / "cases"))
_FILE = _FOLDER / "reports_dev.jsonl"


def cases() -> list:
    if not _FILE.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{_FILE} is absent"))]
    lines = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").split("\n") if line]
    return [pytest.param(case, id=case["id"]) for case in lines if _PARSERS.keys() & case.keys()]


@pytest.mark.parametrize("case", cases())
def test_reported_grammars_have_the_right_verdicts(case: dict, acceptor):
    kind = next(iter(_PARSERS.keys() & case.keys()))
    accepts = acceptor(_PARSERS[kind](case[kind]))
    assert [test for test in case["tests"] if accepts(test["text"]) != test["valid"]] == []
