"""What is remembered within a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formcast.fsm_cache.memo import Memo


def test_values_that_are_used_stay_and_others_go() -> None:
    memo: Memo[int, str] = Memo(100)
    memo.put(0, "used", 10)
    for key in range(1, 100):
        assert memo.get(0) == "used"
        memo.put(key, "once", 10)
    assert memo.get(1) is None
    assert memo.get(99) == "once"


def test_a_value_larger_than_the_budget_is_kept_until_the_next() -> None:
    memo: Memo[int, str] = Memo(1)
    memo.put(1, "large", 1000)
    assert memo.get(1) == "large"


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30))), st.integers(1, 200))
def test_answers_are_what_was_put_and_the_budget_holds(puts: list[tuple[int, int]], budget: int) -> None:
    memo: Memo[int, int] = Memo(budget)
    truth: dict[int, int] = {}
    for key, size in puts:
        found = memo.get(key)
        assert found is None or found == truth[key]
        if found is None:
            truth[key] = size
            memo.put(key, size, size)
        assert memo.num_bytes <= max(budget, 2 * 30)
