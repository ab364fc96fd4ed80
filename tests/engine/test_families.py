"""Several answers to one prompt: it is computed once, its blocks are shared, and nobody can tell."""

from __future__ import annotations

from functools import cache

import pytest
from engine_fakes import Script, drain, greedy, tiny_core
from scheduler_world import SIZE, World, shape

from formcast.engine.request import expand

NUM_ANSWERS = 4
MULTIPLE = 16


def answers(num_prompt: int, **params):
    return expand(greedy("r", list(range(num_prompt)), n=NUM_ANSWERS, temperature=1.2, seed=3, **params))


@cache
def alone(num_prompt: int) -> list[tuple[int, ...]]:
    """The same answers, each by an engine of its own."""
    return [drain(tiny_core(), [request])[request.request_id].token_ids for request in answers(num_prompt)]


def counted(core) -> list[int]:
    """The numbers of tokens of the steps that a core computes from now on."""
    sizes: list[int] = []
    schedule = core._scheduler.schedule

    def noted(propose):
        plan = schedule(propose)
        sizes.append(plan.num_tokens)
        return plan

    core._scheduler.schedule = noted
    return sizes


@pytest.mark.parametrize("caching", [False, True], ids=["no cache", "cache"])
@pytest.mark.parametrize("num_prompt", [1, 15, MULTIPLE, 17, 3 * MULTIPLE, 50])
def test_answers_are_those_of_separate_requests_and_the_prompt_is_computed_once(caching, num_prompt):
    core = tiny_core(enable_prefix_caching=caching)
    sizes = counted(core)
    done = drain(core, answers(num_prompt))
    assert [done[f"r#{index}"].token_ids for index in range(NUM_ANSWERS)] == alone(num_prompt)
    num_generated = sum(len(tokens) for tokens in alone(num_prompt))
    # The last token of the prompt is computed for each answer, and the last one of an answer never.
    assert sum(sizes) == (num_prompt - 1) + num_generated


@pytest.mark.parametrize(
    "settings",
    [
        {"max_num_seqs": 2},
        {"max_num_batched_tokens": 8},
        {"kv_cache_memory_bytes": 20 * 4 * 2 * 2 * 2 * 8 * 4, "block_size": 4, "max_model_len": 70},
    ],
    ids=["few at a time", "small chunks", "preempted"],
)
def test_answers_do_not_depend_on_room(settings):
    core = tiny_core(enable_prefix_caching=False, **settings)
    done = drain(core, answers(50))
    assert [done[f"r#{index}"].token_ids for index in range(NUM_ANSWERS)] == alone(50)
    assert (core.stats.num_preemptions > 0) == ("block_size" in settings)


@pytest.mark.parametrize("aborted", range(NUM_ANSWERS))
@pytest.mark.parametrize("at_step", [0, 1, 2, 4])
def test_an_answer_that_is_aborted_takes_nothing_from_the_others(aborted, at_step):
    core = tiny_core(enable_prefix_caching=False, max_num_batched_tokens=40)

    def abort(step: int) -> None:
        if step == at_step:
            core.abort(f"r#{aborted}")

    done = drain(core, answers(50), before_step=abort)
    for index in set(range(NUM_ANSWERS)) - {aborted}:
        assert done[f"r#{index}"].token_ids == alone(50)[index]


def test_each_answer_has_its_own_place_in_the_grammar():
    allowed = tuple(frozenset(b"abcdefgh") for _ in range(12))
    requests = answers(30, grammar=Script(allowed))
    together = drain(tiny_core(), requests)
    apart = [drain(tiny_core(), [request])[request.request_id].text for request in requests]
    assert [together[request.request_id].text for request in requests] == apart
    assert len(set(apart)) > 1


def test_who_writes_first_into_a_shared_block_gets_a_copy():
    world = World()
    for answer in "abc":
        world.add(answer, list(range(6)), family="f")
    assert shape(world.step()) == [("a", 6, True)]
    plan = world.step()
    assert shape(plan) == [("a", 1, True), ("b", 1, True), ("c", 1, True)]
    tables = {chunk.request_id: list(chunk.block_ids) for chunk in plan.chunks}
    assert len({table[0] for table in tables.values()}) == 1  # whole blocks are shared
    assert len({table[1] for table in tables.values()}) == 3
    assert [(copied.source, copied.target) for copied in plan.copies] == [(tables["a"][1], tables[answer][1]) for answer in "bc"]
    assert world.kv.usage.held == 1 + 3
    world.finish("a")
    assert world.kv.usage.held == 1 + 2


def test_others_overtake_those_who_wait_for_their_prompt():
    world = World()
    for answer in "ab":
        world.add(answer, [1] * 12, family="f")
    world.add("other", [2] * 3)
    assert shape(world.step()) == [("a", 8, False)]
    assert shape(world.step()) == [("a", 4, True), ("other", 3, True)]
    assert shape(world.step()) == [("a", 1, True), ("other", 1, True), ("b", 1, True)]


def test_when_the_first_answer_ends_early_another_computes_the_prompt():
    world = World()
    for answer in "abc":
        world.add(answer, [1] * 12, family="f")
    world.step()
    world.finish("a")
    assert shape(world.step()) == [("b", 8, False)]
    assert shape(world.step()) == [("b", 4, True)]
    assert shape(world.step()) == [("b", 1, True), ("c", 1, True)]


@pytest.mark.parametrize("other", [{"tokens": [2] * 12}, {"tokens": [1] * 12, "salt": "s"}], ids=["prompt", "salt"])
def test_a_family_is_of_one_prompt_and_salt(other):
    world = World(max_num_batched_tokens=24)
    world.add("a", [1] * 12, family="f")
    world.add("b", family="f", **other)
    assert shape(world.step()) == [("a", 12, True), ("b", 12, True)]


def test_an_answer_waits_while_there_is_no_block_for_its_copy():
    world = World(num_blocks=4)
    for answer in "ab":
        world.add(answer, [1] * (2 * SIZE + 1), family="f")
    assert shape(world.step()) == [("a", 8, False)]
    assert shape(world.step()) == [("a", 1, True)]
    # Two blocks are shared, one is the first answer's own, and the free one is kept for it.
    assert shape(world.step()) == [("a", 1, True)]
    world.finish("a")
    assert shape(world.step()) == [("b", 8, False)]
