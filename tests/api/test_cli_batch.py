"""`formcast generate --batch`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from api_fakes import FakeEngine, Script, echoes, fails, fake_runtime, says
from api_processes import FORMCAST

from formcast.api import constraints
from formcast.api.cli.asker import Manner
from formcast.api.cli.batch import BatchRun
from formcast.api.cli.batch_file import BatchOutput, read_items
from formcast.api.cli.batch_settings import settings_of
from formcast.api.cli.errors import UsageError
from formcast.api.cli.main import main
from formcast.api.runtime import RuntimeOptions
from formcast.engine.request import GenerationError, SamplingParams


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source = tmp_path / "in.jsonl"
    source.write_text('"a"\n{"prompt": "b", "id": "second"}\n\n{"messages": [{"role": "user", "content": "c"}], "id": 3}\n')
    return source, tmp_path / "out.jsonl"


PLAIN: dict[str, Any] = {"options": RuntimeOptions(model="m"), "manner": Manner(params=SamplingParams()), "constraint": None}


def answer(
    files: tuple[Path, Path], script: Script, constraint: Any = None, settings: Any = PLAIN, restart: bool = False, **fake: Any
) -> tuple[int, FakeEngine]:
    runtime = fake_runtime(script, **fake)
    items = read_items(str(files[0]))
    with closing(BatchOutput(str(files[1]), items, settings and settings_of(**settings), restart=restart)) as output:
        batch = BatchRun(runtime, Manner(params=SamplingParams()), constraint, output)
        num_failed = batch.answer_all(items, lambda num_finished: None)
    assert isinstance(runtime.engine, FakeEngine)
    return num_failed, runtime.engine


def lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text().splitlines())


def test_every_line_is_answered(files: tuple[Path, Path]):
    num_failed, _ = answer(files, echoes)
    found = {line["index"]: line for line in lines(files[1])}
    assert num_failed == 0 and sorted(found) == [0, 1, 3]
    assert [found[index]["text"] for index in (0, 1, 3)] == [f"user: {name}\nassistant:" for name in "abc"]
    assert (found[1]["id"], found[3]["id"], "id" in found[0]) == ("second", 3, False)
    assert found[0]["finish_reason"] == "stop" and found[0]["error"] is None


def test_values_stand_beside_their_text(files: tuple[Path, Path]):
    schema = constraints.of_schema({"type": "integer"}, field="schema")
    answer(files, says("12"), schema)
    assert [line["parsed"] for line in lines(files[1])] == [12, 12, 12]


def test_a_run_goes_on_where_it_was_cut(files: tuple[Path, Path]):
    answer(files, says("first"))
    first, second, third = files[1].read_text().splitlines()
    files[1].write_text(f"{first}\n{third}\n{second[:20]}")
    _, engine = answer(files, says("again"))
    assert len(engine.submitted) == 1
    assert sorted((line["index"], line["text"]) for line in lines(files[1])) == [(0, "first"), (1, "again"), (3, "first")]
    _, engine = answer(files, says("never"))
    assert engine.submitted == []


def test_what_fails_is_written_and_the_rest_goes_on(files: tuple[Path, Path]):
    files[0].write_text('"a"\n"%s"\n"c"\n' % ("x" * 300))
    num_failed, _ = answer(files, echoes)
    found = {line["index"]: line for line in lines(files[1])}
    assert num_failed == 1 and found[1]["text"] is None and "300" not in (found[0]["error"] or "")
    assert "context" in found[1]["error"] and found[2]["text"]
    num_failed, _ = answer((files[0], files[1].with_name("other")), fails(GenerationError("boom")))
    assert num_failed == 3


def test_the_answers_of_other_prompts_are_not_touched(files: tuple[Path, Path]):
    answer(files, echoes)
    before = files[1].read_text()
    files[0].write_text('"z"\n')
    with pytest.raises(UsageError, match="other prompts"):
        answer(files, echoes)
    assert files[1].read_text() == before


SCHEMA = {"properties": {"a": {}}}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"options": RuntimeOptions(model="other")}, "model"),
        ({"options": RuntimeOptions(model="m", quantization="int8")}, "model"),
        ({"manner": Manner(params=SamplingParams(temperature=0))}, "sampling"),
        ({"manner": Manner(params=SamplingParams(), system="be brief")}, "prompt"),
        ({"manner": Manner(params=SamplingParams(top_k=3), raw=True)}, "sampling, prompt"),
        ({"constraint": constraints.of_schema(SCHEMA, field="--json-schema")}, "constraint"),
    ],
)
def test_a_run_with_other_settings_does_not_go_on(files: tuple[Path, Path], changed: dict[str, Any], named: str):
    answer(files, echoes)
    before = files[1].read_text()
    with pytest.raises(UsageError, match=rf"other settings \({named}\).* --restart"):
        answer(files, echoes, settings=PLAIN | changed)
    assert files[1].read_text() == before
    answer(files, says("anew"), settings=PLAIN | changed, restart=True)
    assert [line["text"] for line in lines(files[1])] == ["anew"] * 3
    _, engine = answer(files, says("never"), settings=PLAIN | changed)
    assert engine.submitted == []


def test_a_schema_counts_by_what_it_says(files: tuple[Path, Path]):
    given = [constraints.of_schema(text, field=field) for text, field in ((SCHEMA, "a"), (dict(SCHEMA), "b"), ({"properties": {"b": {}}}, "a"))]
    answer(files, says("{}"), settings=PLAIN | {"constraint": given[0]})
    _, engine = answer(files, says("{}"), settings=PLAIN | {"constraint": given[1]})
    assert engine.submitted == []
    with pytest.raises(UsageError, match="constraint"):
        answer(files, says("{}"), settings=PLAIN | {"constraint": given[2]})


def test_a_model_of_ones_own_that_changed_is_another(files: tuple[Path, Path]):
    model = files[0].with_name("model")
    model.mkdir()
    (model / "weights").write_text("1")
    settings = PLAIN | {"options": RuntimeOptions(model=str(model))}
    answer(files, echoes, settings=settings)
    answer(files, echoes, settings=settings)
    (model / "weights").write_text("22")
    with pytest.raises(UsageError, match="model"):
        answer(files, echoes, settings=settings)


def test_lines_may_be_added(files: tuple[Path, Path]):
    answer(files, says("first"))
    with files[0].open("a") as file:
        file.write('"d"\n')
    _, engine = answer(files, says("again"))
    assert len(engine.submitted) == 1
    assert [line["index"] for line in lines(files[1])] == [0, 1, 3, 4]


@pytest.mark.parametrize("text", ["hello\n", '{"index": "0"}\n', "[1]\n", "5\n", "hello", '{"prompt": 1'])
@pytest.mark.parametrize("restart", [False, True])
def test_a_file_that_is_no_output_is_not_touched(files: tuple[Path, Path], text: str, restart: bool):
    files[1].write_text(text)
    with pytest.raises(UsageError, match="not the output"):
        answer(files, echoes, restart=restart)
    assert files[1].read_text() == text


@pytest.mark.parametrize("torn", ['{', '{"index": 3, "dig', '{"index": 3, "text": "\x00'])
def test_a_torn_line_is_mended(files: tuple[Path, Path], torn: str):
    answer(files, echoes)
    whole = files[1].read_text()
    files[1].write_text(whole + torn)
    answer(files, echoes)
    assert files[1].read_text() == whole


FULL = """
import resource, sys
from formcast.api.cli.batch_file import BatchOutput, read_items
items = read_items(sys.argv[1])
output = BatchOutput(sys.argv[2], items, {})
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))  # writing on is an OSError, as on a full disk
try:
    for item in items:
        output.write(item, {"text": "x" * 100})
except Exception as error:
    print(type(error).__name__, error)
output.close()
"""


def test_a_full_disk_loses_no_answer_that_is_in(files: tuple[Path, Path]):
    done = subprocess.run([sys.executable, "-c", FULL, *map(str, files)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"CommandFailed cannot write answers to {files[1]}: File too large\n", "")
    _, engine = answer(files, says("again"), settings={})
    assert len(engine.submitted) == 2
    assert sorted(line["index"] for line in lines(files[1])) == [0, 1, 3]


def test_two_runs_do_not_write_to_one_file(files: tuple[Path, Path]):
    items = read_items(str(files[0]))
    with closing(BatchOutput(str(files[1]), items, {})), pytest.raises(UsageError, match="another run"):
        BatchOutput(str(files[1]), items, {})


def test_answers_go_to_a_file(files: tuple[Path, Path]):
    with pytest.raises(UsageError, match="not a file"):
        answer((files[0], Path("/dev/null")), echoes)
    assert main(["generate", "m", "x", "--restart"]) == 2


@pytest.mark.parametrize(
    ("text", "says_so"),
    [
        ("{", "line 2 is not valid JSON"),
        ("5", "line 2 must be"),
        ('{"promt": "x"}', "'promt'"),
        ("{}", "either"),
        ('{"prompt": "x", "messages": []}', "either"),
        ('{"prompt": 5}', "'prompt' must be a text"),
        ('{"messages": []}', "'messages' must be"),
        ('{"messages": [{"role": "user"}]}', "'messages' must be"),
        ("[" * 100_000, "line 2 is not valid JSON"),
    ],
)
def test_a_bad_line_is_named_before_anything_runs(files: tuple[Path, Path], text: str, says_so: str):
    files[0].write_text(f'"fine"\n{text}\n')
    with pytest.raises(UsageError, match=says_so):
        read_items(str(files[0]))


def test_at_most_as_many_as_fit_run_at_a_time(files: tuple[Path, Path]):
    files[0].write_text('"x"\n' * 200)
    num_failed, engine = answer(files, echoes, max_live=64)
    assert num_failed == 0 and len(engine.submitted) == 200
    assert len(list(lines(files[1]))) == 200


def test_a_real_batch(model: str, files: tuple[Path, Path], capfd: pytest.CaptureFixture[str]):
    command = ("generate", model, "--batch", *map(str, files), "--choice", "yes", "no", "--max-tokens", "20", "-q")
    assert main(command) == 0
    assert capfd.readouterr() == ("", "")
    assert {line["text"] for line in lines(files[1])} <= {"yes", "no"}
    assert main(command) == 0
    assert "already" in capfd.readouterr().err


def test_ctrl_c_keeps_what_is_done(model: str, files: tuple[Path, Path]):
    files[0].write_text("".join(f'"Count to {number}."\n' for number in range(1000)))
    command = [*FORMCAST, "generate", model, "--batch", *map(str, files), "--max-tokens", "2", "--max-num-seqs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not files[1].exists() or not files[1].stat().st_size:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 1000 answers are in" in told and "Traceback" not in told
    assert all(line["text"] for line in lines(files[1]))
