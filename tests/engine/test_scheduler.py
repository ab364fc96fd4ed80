from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_world import World, shape

from formcast.engine.step_plan import StepPlan, StepResult


def test_a_long_prompt_is_computed_in_chunks_beside_decoding():
    world = World()
    world.add("short", [1, 2])
    world.add("long", list(range(12)))
    assert shape(world.step()) == [("short", 2, True), ("long", 6, False)]
    assert shape(world.step()) == [("short", 1, True), ("long", 6, True)]
    assert shape(world.step()) == [("short", 1, True), ("long", 1, True)]


def test_requests_join_and_leave_at_every_step():
    world = World()
    world.add("a", [1])
    world.step()
    world.add("b", [1, 2])
    assert shape(world.step()) == [("a", 1, True), ("b", 2, True)]
    world.finish("a")
    assert shape(world.step()) == [("b", 1, True)]


def test_order_is_by_priority_then_arrival():
    world = World(max_num_seqs=1)
    world.add("late", [1], priority=1)
    world.add("first", [1])
    world.add("second", [1])
    order = []
    while world.scheduler.has_work:
        (chunk,) = world.step().chunks
        order.append(chunk.request_id)
        world.finish(chunk.request_id)
    assert order == ["first", "second", "late"]


def test_a_request_waits_until_blocks_for_its_whole_prompt_are_there():
    world = World(num_blocks=10, max_num_batched_tokens=40)
    world.add("a", [1] * 24)
    world.add("b", [1] * 16)
    assert shape(world.step()) == [("a", 24, True)]
    world.finish("a")
    assert shape(world.step()) == [("b", 16, True)]


def test_without_blocks_the_last_in_order_is_computed_again_later():
    world = World(num_blocks=10, max_num_batched_tokens=40)
    world.add("a", [1] * 16)
    world.add("b", [1] * 15)
    preempted = 0
    for _ in range(20):
        preempted += world.step().num_preempted
    assert preempted == 1
    assert world.scheduler.num_waiting == 1
    length = len(world.tokens["b"])
    world.finish("a")
    assert shape(world.step()) == [("b", length, True)]


def test_a_cached_prefix_is_not_computed_again():
    world = World(enable_prefix_caching=True, max_num_batched_tokens=40)
    prompt = list(range(10))
    world.add("a", prompt)
    world.step()
    world.finish("a")
    world.add("b", prompt)
    assert shape(world.step()) == [("b", 2, True)]
    assert world.scheduler.num_cached("b") == 8


def drafting(world: World, text: dict[str, list[int]]) -> StepPlan:
    """A step in which these tokens are drafted; a draft of 7 is right."""
    plan = world.scheduler.schedule(lambda request_id, limit: text.get(request_id, [])[:limit])
    new = {}
    for chunk in plan.chunks:
        world.put(chunk.block_ids, chunk.start, chunk.token_ids)
        if chunk.samples:
            wrong = next((index for index, draft in enumerate(chunk.drafts) if draft != 7), chunk.num_drafts)
            new[chunk.request_id] = (7,) * (wrong + 1)
    world.scheduler.commit(plan, StepResult(new_token_ids=new))
    for request_id, tokens in new.items():
        world.tokens[request_id] += tokens
    return plan


def test_drafts_are_computed_behind_the_last_token_and_wrong_ones_again():
    world = World()
    world.add("a", [1, 2])
    world.step()
    (chunk,) = drafting(world, {"a": [7, 7, 5]}).chunks
    assert (chunk.token_ids, chunk.drafts, chunk.num_sampled, chunk.samples) == ((7, 7, 7, 5), (7, 7, 5), 4, True)
    (chunk,) = world.step().chunks
    assert (chunk.token_ids, chunk.start) == ((7,), 5)


def test_drafts_take_what_the_budget_leaves():
    world = World()
    for name in "abc":
        world.add(name, [1])
        world.step()
    assert shape(drafting(world, {"a": [7] * 9, "b": [7] * 9})) == [("a", 6, True), ("b", 1, True), ("c", 1, True)]
    world.add("long", [1] * 12)
    assert shape(drafting(world, {"a": [7] * 9})) == [("a", 1, True), ("b", 1, True), ("c", 1, True), ("long", 5, False)]


def test_drafts_stay_within_the_context_and_the_spare_blocks():
    world = World(num_blocks=10, max_num_batched_tokens=40)
    world.add("a", [1] * 30)
    world.step()
    assert len(drafting(world, {"a": [5] * 20}).chunks[0].drafts) == 5  # 9 of 10 blocks, since one is left for each that runs
    world.finish("a")
    world = World(max_model_len=20)
    world.add("a", [1] * 17)
    for _ in range(3):
        world.step()
    assert drafting(world, {"a": [5] * 9}).chunks[0].num_drafts == 2


def test_finishing_twice_or_unknown_has_no_effect():
    world = World()
    world.add("a", [1] * 5)
    world.step()
    world.finish("a")
    world.finish("a")
    world.finish("never")
    assert world.kv.usage.free == world.kv.usage.total
    assert world.step().chunks == ()


@pytest.mark.parametrize("caching", [False, True])
@given(seed=st.integers(0, 2**32))
def test_random_walk(caching, seed):
    """Whatever comes and goes: plans stay within budget, blocks are conserved, and everyone finishes in the end."""
    rng = random.Random(seed)
    world = World(enable_prefix_caching=caching, max_num_batched_tokens=rng.choice([4, 8, 32]), num_blocks=rng.choice([10, 14]))
    goals: dict[str, int] = {}
    for index in range(80):
        if index < 60 and rng.random() < 0.4:
            prompt = [rng.randrange(2) for _ in range(rng.randrange(1, 25))]
            num_answers = rng.choice([1, 1, 1, 3])
            options = {
                "priority": rng.choice([0, 0, 1]),
                "salt": rng.choice([None, "s"]),
                "family": str(index) if num_answers > 1 else None,
            }
            for answer in range(num_answers):
                world.add(f"{index}#{answer}", prompt, **options)
                goals[f"{index}#{answer}"] = min(len(prompt) + rng.randrange(1, 16), world.limits.max_model_len)
        if goals and rng.random() < 0.1:
            victim = rng.choice(sorted(goals))
            world.finish(victim)
            del goals[victim]
        _step_and_finish(world, goals)
    for _ in range(3000):
        if not goals:
            break
        _step_and_finish(world, goals)
    assert not goals and not world.scheduler.has_work
    assert world.kv.usage.held == 0


def _step_and_finish(world: World, goals: dict[str, int]) -> None:
    plan = world.step()
    assert plan.chunks or not goals
    for request_id in plan.sampling_ids:
        if len(world.tokens[request_id]) >= goals[request_id]:
            world.finish(request_id)
            del goals[request_id]


def test_no_request_starves():
    """Every request is served within a bounded number of steps although new ones keep coming."""
    world = World(max_num_seqs=2)
    served_at: dict[str, int] = {}
    for step in range(60):
        world.add(f"r{step}", [1] * 3)
        for request_id in world.step().sampling_ids:
            if len(world.tokens[request_id]) >= 5:
                served_at[request_id] = step
                world.finish(request_id)
    order = [int(request_id[1:]) for request_id in served_at]
    assert order == sorted(order) and len(order) >= 50
