"""`formcast bench mask`: what masks cost, cold and warm, beside other engines, and whether they are right."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...fsm_cache import Vocabulary, fill_masks
from . import terminal
from .errors import OK, UsageError
from .mask_cases import Case, own_cases, read_cases
from .mask_engines import Engine, Formcast, installed, make_engine
from .table import print_table

_BATCH = 64
_QUANTILES = (50, 90, 99, 100)


@dataclass
class Figures:
    """What one engine did; times in microseconds.

    Attributes:
        outcomes: cases by outcome: pass, compile_error, reject_valid or accept_invalid (an unsound mask, the worst).
        first: compilation and first mask, per case.
        cold, warm: mask and step per token, when the case is replayed for the first and for the second time.
        batch: per cursor, when 64 are filled in one call (formcast only).
    """

    engine: str
    outcomes: Counter[str] = field(default_factory=Counter)
    init_s: float = 0.0
    first: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    batch: list[float] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        times = {"ttfm_us": self.first, "tbm_us": self.cold, "tbm_warm_us": self.warm, "batch_us": self.batch}
        return {
            "engine": self.engine,
            "cases": self.outcomes.total(),
            **self.outcomes,
            "init_s": round(self.init_s, 2),
            "tokens": len(self.cold),
            **{name: _summary(values) for name, values in times.items() if values},
        }


def run(args: argparse.Namespace) -> int:
    from tokenizers import Tokenizer

    path = Path(args.tokenizer)
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.exists():
        raise UsageError(f"cannot read {file}: no such file")
    tokenizer = Tokenizer.from_file(str(file))
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    cases = [case for name in args.cases for case in read_cases(name, vocabulary)] or list(own_cases(vocabulary))
    cases = cases[:: args.stride]
    figures = []
    for name in args.engines or installed():
        terminal.note(f"{name}, {len(cases)} cases")
        figures.append(_measure(name, cases, vocabulary, tokenizer))
    _print(figures)
    reports = [f.report() for f in figures]
    print(json.dumps({"bench": "mask", "vocabulary": vocabulary.vocab_size, "engines": reports}))
    if args.output:
        Path(args.output).write_text(json.dumps(reports, indent=2) + "\n", encoding="utf-8")
    if args.plot:
        _plot(figures, args.plot)
    return OK


def _measure(name: str, cases: list[Case], vocabulary: Vocabulary, tokenizer: Any) -> Figures:
    figures = Figures(name)
    start = time.perf_counter()
    engine = make_engine(name, vocabulary, tokenizer)
    figures.init_s = time.perf_counter() - start
    row = np.zeros(vocabulary.row_words, np.int32)
    eos = min(vocabulary.eos_token_ids)
    for case in cases:
        figures.outcomes[_replay(engine, case, row, eos, figures)] += 1
    return figures


def _replay(engine: Engine, case: Case, row: np.ndarray, eos: int, figures: Figures) -> str:
    start = time.perf_counter()
    try:
        compiled = engine.compile(case.kind, case.source)
        engine.fill(engine.start(compiled), row)
    except Exception:  # whatever an engine raises for a constraint that it can't do
        return "compile_error"
    figures.first.append((time.perf_counter() - start) * 1e6)
    outcome = "pass"
    for times in (figures.cold, figures.warm):
        for text in case.texts:
            accepted = _accepts(engine, engine.start(compiled), text.token_ids, row, eos, times)
            if accepted != text.valid:
                outcome = "accept_invalid" if accepted or outcome == "accept_invalid" else "reject_valid"
    if isinstance(engine, Formcast):
        figures.batch.extend(_batched(compiled, case, row))
    return outcome


def _accepts(engine: Engine, matcher: Any, token_ids: tuple[int, ...], row: np.ndarray, eos: int, times: list[float]) -> bool:
    for token in token_ids:
        start = time.perf_counter()
        engine.fill(matcher, row)
        allowed = _has(row, token) and engine.advance(matcher, token)
        times.append((time.perf_counter() - start) * 1e6)
        if not allowed:
            return False
    engine.fill(matcher, row)
    return _has(row, eos)


def _batched(fsm: Any, case: Case, row: np.ndarray) -> list[float]:
    """Microseconds per cursor of `fill_masks` over cursors at the first tokens of the case's first valid text."""
    token_ids = next((text.token_ids for text in case.texts if text.valid and text.token_ids), ())
    cursor, cursors = fsm.cursor(), []
    for token in token_ids[:_BATCH]:
        cursors.append(cursor.fork())
        cursor.advance(token)
    if not cursors:
        return []
    cursors = (cursors * _BATCH)[:_BATCH]
    rows = np.zeros((_BATCH, len(row)), np.int32)
    fill_masks(cursors, rows)
    start = time.perf_counter()
    fill_masks(cursors, rows)
    return [(time.perf_counter() - start) * 1e6 / _BATCH]


def _has(row: np.ndarray, token: int) -> bool:
    return bool(int(row[token >> 5]) >> (token & 31) & 1)


def _summary(values: list[float]) -> dict[str, float]:
    quantiles = np.percentile(values, _QUANTILES)
    return {"avg": round(float(np.mean(values)), 1), **{f"p{q}": round(float(v), 1) for q, v in zip(_QUANTILES, quantiles, strict=True)}}


_ROWS = (("first mask us", "first"), ("cold mask us", "cold"), ("warm mask us", "warm"), ("batch of 64, per cursor us", "batch"))


def _print(figures: list[Figures]) -> None:
    outcomes = ("pass", "compile_error", "reject_valid", "accept_invalid")
    print_table(
        ("engine", "cases", *outcomes, "init s"),
        [(f.engine, str(f.outcomes.total()), *(str(f.outcomes[o]) for o in outcomes), f"{f.init_s:.2f}") for f in figures],
    )
    print()
    lines = []
    for title, name in _ROWS:
        for f in figures:
            values = getattr(f, name)
            if values:
                lines.append((title, f.engine, *(f"{v:.1f}" for v in _summary(values).values())))
    print_table(("figure", "engine", "avg", "p50", "p90", "p99", "max"), lines)


def _plot(figures: list[Figures], path: str) -> None:
    """Distributions of the times, as shares of tokens (cases) that took at most so long."""
    try:
        matplotlib = importlib.import_module("matplotlib")
        matplotlib.use("agg")
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise UsageError("a plot needs matplotlib: pip install 'formcast[bench]'") from error
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 4.5))
    for axis, (title, name) in zip(axes, _ROWS, strict=False):
        for f in figures:
            values = np.sort(getattr(f, name))
            if len(values):
                axis.plot(values, np.arange(1, len(values) + 1) / len(values), label=f.engine)
        axis.set(title=title.removesuffix(" us"), xscale="log", xlabel="microseconds", ylabel="share")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
