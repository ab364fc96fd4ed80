"""The command line: what needs no model runs in processes that end at once, the rest with the small real model."""

from __future__ import annotations

import ctypes
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from api_fakes import PlainTemplate, echoes, fails, fake_runtime, says
from api_processes import FORMCAST, run_formcast

from formcast import schemas
from formcast.api.cli import interrupt, options, schema_source
from formcast.api.cli.answer import stream_answer
from formcast.api.cli.asker import Asker, Manner
from formcast.api.cli.chat import Conversation
from formcast.api.cli.errors import CommandFailed, UsageError
from formcast.api.cli.main import main
from formcast.api.cli.parser import build_parser
from formcast.api.jobs import Job
from formcast.api.prompts import Prompt
from formcast.engine.request import GenerationError, InvalidRequest, SamplingParams
from formcast.grammar.errors import GrammarError
from formcast.grammar.grammar import Grammar


def one_line(text: str) -> bool:
    """Whether a message is one line, but for the place in a pattern or grammar that may be shown below."""
    lines = text.splitlines()
    shows_place = len(lines) == 3 and lines[2].strip() == "^"
    return text.endswith("\n") and (len(lines) == 1 or shows_place) and "Traceback" not in text


def test_help_loads_nothing_heavy():
    probe = (
        "import sys\nfrom formcast.api.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'numpy', 'numba', 'pydantic', 'fastapi', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version():
    done = run_formcast("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"formcast \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["serve"],
        ["serve", "m", "--port", "70000"],
        ["serve", "m", "--port", "x"],
        ["generate", "m", "x", "--max-num-seqs", "0"],
        ["generate", "m", "x", "--dtype", "int3"],
        ["generate", "m", "x", "--zzz"],
        ["bench", "magic"],
    ],
)
def test_bad_flags_are_one_line_and_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["genrate", "m"], "there is no 'genrate'; did you mean generate?"),
        (["generate", "m", "x", "--temprature", "1"], "formcast generate: there is no flag --temprature; did you mean --temperature?"),
        (["serve", "m", "--prot=80"], "formcast serve: there is no flag --prot; did you mean --port?"),
        (["serve", "m", "--tool-call-format", "herms"], "there is no 'herms'; did you mean hermes?"),
        (["generate", "m", "x", "--dtype", "int3"], "there is no 'int3'; there is auto, float32"),
        (["generate", "m", "two", "words"], "'words' is one argument too many"),
        (["check"], "required: SCHEMA (see formcast check --help)"),
    ],
)
def test_what_was_probably_meant_is_told(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(arguments)
    error = capsys.readouterr().err
    assert one_line(error) and says in error


def test_tls_files_are_tried_before_anything_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("empty", "text"):
        (tmp_path / name).write_text("" if name == "empty" else "-----BEGIN CERTIFICATE-----\n")
        assert main(["serve", "m", "--port", "0", "--ssl-certfile", str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert one_line(error) and "cannot speak TLS" in error and name in error


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["generate", "m", "--json-schema", "-"], "stdin"),
        (["generate", "m", "x", "--max-tokens", "0"], "max_tokens"),
        (["generate", "m", "x", "--temperature", "-1"], "temperature"),
        (["generate", "m", "x", "--tensor-parallel-size", "2"], "tensor_parallel_size"),
        (["generate", "m", "x", "--gpu-memory-utilization", "2"], "gpu_memory_utilization"),
        (["generate", "m", "x", "--regex", "("], "position"),
        (["generate", "m", "x", "--structural-tag", '{"type": "tag"}'], "'begin' is missing"),
        (["generate", "m", "x", "--regex", "a", "--choice", "b"], "'--regex' and '--choice'"),
        (["generate", "m", "x", "--lark", 'start: "a"', "--gbnf", 'root ::= "a"'], "'--lark' and '--gbnf'"),
        (["generate", "m", "x", "--ebnf", "root ::= 'a'", "--json-object"], "'--json-object' and '--ebnf'"),
        (["generate", "m", "x", "--lark", "start: word"], "at position 7"),
        (["generate", "m", "x", "--lark", 'start: a\na: "x" ('], "line 2, column 9"),
        (["generate", "m", "x", "--lark", 'other: "a"'], "start"),
        (["generate", "m", "x", "--lark", 'start: "a"', "--lark-start", "other"], "other"),
        (["generate", "m", "x", "--lark-start", "other"], "--lark-start needs --lark"),
        (["generate", "m", "x", "--lark", "start: start"], "start"),
        (["generate", "m", "x", "--gbnf", 'root ::= "a'], "at position 9"),
        (["generate", "m", "x", "--ebnf", "root ::= 'a' )"], "at position 13"),
        (["generate", "m", "x", "--lark", "/no/such/file.lark"], "cannot read /no/such/file.lark"),
        (["generate", "m", "x", "--lark", "formcast:semvar"], "did you mean semver"),
        (["generate", "m", "x", "--gbnf", "formcast:semver"], "a grammar for --lark"),
        (["generate", "m", "--gbnf", "-"], "stdin"),
        (["chat", "m", "--lark", "start: word"], "at position 7"),
        (["generate", "m", "x", "--json-schema", "{"], "not valid JSON"),
        (["generate", "m", "x", "--json-schema", "[]"], "a schema is an object or a boolean"),
        (["generate", "m", "x", "--json-schema", '{"type": "objekt"}'], "/type"),
        (["generate", "m", "x", "--json-schema", "/no/such/file.json"], "cannot read /no/such/file.json"),
        (["generate", "m", "x", "--json-schema", "formcast:nothing"], "nothing"),
        (["generate", "no-such-model", "x"], "no-such-model"),
        (["show", "no-such-model"], "no-such-model"),
        (["rm", "no-such-model"], "no-such-model"),
        (["check", '{"type": 5}'], "/type"),
        (["check", "true", "/no/such/file"], "cannot read"),
    ],
)
def test_bad_input_is_one_line_and_2(arguments: list[str], mentions: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" or arguments[0] == "check"
    assert one_line(shown.err), shown.err
    assert mentions in shown.err


def test_a_taken_port_is_reported_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]):
    from formcast.api.server.transport import bind

    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "m", "--port", str(port)]) == 1
    error = capsys.readouterr().err
    assert one_line(error)
    assert str(port) in error


def test_check_shows_what_is_enforced(schema_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pretty = tmp_path / "pretty.json"
    pretty.write_text('{\n  "ok": true\n}\n')
    assert main(["check", str(schema_file), str(pretty), '{"ok": false}']) == 0
    shown = capsys.readouterr().out
    assert "required" in shown
    assert "enforced" in shown
    assert shown.count("valid  ") == 2


def test_check_tells_an_invalid_instance(schema_file: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(schema_file), '{"ok": 1}', '{"ok": true}']) == 1
    assert 'INVALID  {"ok": 1}' in capsys.readouterr().out


@pytest.mark.parametrize(("instance", "status"), [("3", 0), ("-3", 0), ("1.5e3", 0), ("null", 0), ("true", 1), ('"3"', 1)])
def test_check_takes_values_of_every_kind(instance: str, status: int):
    assert main(["check", '{"type": ["number", "null"]}', instance]) == status


def test_check_tells_where_an_instance_fails_and_what_was_expected(capsys: pytest.CaptureFixture[str]):
    schema = '{"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}}'
    assert main(["check", schema, '{\n  "colour": "blue"}']) == 1
    shown = capsys.readouterr().out
    assert "at        /colour (line 2, column 14)" in shown
    assert 'expected  "green" or "red"' in shown
    assert 'found     blue"}' in shown


def test_check_shows_the_keywords_of_a_refused_schema(capsys: pytest.CaptureFixture[str]):
    assert main(["check", '{"type": "object", "minProperties": -1}']) == 2
    shown = capsys.readouterr()
    assert "/minProperties" in shown.out
    assert "refused" in shown.out
    assert one_line(shown.err)


def test_check_refuses_a_contradiction_without_any_instance(capsys: pytest.CaptureFixture[str]):
    assert main(["check", '{"properties": {"a": false}, "required": ["a"], "type": "object"}']) == 2
    assert "no finite value" in capsys.readouterr().err


def test_check_for_machines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[1, null]")))
    assert main(["check", "--json", '{"items": {"type": "integer"}, "titel": "x"}', "[1]", "-"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert {"pointer": "", "keyword": "items", "status": "enforced", "reason": ""} in shown["keywords"]
    assert [k["status"] for k in shown["keywords"] if k["keyword"] == "titel"] == ["annotation"]
    good, bad = shown["instances"]
    assert good == {"source": "[1]", "valid": True, "failure": None}
    assert (bad["valid"], bad["failure"]["pointer"], bad["failure"]["column"]) == (False, "/1", 5)
    assert bad["failure"]["rest"] == "null]"


def test_check_reads_stdin_once(capsys: pytest.CaptureFixture[str]):
    assert main(["check", "-", "-"]) == 2
    assert "stdin" in capsys.readouterr().err


def test_check_does_not_mind_the_order_of_keys(capsys: pytest.CaptureFixture[str]):
    schema = '{"properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "type": "object"}'
    assert main(["check", schema, '{"b": null, "a": null}']) == 0


@pytest.mark.parametrize(
    ("source", "schema"),
    [('{"type": "null"}', {"type": "null"}), ("true", True), ("false", False), (' {"a": 1}', {"a": 1})],
)
def test_inline_schemas(source: str, schema: Any):
    assert schema_source.read_schema(source) == schema


def test_shipped_schemas_are_found():
    assert isinstance(schema_source.read_schema("formcast:contact"), dict)


@pytest.mark.parametrize(
    ("flag", "text", "admits", "refuses"),
    [
        ("--lark", 'start: "a"+', "aa", "ab"),
        ("--gbnf", 'root ::= "a"+', "aa", "ab"),
        ("--ebnf", "root ::= 'a'+", "aa", "ab"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_grammars_are_read(flag: str, text: str, admits: str, refuses: str, in_file: bool, tmp_path: Path):
    file = tmp_path / "grammar"
    file.write_text(text)
    constraint = options.constraint(build_parser().parse_args(["chat", "m", flag, str(file) if in_file else text]))
    assert constraint is not None
    assert (constraint.field, constraint.parse) == (flag, None)
    assert constraint.grammar.accepts(admits)
    assert not constraint.grammar.accepts(refuses)


def test_a_lark_grammar_starts_where_it_is_told():
    text = 'start: "a"\nother: "b"'
    constraint = options.constraint(build_parser().parse_args(["chat", "m", "--lark", text, "--lark-start", "other"]))
    assert constraint is not None
    assert constraint.grammar.accepts("b")


@pytest.mark.parametrize(("name", "flag"), [("semver", "--lark"), ("csv_row", "--gbnf"), ("css_color", "--ebnf")])
def test_shipped_grammars_are_found(name: str, flag: str):
    constraint = options.constraint(build_parser().parse_args(["chat", "m", flag, f"formcast:{name}"]))
    assert constraint is not None
    assert constraint.grammar.kind == flag.removeprefix("--")


def test_a_schema_nested_without_end_is_bad_input():
    with pytest.raises(UsageError, match="nested"):
        schema_source.read_schema('{"not":' * 20_000 + "true" + "}" * 20_000)


def job(text: str = "x") -> Job:
    return Job(prompt=Prompt(text=text, token_ids=tuple(text.encode()), source="prompt"), params=SamplingParams())


def test_an_answer_is_written_piece_by_piece():
    pieces: list[str] = []
    answer = stream_answer(fake_runtime(says("abc")).engine, job(), pieces.append)
    assert pieces == ["a", "b", "c"]
    assert answer.text == "abc"


@pytest.mark.parametrize("error", [GrammarError("late"), GenerationError("boom")])
def test_an_answer_that_fails_raises(error: Exception):
    with pytest.raises(type(error)):
        stream_answer(fake_runtime(fails(error)).engine, job(), lambda text: None)


def test_an_engine_closed_under_an_answer():
    with pytest.raises(CommandFailed):
        stream_answer(fake_runtime(says("a", finish_reason="abort")).engine, job(), lambda text: None)


class ThinkingTemplate(PlainTemplate):
    source = "<think></think>"


class SwitchedTemplate(PlainTemplate):
    source = "<think></think>{{ enable_thinking }}"


def test_a_thought_is_told_from_the_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for shown in (True, False):
        monkeypatch.setattr(sys, "stdin", io.StringIO("one\n"))
        runtime = fake_runtime(says("<think>hm, hm</think>\n\nyes"), chat_template=ThinkingTemplate())
        conversation = Conversation(runtime=runtime, manner=Manner(params=SamplingParams()), shows_thoughts=shown)
        conversation.loop()
        assert conversation.turns[-1]["content"] == "yes"
        assert capsys.readouterr() == ("yes\n", "hm, hm\n\n" if shown else "")


def test_a_model_can_be_asked_not_to_think():
    manner = Manner(params=SamplingParams(), thinks=False)
    job = Asker(fake_runtime(echoes, chat_template=ThinkingTemplate()), manner).of_text("x", None)
    assert job.constraint is not None, "no switch in the template: the thought is held to be empty"
    assert job.constraint.grammar.accepts("<think></think>yes") and not job.constraint.grammar.accepts("<think>hm</think>yes")
    assert Asker(fake_runtime(echoes, chat_template=SwitchedTemplate()), manner).of_text("x", None).constraint is None
    assert Asker(fake_runtime(echoes), manner).of_text("x", None).constraint is None, "a model that does not think"


def test_the_default_length_of_an_answer_fits_and_an_explicit_one_is_held():
    runtime = fake_runtime(echoes, max_model_len=100)
    free = Asker(runtime, Manner(params=SamplingParams(), raw=True)).of_text("x" * 19, None)
    assert free.params.max_tokens == 80, "19 bytes and the begin token"
    asker = Asker(runtime, Manner(params=SamplingParams(max_tokens=81), raw=True))
    with pytest.raises(InvalidRequest, match="--max-tokens is 81"):
        asker.of_text("x" * 19, None)


def test_a_model_without_a_chat_template_cannot_chat():
    with pytest.raises(UsageError, match="no chat template"):
        Conversation(runtime=fake_runtime(echoes, chat_template=None), manner=Manner(params=SamplingParams()))


def talk(lines: str, monkeypatch: pytest.MonkeyPatch, script: Any = echoes) -> Conversation:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    conversation = Conversation(runtime=fake_runtime(script), manner=Manner(params=SamplingParams(), system="be kind"))
    conversation.loop()
    return conversation


def test_a_conversation_remembers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    talk("one\n\ntwo\n/exit\nthree\n", monkeypatch)
    shown = capsys.readouterr().out
    assert shown.startswith("system: be kind\nuser: one\nassistant:\n")
    assert "user: two" in shown
    assert "three" not in shown


def test_a_conversation_can_be_reset(monkeypatch: pytest.MonkeyPatch):
    conversation = talk("one\n/reset\ntwo\n", monkeypatch)
    assert [turn["role"] for turn in conversation.turns] == ["user", "assistant"]
    assert conversation.turns[0]["content"] == "two"


def test_a_conversation_takes_a_schema(schema_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    conversation = talk(f"/schema {schema_file}\none\n/schema {{\n/what\n", monkeypatch)
    assert conversation.constraint is not None
    assert conversation.runtime.engine.submitted[0].grammar is conversation.constraint.grammar  # pyright: ignore[reportAttributeAccessIssue]
    errors = capsys.readouterr().err
    assert "not valid JSON" in errors
    assert "there is no /what" in errors
    assert talk("/schema\n", monkeypatch).constraint is None


def test_a_failed_turn_is_forgotten(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    conversation = talk("one\n", monkeypatch, fails(GenerationError("boom")))
    assert conversation.turns == []
    assert "boom" in capsys.readouterr().err


def test_generate_writes_the_answer_and_nothing_else(model: str, schema_file: Path, capfd: pytest.CaptureFixture[str]):
    """The default length of an answer makes way for a small context."""
    assert main(["generate", model, "Is it ok?", "--json-schema", str(schema_file), "--temperature", "0", "--max-model-len", "128"]) == 0
    shown = capfd.readouterr()
    assert set(json.loads(shown.out)) == {"ok"}
    assert shown.err == ""


def test_generate_does_not_read_bytes_that_are_no_text():
    done = run_formcast("generate", "m", stdin=b"\xff\xfe")
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr)
    assert "UTF-8" in done.stderr


@pytest.mark.parametrize("data", [b"", b"\n"])
def test_a_stdin_without_a_prompt_is_refused(data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["generate", "m"]) == 2
    assert "a prompt is needed" in capsys.readouterr().err


@pytest.mark.slow
def test_generate_reads_stdin_and_obeys_a_shipped_schema(model: str):
    schema = schema_source.read_schema("formcast:contact")
    done = run_formcast("generate", model, "--json-schema", "formcast:contact", "--temperature", "0", stdin="Ada, ada@engines.example\n")
    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads(done.stdout), schema)


@pytest.mark.slow
def test_generate_continues_raw_text_by_regex(model: str):
    done = run_formcast("generate", model, "Call me at ", "--raw", "--regex", r"[0-9]{3}-[0-9]{4}")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"[0-9]{3}-[0-9]{4}\n", done.stdout)


@pytest.mark.slow
def test_generate_obeys_a_shipped_grammar(model: str):
    done = run_formcast("generate", model, "The newest version is ", "--raw", "--lark", "formcast:semver", "--max-tokens", "200")
    assert done.returncode == 0, done.stderr
    assert Grammar.lark(schemas.load_grammar("semver").text).accepts(done.stdout.removesuffix("\n"))


@pytest.mark.slow
def test_generate_tells_that_an_answer_was_cut(model: str):
    done = run_formcast("generate", model, "x", "--json-schema", "formcast:contact", "--max-tokens", "3")
    assert done.returncode == 1
    assert one_line(done.stderr)
    assert "--max-tokens" in done.stderr


def endless(model: str) -> subprocess.Popen[bytes]:
    command = [*FORMCAST, "generate", model, "Count for ever:", "--regex", "([0-9]+ ){2000,}", "--max-tokens", "1500"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_ctrl_c_ends_generate_quietly(model: str):
    with endless(model) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")


@pytest.mark.slow
def test_a_reader_that_leaves_ends_generate_quietly(model: str):
    with endless(model) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
def test_chat_is_a_conversation(model: str):
    done = run_formcast("chat", model, "--choice", "aye", "nay", "--temperature", "0", stdin="Ready?\nSteady?\n/exit\n")
    assert done.returncode == 0, done.stderr
    assert all(line in ("aye", "nay") for line in done.stdout.split())
    assert len(done.stdout.split()) == 2


def test_models_are_listed_and_described(model: str, capsys: pytest.CaptureFixture[str]):
    assert main(["list"]) == 0
    assert model in capsys.readouterr().out
    assert main(["list", "--json"]) == 0
    assert {entry["name"]: entry["here"] for entry in json.loads(capsys.readouterr().out)}[model]
    assert main(["show", model]) == 0
    assert "llama" in capsys.readouterr().out
    assert main(["show", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["context_length"] == 8192


def test_a_ctrl_c_that_compiled_code_drops_is_heeded(monkeypatch: pytest.MonkeyPatch):
    """The exception is raised inside a callback of C code, which can only report it."""
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), interrupt.heeded():
        callback()
        interrupt.check()
    assert ignored == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with interrupt.heeded():
        interrupt.check()


@pytest.mark.parametrize("command", ["serve", "generate", "chat"])
def test_every_setting_of_the_engine_reaches_it(command: str):
    given = {
        "dtype": "float32", "quantization": "int8", "max_model_len": 100, "max_num_seqs": 3, "max_num_batched_tokens": 70,
        "gpu_memory_utilization": 0.5, "kv_cache_memory_bytes": 1 << 20, "grammar_cache_memory_bytes": 1 << 21, "fsm_cache_dir": "tables",
        "device": "cpu",
    }  # fmt: skip
    switched = ("enable_prefix_caching", "async_scheduling", "resident_masks", "draft_from_grammar")
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    words += [f"--no-{name.replace('_', '-')}" for name in switched]
    settings = options.runtime_options(build_parser().parse_args([command, "m", *words]))
    assert {name: getattr(settings, name) for name in (*given, *switched)} == given | dict.fromkeys(switched, False)
