"""`formcast bench throughput`, over a small random model, alone and beside peers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from gguf_samples import tiny_model, write_model

from formcast.api.cli.main import main

# Answers free text at 100 tokens a second, and refuses schemas.
PEER = """
import json, sys
from pathlib import Path
setup = json.loads(sys.stdin.readline())
assert Path(setup["model"]).is_file() and (Path(setup["folder"]) / "model.safetensors").is_file()
assert setup["max_num_seqs"] == 2 and setup["max_model_len"] > 16
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    task = json.loads(line)
    tokens = len(task["prompts"]) * task["max_tokens"]
    print(json.dumps({"refused": "no schemas here"} if task["schema"] else {"tokens": tokens, "seconds": tokens / 100}), flush=True)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_model(tmp_path_factory.mktemp("model") / "tiny.gguf", "llama", tiny_model("llama")))


def _bench(model: str, *flags: str) -> int:
    return main(["bench", "throughput", model, "--streams", "1", "2", "--max-tokens", "16", "--max-model-len", "160", *flags])


def test_figures_of_a_model_and_of_a_peer(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, out = tmp_path / "peer.py", tmp_path / "figures.json"
    script.write_text(PEER)
    command = shlex.join([sys.executable, str(script)])
    assert _bench(model, "--json-schema", '{"type": "string", "minLength": 400}', "--peer", f"slow={command}", "--output", str(out)) == 0
    shown = capsys.readouterr()
    report = json.loads(out.read_text())
    assert report == json.loads(shown.out.splitlines()[-1])
    rows = {(row["engine"], row["constrained"], row["streams"]): row for row in report["figures"]}
    assert set(rows) == {*((e, False, s) for e in ("formcast", "slow") for s in (1, 2)), *(("formcast", True, s) for s in (1, 2))}
    assert all(row["tokens"] == 16 * row["streams"] for row in rows.values())
    assert rows["slow", False, 2]["tokens_per_second"] == 100
    ratio = rows["formcast", False, 2]["tokens_per_second"] / 100
    line = next(line for line in shown.out.splitlines() if line.split()[:2] == ["2", "slow"])
    assert line.split()[2] == "100.0" and abs(float(line.split()[3]) - ratio) < 0.01 and line.split()[5:] == ["-", "-"]
    assert "slow: no schemas here" in shown.err


@pytest.mark.parametrize(
    ("peer", "code", "said"),
    [
        ("nothing", 2, "is not NAME=COMMAND"),
        ("gone=/no/such/command", 2, "--peer gone: "),
        (f"mute={sys.executable} -c pass", 1, "peer mute gave no answer: it said nothing on stderr"),
        (f"broken={sys.executable} -c 1/0", 1, "peer broken gave no answer: ZeroDivisionError: division by zero"),
    ],
)
def test_peers_that_cannot_be_run(model: str, peer: str, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ended = _bench(model, "--peer", peer)
    except SystemExit as exit_:
        ended = exit_.code
    assert ended == code
    assert said in capsys.readouterr().err
