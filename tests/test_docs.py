"""The documents: their links lead somewhere, and their Python is Python."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from formcast import schemas
from formcast.api.cli.parser import build_parser

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "bench").glob("*.md")])
RUNNABLE = [ROOT / "README.md", ROOT / "docs" / "quickstart.md", ROOT / "docs" / "beam_search.md"]  # the others show signatures
EXECUTED = [ROOT / "docs" / "structural_tags.md", ROOT / "docs" / "tools.md"]  # they need no model
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SCHEMA_NAME = re.compile(r"formcast:([a-z_]+)")
METRICS = ROOT / "docs" / "server.md"  # names of metrics begin like those of schemas; tests/api/test_metrics.py checks them


def ids(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", DOCUMENTS, ids=ids)
def test_links_lead_to_files(document: Path):
    broken = [target for target, _ in LINK.findall(document.read_text(encoding="utf-8")) if not (document.parent / target).exists()]
    assert broken == []


@pytest.mark.parametrize("document", RUNNABLE, ids=ids)
def test_python_blocks_parse(document: Path):
    for language, code in FENCE.findall(document.read_text(encoding="utf-8")):
        if language == "python":
            ast.parse(code, filename=ids(document))


@pytest.mark.parametrize("document", EXECUTED, ids=ids)
def test_python_blocks_run(document: Path):
    code = [code for language, code in FENCE.findall(document.read_text(encoding="utf-8")) if language == "python"]
    exec(compile("\n".join(code), ids(document), "exec"), {"__name__": ids(document)})


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if document != METRICS], ids=ids)
def test_named_schemas_are_shipped(document: Path):
    assert set(SCHEMA_NAME.findall(document.read_text(encoding="utf-8"))) <= set(schemas.names())


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def test_the_command_line_is_documented_as_it_is():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    every = list(parsers(build_parser()))
    assert [parser.prog for parser in every if f"`{parser.prog} " not in text and f"`{parser.prog}`" not in text] == []
    flags = {flag for parser in every for action in parser._actions for flag in action.option_strings if flag.startswith("--")}
    assert flags == set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def test_schemas_named_in_help_are_shipped():
    text = "".join(parser.format_help() for parser in parsers(build_parser()))
    assert set(SCHEMA_NAME.findall(text)) <= set(schemas.names())
