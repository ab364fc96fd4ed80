"""A live server under random requests made from its own document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from api_processes import fake_server
from hypothesis import HealthCheck, given, settings

from formcast.api.server.operations import OPERATIONS

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.checks")

pytestmark = pytest.mark.slow
HEADERS = {"authorization": "Bearer a-key"}

# Which fields go together, and in which ranges, is not in the document: a body that it admits may still be refused with a 400.
BEYOND_THE_DOCUMENT = ("positive_data_acceptance", "ignored_auth")  # keys have tests of their own


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    with fake_server("echoes", api_keys=["a-key"]) as server:
        yield schemathesis.openapi.from_url(f"{server.url}/openapi.json", headers=HEADERS)


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_the_server_keeps_its_word(schema: Any, operation: Any, mode: str):
    if mode == "NEGATIVE" and operation.body is None:
        return  # nothing to get wrong
    described = schema[operation.path][operation.method]
    excluded = checks.CHECKS.get_by_names(BEYOND_THE_DOCUMENT)
    generation_mode = getattr(schemathesis.GenerationMode, mode)
    in_time = {"X-Request-Timeout": "60"} if mode == "POSITIVE" and operation.generates else {}  # a time too short is rightly a 504

    @settings(
        max_examples=20 if operation.body else 2,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(described.as_strategy(generation_mode=generation_mode))
    def keeps_its_word(case: Any) -> None:
        case.call_and_validate(headers=HEADERS | in_time, excluded_checks=excluded)

    keeps_its_word()
