"""`formcast check`: what of a schema is enforced, and which instances it admits."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from typing import NamedTuple

from ...grammar.diagnosis import Failure, listing
from ...grammar.grammar import Grammar
from . import terminal
from .errors import FAILED, OK, UsageError
from .schema_source import read_schema, read_text, shown
from .table import print_table

_HEADINGS = ("AT", "KEYWORD", "IS", "BECAUSE")
_MAX_REST = 60  # characters shown of what follows a fault


class _Verdict(NamedTuple):
    source: str
    failure: Failure | None


def run(args: argparse.Namespace) -> int:
    """0 if all instances are admitted, 1 if one is not; a schema that is refused is bad input."""
    terminal.use_utf8()
    if [args.schema, *args.instances].count("-") > 1:
        raise UsageError("only one of the schema and the instances can come from stdin")
    schema = read_schema(args.schema)
    findings = Grammar.explain_schema(schema)
    rows = [(finding.pointer, finding.keyword, finding.status, finding.reason) for finding in findings]
    if not args.json:
        print_table(_HEADINGS, [(pointer or "/", *rest) for pointer, *rest in rows])
    # Spelling is not the question here: any whitespace and any order of keys.
    grammar = Grammar.json_schema(schema, whitespace="any", property_order="any")
    grammar.accepts("")  # a contradiction shows when the schema is compiled
    verdicts = [_Verdict(source, grammar.diagnose(read_text(source))) for source in args.instances]
    if args.json:
        _print_json(rows, verdicts)
    else:
        _print_verdicts(verdicts, below_table=bool(rows))
    return OK if all(verdict.failure is None for verdict in verdicts) else FAILED


def _print_json(rows: list[tuple[str, str, str, str]], verdicts: list[_Verdict]) -> None:
    keywords = [dict(zip(("pointer", "keyword", "status", "reason"), row, strict=True)) for row in rows]
    instances = [{"source": v.source, "valid": v.failure is None, "failure": v.failure and asdict(v.failure)} for v in verdicts]
    print(json.dumps({"keywords": keywords, "instances": instances}, ensure_ascii=False, indent=2))


def _print_verdicts(verdicts: list[_Verdict], *, below_table: bool) -> None:
    if below_table and verdicts:
        print()
    for source, failure in verdicts:
        print(f"{'valid  ' if failure is None else 'INVALID'}  {shown(source)}")
        if failure is None:
            continue
        print(f"         at        {failure.pointer or '/'} (line {failure.line}, column {failure.column})")
        if failure.expected:
            print(f"         expected  {listing(failure.expected)}")
        print(f"         found     {_brief(failure.rest) if failure.rest else 'the end of the text'}")


def _brief(text: str) -> str:
    """One line of what is left of a text."""
    line = re.sub(r"\s+", " ", text)
    return line if len(line) <= _MAX_REST else line[:_MAX_REST] + "..."
