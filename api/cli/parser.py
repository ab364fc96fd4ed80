"""The flags of all commands. Imports nothing but argparse, so that help is instant."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from ... import __version__
from ..answers.names import ALIASES as REASONING_ALIASES
from ..answers.names import REASONING_NAMES
from ..tools.names import ALIASES, FORMAT_NAMES
from .bench_peers import PeerCommand

_CONSTRAINT_EXAMPLES = """\
examples:
  formcast generate smollm2-135m "Ada Lovelace, ada@engines.example" --json-schema formcast:contact | jq .
  formcast generate smollm2-135m "Is water wet?" --choice yes no
  echo "A date:" | formcast generate smollm2-135m --raw --regex '\\d{4}-\\d\\d-\\d\\d'
  formcast generate smollm2-135m --batch prompts.jsonl answers.jsonl --json-schema formcast:sentiment
  formcast generate smollm2-135m "Tails or heads?" --lark 'start: ("heads" | "tails") "!"~1..3'
"""

_CHAT_EXAMPLES = """\
examples:
  formcast chat smollm2-135m --system "You are brief."
  formcast chat smollm2-135m --json-schema formcast:contact
/help lists what can be typed besides messages.
"""
_MODEL_EXAMPLES = """\
examples:
  formcast pull smollm2-135m
  formcast list --json | jq -r '.[].name'
  formcast show smollm2-135m
  formcast rm smollm2-135m
"""
_CHECK_EXAMPLES = """\
examples:
  formcast check formcast:invoice
  formcast check schema.json '{"name": "Ada"}' other.json
"""
_BENCH_EXAMPLES = """\
examples:
  formcast bench throughput smollm2-135m --streams 1 4 16 --repeats 3
  formcast bench mask tokenizer.json --engines formcast
"""
_COMPLETION_EXAMPLES = """\
examples:
  formcast completion bash > ~/.local/share/bash-completion/completions/formcast
  formcast completion zsh >> ~/.zshrc
  formcast completion fish > ~/.config/fish/completions/formcast.fish
"""
_SERVE_EXAMPLES = """\
examples:
  formcast serve smollm2-135m
  FORMCAST_API_KEY=secret formcast serve smollm2-135m --host 0.0.0.0 --ssl-certfile cert.pem --ssl-keyfile key.pem
  formcast serve smollm2-135m --uds /run/formcast.sock --log-level info
  formcast serve smollm2-135m --port 11434    # where Ollama's clients look
"""

_FEW = 12  # choices that an error lists


def _did_you_mean(given: str, known: Iterable[str]) -> str:
    near = get_close_matches(given, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, with what was probably meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As the base class, but a command refuses what it does not know itself, so that the hint is about its own flags."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            given = unknown[0].partition("=")[0]
            what = f"there is no flag {given}" if given.startswith("-") else f"'{given}' is one argument too many"
            self.error(what + _did_you_mean(given, self._option_string_actions))
        return known, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            listed = f"; there is {', '.join(choices)}" if len(choices) <= _FEW else ""
            raise argparse.ArgumentError(action, f"there is no '{value}'" + (_did_you_mean(str(value), choices) or listed))

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="formcast", description="LLM inference with exact structured output.")
    parser.add_argument("--version", action="version", version=f"formcast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _serve(commands)
    _generate(commands)
    _chat(commands)
    _models(commands)
    _check(commands)
    _bench(commands)
    _completion(commands)
    return parser


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands by name, each with its flags."""
    (found,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found.choices)


def _serve(commands: Any) -> None:
    parser = _add_command(commands, "serve", "serve a model to clients of OpenAI, vLLM, Ollama and TGI", _SERVE_EXAMPLES)
    _add_model(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=_port, default=8000, help="0 takes a free one (%(default)s)")
    parser.add_argument("--uds", metavar="PATH", help="listen on a Unix socket instead")
    parser.add_argument("--api-key", nargs="+", metavar="KEY", help="keys that requests must bring (or FORMCAST_API_KEY)")
    parser.add_argument("--served-model-name", nargs="+", metavar="NAME", help="names of the model in requests")
    parser.add_argument(
        "--tool-call-format",
        "--tool-call-parser",
        choices=(*FORMAT_NAMES, *ALIASES),
        metavar="NAME",
        help="how the model writes tool calls, such as hermes or qwen3_coder (what its chat template uses)",
    )
    _add_reasoning_parser(parser)
    parser.add_argument("--max-request-bytes", type=_positive, default=8 << 20, metavar="N", help="largest request body (%(default)s)")
    parser.add_argument(
        "--shutdown-timeout", type=_seconds, default=2.0, metavar="S", help="time for running answers at the end (%(default)s s)"
    )
    parser.add_argument("--request-timeout", type=_seconds, metavar="S", help="time for an answer to be complete (no limit)")
    parser.add_argument("--max-waiting", type=_positive, default=1024, metavar="N", help="requests that may wait (%(default)s)")
    parser.add_argument("--allowed-origins", nargs="+", default=(), metavar="ORIGIN", help="web pages that may call it (none); * is any")
    parser.add_argument("--root-path", default="", metavar="PATH", help="path under which a proxy shows the server")
    parser.add_argument("--ssl-certfile", metavar="FILE", help="PEM certificate: speak TLS")
    parser.add_argument("--ssl-keyfile", metavar="FILE", help="its private key")
    parser.add_argument("--trust-request-chat-template", action="store_true", help="let requests bring a chat template")
    parser.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"), help="info logs each request")
    parser.add_argument("--log-format", default="json", choices=("json", "text"), help="of log lines on stderr (%(default)s)")
    parser.add_argument("--log-prompts", action="store_true", help="log what the model read, too")
    _add_engine(parser)


def _generate(commands: Any) -> None:
    parser = _add_command(commands, "generate", "answer one prompt; stdout is the answer and nothing else", _CONSTRAINT_EXAMPLES)
    _add_model(parser)
    parser.add_argument("prompt", nargs="?", help="text; without it, stdin is read")
    parser.add_argument(
        "--batch", nargs=2, metavar=("IN", "OUT"), help="answer each line of IN (JSON Lines) into OUT; goes on where it was interrupted"
    )
    parser.add_argument("--restart", action="store_true", help="with --batch: forget the answers that OUT holds")
    parser.add_argument("--raw", action="store_true", help="continue the text as it stands, without the chat template")
    parser.add_argument("--quiet", "-q", action="store_true", help="no status on stderr")
    parser.add_argument("--system", metavar="TEXT", help="system message")
    _add_constraints(parser)
    _add_thinking(parser)
    _add_sampling(parser)
    _add_engine(parser)


def _chat(commands: Any) -> None:
    parser = _add_command(commands, "chat", "talk to a model", _CHAT_EXAMPLES)
    _add_model(parser)
    parser.add_argument("--system", metavar="TEXT", help="system message")
    _add_constraints(parser)
    _add_thinking(parser)
    _add_sampling(parser)
    _add_engine(parser)


def _models(commands: Any) -> None:
    pull = _add_command(commands, "pull", "fetch a model", _MODEL_EXAMPLES)
    _add_model(pull)
    pull.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")
    listing = _add_command(commands, "list", "list the models that are here, and those that have a short name", _MODEL_EXAMPLES)
    listing.add_argument("--json", action="store_true", help="machine-readable")
    show = _add_command(commands, "show", "describe a model that is here", _MODEL_EXAMPLES)
    _add_model(show)
    show.add_argument("--json", action="store_true", help="machine-readable")
    remove = _add_command(commands, "rm", "delete a model", _MODEL_EXAMPLES)
    _add_model(remove)


def _check(commands: Any) -> None:
    parser = _add_command(commands, "check", "what of a JSON Schema is enforced, and which instances it admits", _CHECK_EXAMPLES)
    parser.add_argument("schema", metavar="SCHEMA", help="file, inline JSON, formcast:NAME, or - for stdin")
    parser.add_argument("instances", metavar="INSTANCE", nargs="*", default=[], help="file, inline JSON, or - for stdin")
    parser.add_argument("--json", action="store_true", help="machine-readable")


def _bench(commands: Any) -> None:
    parser = _add_command(commands, "bench", "measure", _BENCH_EXAMPLES)
    kinds = parser.add_subparsers(dest="bench", required=True, metavar="KIND")
    throughput = kinds.add_parser("throughput", help="tokens per second, free and constrained")
    _add_model(throughput)
    throughput.add_argument("--streams", type=_positive, nargs="+", default=[1, 4, 16], metavar="N", help="concurrent requests (1 4 16)")
    throughput.add_argument("--max-tokens", type=_positive, default=128, metavar="N", help="tokens an answer (%(default)s)")
    throughput.add_argument("--json-schema", metavar="SCHEMA", help="of the constrained runs (a list of records)")
    throughput.add_argument("--repeats", type=_positive, default=1, metavar="N", help="runs of each; the best counts (%(default)s)")
    throughput.add_argument(
        "--peer", type=_peer, action="append", default=[], metavar="NAME=COMMAND", help="measure another engine too (see bench/README.md)"
    )
    throughput.add_argument("--output", metavar="FILE", help="write the figures as JSON there too")
    _add_engine(throughput)
    mask = kinds.add_parser("mask", help="time and soundness of token masks, beside other engines")
    mask.add_argument("tokenizer", metavar="TOKENIZER", help="tokenizer.json or its folder")
    mask.add_argument("--cases", nargs="+", default=[], metavar="FILE", help="JSON lines of constraints and texts (the shipped ones)")
    mask.add_argument("--stride", type=_positive, default=1, metavar="N", help="take every Nth case (%(default)s)")
    mask.add_argument(
        "--engines", nargs="+", choices=("formcast", "llguidance", "xgrammar"), help="what to measure (all that are installed)"
    )
    mask.add_argument("--output", metavar="FILE", help="write the figures as JSON there too")
    mask.add_argument("--plot", metavar="FILE", help="draw the distributions (PNG); needs matplotlib")


def _completion(commands: Any) -> None:
    parser = _add_command(commands, "completion", "print a script that completes commands and flags", _COMPLETION_EXAMPLES)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def _add_command(commands: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, help=summary, description=summary, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="short name, folder, .gguf file or Hugging Face id")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engine")
    group.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"))
    message = "8-bit weights on a CPU: faster, with slightly other results (as the model's are stored)"
    group.add_argument("--quantization", choices=("int8", "none"), help=message)
    group.add_argument("--max-model-len", type=_positive, metavar="N", help="most tokens of prompt and answer together")
    group.add_argument("--max-num-seqs", type=_positive, metavar="N", help="most requests that run at the same time")
    group.add_argument("--max-num-batched-tokens", type=_positive, metavar="N", help="most tokens computed in one step")
    group.add_argument("--gpu-memory-utilization", type=float, default=0.9, metavar="X", help="share of a GPU's memory (%(default)s)")
    group.add_argument("--kv-cache-memory-bytes", type=_positive, metavar="N", help="size of the KV cache (what the memory allows)")
    group.add_argument("--tensor-parallel-size", type=int, default=1, metavar="N", help="only 1 is supported")
    group.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True, help="share equal prompt beginnings")
    group.add_argument(
        "--async-scheduling",
        action=argparse.BooleanOptionalAction,
        help="start a step before the text of the last one is made (on a GPU)",
    )
    group.add_argument(
        "--resident-masks",
        action=argparse.BooleanOptionalAction,
        help="keep masks and transitions of grammars beside the logits (on a GPU)",
    )
    group.add_argument(
        "--draft-from-grammar",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="draft what a grammar forces or has led to before: the same answers in fewer steps",
    )
    group.add_argument("--speculative-config", type=_json_object, metavar="JSON", help='draft by prompt lookup: \'{"method": "ngram"}\'')
    group.add_argument(
        "--grammar-cache-memory-bytes",
        type=_positive,
        metavar="N",
        help="memory of the grammars that are kept for other requests (512 MiB)",
    )
    group.add_argument("--fsm-cache-dir", metavar="DIR", help="keep tables of vocabularies there for the next start (nowhere)")
    group.add_argument("--device", metavar="D", help="a torch device (a GPU if there is one)")


def _add_constraints(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("constraint (at most one)")
    group.add_argument("--json-schema", metavar="SCHEMA", help="file, inline JSON, or formcast:NAME for a shipped one")
    group.add_argument("--json-object", action="store_true", default=None, help="any JSON object")
    group.add_argument("--regex", metavar="R", help="the whole answer matches it")
    group.add_argument("--choice", nargs="+", metavar="TEXT", help="the answer is one of these")
    group.add_argument("--lark", metavar="GRAMMAR", help="a text of a Lark grammar: file, inline, or formcast:NAME for a shipped one")
    group.add_argument("--lark-start", metavar="RULE", help="where the Lark grammar starts (start)")
    group.add_argument("--gbnf", metavar="GRAMMAR", help="the same for a grammar in the notation of llama.cpp; it starts with root")
    group.add_argument("--ebnf", metavar="GRAMMAR", help="the same for W3C-style EBNF; it starts with root")
    group.add_argument("--structural-tag", metavar="TAG", help="free text and tags with a grammar inside: file or inline JSON")


def _add_thinking(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("thoughts, of models that think before they answer")
    message = "show them on stderr, hide them, or ask the model not to think (%(default)s)"
    group.add_argument("--thinking", default="show", choices=("show", "hide", "off"), help=message)
    group.add_argument("--thinking-token-budget", type=_not_negative, metavar="N", help="most tokens of a thought (no limit)")
    _add_reasoning_parser(group)


def _add_reasoning_parser(parser: Any) -> None:
    parser.add_argument(
        "--reasoning-parser",
        choices=(*REASONING_NAMES, *REASONING_ALIASES, "none"),
        metavar="NAME",
        help="how the model sets its thoughts off, such as qwen3 or openai_gptoss; none if it does not think (what its chat template uses)",
    )


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sampling")
    group.add_argument("--max-tokens", type=int, metavar="N", help="most tokens of an answer (1024, or what the context leaves)")
    group.add_argument("--temperature", type=float, default=0.7, metavar="T", help="0 is greedy (%(default)s)")
    group.add_argument("--top-p", type=float, default=1.0, metavar="P")
    group.add_argument("--top-k", type=int, default=0, metavar="K", help="0 keeps all")
    group.add_argument("--min-p", type=float, default=0.0, metavar="P")
    group.add_argument("--repetition-penalty", type=float, default=1.0, metavar="X")
    group.add_argument("--stop", nargs="+", default=(), metavar="TEXT", help="texts that end the answer")
    group.add_argument("--seed", type=int, metavar="N", help="makes an answer repeatable")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, not {text!r}")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _peer(text: str) -> PeerCommand:
    try:
        return PeerCommand.of_flag(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _not_negative(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, not {value}")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"must be 0 to 65535, not {value}")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, not {text}")
    return value
