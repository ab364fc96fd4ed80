"""`formcast check`: what of a schema is enforced, and which instances it admits."""

from __future__ import annotations

import argparse

from ...grammar.grammar import Grammar
from . import terminal
from .errors import FAILED, OK
from .schema_source import read_schema, read_text, shown
from .table import print_table

_HEADINGS = ("AT", "KEYWORD", "IS", "BECAUSE")


def run(args: argparse.Namespace) -> int:
    """0 if all instances are admitted, 1 if one is not; a schema that is refused is bad input."""
    terminal.use_utf8()
    # Spelling is not the question here: any whitespace and any order of keys.
    grammar = Grammar.json_schema(read_schema(args.schema), whitespace="any", property_order="any")
    rows = [(finding.pointer or "/", finding.keyword, finding.status, finding.reason) for finding in grammar.explain()]
    print_table(_HEADINGS, rows)
    verdicts = [(source, grammar.accepts(read_text(source).strip())) for source in args.instances]
    if rows and verdicts:
        print()
    for source, admitted in verdicts:
        print(f"{'valid  ' if admitted else 'INVALID'}  {shown(source)}")
    return OK if all(admitted for _, admitted in verdicts) else FAILED
