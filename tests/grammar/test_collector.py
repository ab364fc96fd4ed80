"""Thresholds of the garbage collector while grammars are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from formcast import Grammar
from formcast.grammar.collector import RELAXED
from formcast.grammar.errors import GrammarError


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_within_and_as_before_behind() -> None:
    gc.set_threshold(700, 10, 10)
    with RELAXED:
        with RELAXED:
            assert gc.get_threshold()[0] > 10_000
        assert gc.get_threshold()[0] > 10_000
    assert gc.get_threshold() == (700, 10, 10)


def test_an_error_ends_it_too() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(GrammarError):
        Grammar.json_schema({"type": 5})
    assert gc.get_threshold() == (700, 10, 10)


def test_whoever_sets_thresholds_meanwhile_has_the_last_word() -> None:
    with RELAXED:
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)


def test_a_collector_that_is_off_stays_off() -> None:
    gc.set_threshold(0)
    with RELAXED:
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold()[0] == 0
