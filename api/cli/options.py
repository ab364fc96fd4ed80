"""Parsed flags -> the objects that the rest of the package takes."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ...engine.request import SamplingParams
from .. import constraints
from ..constraints import Constraint, ConstraintError, Notation
from ..runtime import RuntimeOptions
from .asker import Manner
from .errors import UsageError
from .grammar_source import read_grammar
from .schema_source import read_schema, read_text


def runtime_options(args: argparse.Namespace) -> RuntimeOptions:
    return RuntimeOptions(
        model=args.model,
        dtype=args.dtype,
        quantization=args.quantization,
        max_model_len=args.max_model_len,
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        gpu_memory_utilization=args.gpu_memory_utilization,
        kv_cache_memory_bytes=args.kv_cache_memory_bytes,
        tensor_parallel_size=args.tensor_parallel_size,
        enable_prefix_caching=args.enable_prefix_caching,
        async_scheduling=args.async_scheduling,
        resident_masks=args.resident_masks,
        draft_from_grammar=args.draft_from_grammar,
        speculative_config=args.speculative_config,
        device=args.device,
        grammar_cache_memory_bytes=args.grammar_cache_memory_bytes,
        fsm_cache_dir=args.fsm_cache_dir,
        **({"max_waiting": args.max_waiting} if "max_waiting" in args else {}),
    )


def sampling_params(args: argparse.Namespace) -> SamplingParams:
    return SamplingParams(
        max_tokens=args.max_tokens,
        temperature=args.temperature,
        top_p=args.top_p,
        top_k=args.top_k,
        min_p=args.min_p,
        repetition_penalty=args.repetition_penalty,
        stop=tuple(args.stop),
        seed=args.seed,
    )


def manner(args: argparse.Namespace) -> Manner:
    """How `generate` and `chat` ask."""
    return Manner(
        params=sampling_params(args),
        system=args.system,
        raw=getattr(args, "raw", False),
        thinks=args.thinking != "off",
        thinking_token_budget=args.thinking_token_budget,
        reasoning_parser=args.reasoning_parser,
    )


def constraint(args: argparse.Namespace) -> Constraint | None:
    """The one constraint of the command line.

    Raises:
        UsageError: several, or a schema or grammar that cannot be read.
        GrammarError: it cannot be enforced.
    """
    builders: dict[str, Any] = {
        "--json-schema": args.json_schema is not None and (lambda: schema_constraint(args.json_schema)),
        "--json-object": args.json_object and (lambda: constraints.of_json_object(field="--json-object")),
        "--regex": args.regex is not None and (lambda: constraints.of_regex(args.regex, field="--regex")),
        "--choice": args.choice is not None and (lambda: constraints.of_choice(args.choice, field="--choice")),
        "--lark": args.lark is not None and (lambda: _grammar_constraint("lark", args.lark, start=args.lark_start)),
        "--gbnf": args.gbnf is not None and (lambda: _grammar_constraint("gbnf", args.gbnf)),
        "--ebnf": args.ebnf is not None and (lambda: _grammar_constraint("ebnf", args.ebnf)),
        "--structural-tag": args.structural_tag is not None and (lambda: _structural_tag(args.structural_tag)),
    }
    if args.lark_start is not None and args.lark is None:
        raise UsageError("--lark-start needs --lark")
    try:
        return constraints.the_only([(field, build) for field, build in builders.items() if build])
    except ConstraintError as error:
        raise UsageError(str(error)) from None


def schema_constraint(source: str) -> Constraint:
    """The constraint of a schema given by file, inline or by name."""
    return constraints.of_schema(read_schema(source), field="--json-schema")


def reads_stdin(args: argparse.Namespace) -> bool:
    """Whether the constraint is to be read from stdin."""
    return "-" in (args.json_schema, args.lark, args.gbnf, args.ebnf, args.structural_tag)


def _grammar_constraint(notation: Notation, source: str, *, start: str | None = None) -> Constraint:
    return constraints.of_grammar(notation, read_grammar(source, notation), field=f"--{notation}", start=start)


def _structural_tag(source: str) -> Constraint:
    return constraints.of_structural_tag(read_text(source), field="--structural-tag")


def api_keys(args: argparse.Namespace) -> tuple[str, ...]:
    """Keys of the flag, else of the environment, where they do not show in the list of processes."""
    given = args.api_key or [os.environ.get("FORMCAST_API_KEY", "")]
    keys = tuple(key for key in given if key)
    if args.api_key and len(keys) != len(args.api_key):
        raise UsageError("--api-key: a key must not be empty")
    return keys
