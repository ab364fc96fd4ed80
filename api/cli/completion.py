"""`formcast completion bash|zsh|fish`: a script that completes commands, flags and their choices, made from the flags themselves."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable

from .errors import OK
from .parser import build_parser, commands_of


def run(args: argparse.Namespace) -> int:
    print(_SHELLS[args.shell](commands_of(build_parser())), end="")
    return OK


def _bash(commands: dict[str, argparse.ArgumentParser]) -> str:
    cases = "".join(f"    {name}) words={shlex.quote(' '.join(_flags(parser)))} ;;\n" for name, parser in commands.items())
    choices = "".join(f"    {pattern}) {_reply(words)}; return ;;\n" for pattern, words in _choices(commands))
    return f"""\
_formcast() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words
  case "${{COMP_WORDS[1]}}:$previous" in
{choices}  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {shlex.quote(" ".join(commands))} -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _formcast formcast
"""


def _reply(words: str) -> str:
    return f'COMPREPLY=($(compgen -W {shlex.quote(words)} -- "$current"))'


def _zsh(commands: dict[str, argparse.ArgumentParser]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(commands)


def _fish(commands: dict[str, argparse.ArgumentParser]) -> str:
    lines = []
    for name, parser in commands.items():
        lines.append(f"complete -c formcast -n __fish_use_subcommand -a {name} -d {shlex.quote(parser.description or name)}")
        for action in parser._actions:
            for flag in action.option_strings:
                if flag.startswith("--"):
                    values = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices else ""
                    lines.append(f"complete -c formcast -n '__fish_seen_subcommand_from {name}' -l {flag[2:]}{values}")
    return "\n".join(lines) + "\n"


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    return [flag for action in parser._actions for flag in action.option_strings]


def _choices(commands: dict[str, argparse.ArgumentParser]) -> list[tuple[str, str]]:
    """`command:flag` and the words that may follow it."""
    return [
        (f"{name}:{flag}", " ".join(map(str, action.choices)))
        for name, parser in commands.items()
        for action in parser._actions
        if action.choices
        for flag in action.option_strings or [name]
    ]


_SHELLS: dict[str, Callable[[dict[str, argparse.ArgumentParser]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
