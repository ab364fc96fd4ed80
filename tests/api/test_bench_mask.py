"""`formcast bench mask`, over a small tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from formcast.api.cli.main import main

TESTS = [{"valid": True, "data": {"a": 1}}, {"valid": False, "data": {"a": "x"}}]


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path / "tokenizer.json")


def _cases(path: Path, lines: list[dict]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_the_table_and_the_figures_of_a_cases_file(tokenizer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    lines = [
        {"id": "right", "schema": schema, "tests": TESTS},
        {"id": "regex", "regex": "[ab]+", "tests": [{"valid": True, "text": "abba"}]},
        {"id": "refused", "schema": {"type": "nothing"}, "tests": TESTS},
        {"id": "mistaken", "schema": {}, "tests": [{"valid": False, "data": 1}]},
    ]
    out = tmp_path / "figures.json"
    argv = ["bench", "mask", tokenizer, "--cases", _cases(tmp_path / "cases.jsonl", lines), "--engines", "formcast", "--output", str(out)]
    assert main(argv) == 0
    printed = capsys.readouterr().out
    assert "accept_invalid" in printed and "cold mask us" in printed
    (report,) = json.loads(out.read_text())
    assert (report["cases"], report["pass"], report["compile_error"], report["accept_invalid"]) == (4, 2, 1, 1)
    assert report["tokens"] > 10 and report["batch_us"]["p50"] > 0


@pytest.mark.parametrize("line", ['{"schema": {}}', '{"id": "a", "tests": []}', "{"])
def test_a_line_that_is_no_case_is_bad_input(line: str, tokenizer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cases.jsonl").write_text(line, encoding="utf-8")
    assert main(["bench", "mask", tokenizer, "--cases", str(tmp_path / "cases.jsonl")]) == 2
    assert "cases.jsonl:1 is no case" in capsys.readouterr().err


def test_a_tokenizer_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    assert main(["bench", "mask", str(tmp_path / "none")]) == 2
