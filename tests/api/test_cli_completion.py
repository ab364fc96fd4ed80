"""Shell completion."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from formcast.api.cli.main import main
from formcast.api.cli.parser import build_parser, commands_of


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["formcast", "ser"], ["serve"]),
        (["formcast", ""], list(commands_of(build_parser()))),
        (["formcast", "serve", "m", "--ssl"], ["--ssl-certfile", "--ssl-keyfile"]),
        (["formcast", "generate", "m", "--dtype", "b"], ["bfloat16"]),
        (["formcast", "completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes(words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]):
    array = " ".join(f"'{word}'" for word in words)
    code = f"{script('bash', capsys)}\nCOMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _formcast; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_zsh_and_fish_scripts_name_every_command(capsys: pytest.CaptureFixture[str]):
    for shell in ("zsh", "fish"):
        text = script(shell, capsys)
        assert all(name in text for name in commands_of(build_parser()))
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize("command", list(commands_of(build_parser())))
def test_help_shows_examples(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert "examples:\n" in capsys.readouterr().out
