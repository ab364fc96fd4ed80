"""Every case of the shared case files has its recorded outcome: worse ones and unrecorded better ones fail.

FORMCAST_CONFORMANCE is `sample` (default: a fixed sample, for every change), `full` (all cases) or `record` (all cases, and the
ledgers are written anew).
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from . import ledger
from .cases import Case, Suite, cases_folder, find_file, read_cases
from .replay import ByTokens, by_bytes, outcome_of

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(3600)]

STANDARD = {"property_order": "any", "whitespace": "any"}
SUITES = [
    Suite(file="maskbench_dev", sample=12),
    Suite(file="maskbench_dev", options={"property_order": "any"}, variant="any_order", sample=12),
    Suite(file="jsts_draft2020-12_core", options=STANDARD, sample=2),
    Suite(file="jsts_draft2020-12_format", options=STANDARD),
    Suite(file="jsts_draft7_core", options=STANDARD, sample=2),
    Suite(file="reports_dev"),
]


def _mode() -> str:
    mode = os.environ.get("FORMCAST_CONFORMANCE", "sample")
    assert mode in ("sample", "full", "record"), f"FORMCAST_CONFORMANCE is {mode!r}"
    return mode


@pytest.fixture(params=SUITES, ids=lambda suite: suite.name)
def suite(request: pytest.FixtureRequest) -> Suite:
    return request.param


@pytest.fixture
def cases(suite: Suite) -> list[Case]:
    path = find_file(suite.file)
    if path is None:
        pytest.skip(f"there is no case file {suite.file} in {cases_folder()} (FORMCAST_CASES names another folder)")
    return list(read_cases(path))


@pytest.fixture(scope="module")
def by_tokens() -> ByTokens:
    assets = Path(os.environ.get("FORMCAST_ASSETS") or Path.home() / ".cache" / "formcast-assets")
    path = assets / "tokenizers" / "llama3_1" / "tokenizer.json"
    if not path.is_file():
        pytest.skip(f"there is no tokenizer {path} (FORMCAST_ASSETS names another folder)")
    return ByTokens(Tokenizer.from_file(str(path)), "<|eot_id|>")


def _recorded(suite: Suite, cases: list[Case]) -> ledger.Ledger:
    recorded = ledger.load(suite.name)
    assert recorded is not None, f"{suite.name} has no ledger; make it with `{ledger.HOW_TO_RECORD}`"
    assert recorded.num_cases == len(cases), f"{suite.file} has changed; record it with `{ledger.HOW_TO_RECORD}`"
    return recorded


def test_outcomes_are_as_recorded(suite: Suite, cases: list[Case]) -> None:
    mode = _mode()
    chosen = [case for case in cases if case.sampled(suite.sample)] if mode == "sample" else cases
    outcomes = {case.key: outcome_of(case, suite.options, by_bytes) for case in chosen}
    print(f"{suite.name}: {dict(Counter(outcome.status for outcome in outcomes.values()))}")
    if mode == "record":
        ledger.record(suite.name, outcomes)
        return
    assert not (changed := ledger.differences(_recorded(suite, cases), outcomes)), changed


def test_token_masks_give_the_same_outcomes(suite: Suite, cases: list[Case], by_tokens: ByTokens) -> None:
    """A part of the sample, through the masks of a real vocabulary."""
    chosen = [case for case in cases if case.sampled(suite.sample * suite.tokens_sample)]
    outcomes = {case.key: outcome_of(case, suite.options, by_tokens) for case in chosen}
    assert not (changed := ledger.differences(_recorded(suite, cases), outcomes)), changed
