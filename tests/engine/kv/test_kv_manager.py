from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.engine.kv.blocks import BlockPool
from formcast.engine.kv.manager import KVManager
from formcast.engine.kv.radix import RadixTree

SIZE = 4


def manager(num_blocks: int = 8, *, caching: bool = True) -> KVManager:
    return KVManager(num_blocks, SIZE, enable_prefix_caching=caching)


def store(kv: KVManager, tokens: list[int], salt: str | None = None) -> list[int]:
    """Computes and publishes a sequence; its held blocks."""
    matched = kv.match(tokens, salt)
    kv.hold(matched)
    blocks = matched + kv.take(kv.num_blocks_for(len(tokens)) - len(matched))
    kv.publish(tokens, len(tokens), blocks, len(matched), salt)
    return blocks


class TestBlockPool:
    def test_a_block_is_free_only_after_its_last_holder_left(self):
        pool = BlockPool(2)
        block = pool.take()
        pool.hold(block)
        assert not pool.release(block)
        assert pool.num_held == 1
        assert pool.release(block)
        pool.free([block])
        assert (pool.num_free, pool.num_held) == (2, 0)

    def test_releasing_too_often_is_a_bug(self):
        pool = BlockPool(1)
        with pytest.raises(AssertionError):
            pool.release(0)


class TestPrefixCaching:
    def test_a_finished_sequence_is_found_again(self):
        kv = manager()
        tokens = list(range(10))
        blocks = store(kv, tokens)
        kv.release(blocks)
        assert kv.match([*tokens, 99], None) == blocks[:2]

    def test_the_last_token_is_never_taken_from_the_cache(self):
        kv = manager()
        kv.release(store(kv, list(range(8))))
        assert len(kv.match(list(range(8)), None)) == 1

    def test_tokens_decide_not_their_hash(self):
        kv = manager()
        kv.release(store(kv, [-1] * SIZE))
        assert hash((-1,) * SIZE) == hash((-2,) * SIZE)
        assert kv.match([-2] * (SIZE + 1), None) == []

    def test_another_salt_finds_nothing(self):
        kv = manager()
        kv.release(store(kv, list(range(9)), salt="a"))
        assert kv.match(list(range(9)), "b") == []
        assert kv.match(list(range(9)), None) == []
        assert len(kv.match(list(range(9)), "a")) == 2

    def test_off_means_off(self):
        kv = manager(caching=False)
        kv.release(store(kv, list(range(9))))
        assert kv.match(list(range(9)), None) == []
        assert kv.usage.free == 8

    def test_two_sequences_that_computed_the_same_share_afterwards(self):
        kv = manager()
        tokens = list(range(8))
        first, second = kv.take(2), kv.take(2)
        kv.publish(tokens, 8, first, 0, None)
        kv.publish(tokens, 8, second, 0, None)
        assert second == first
        assert (kv.usage.held, kv.usage.free) == (2, 6)

    def test_the_least_recently_used_leaf_goes_first(self):
        kv = manager(4)
        old, new = list(range(8)), list(range(100, 108))
        kv.release(store(kv, old))
        kv.release(store(kv, new))
        kv.hold(kv.match([*old, 1], None))
        kv.release(kv.match([*old, 1], None))
        kv.take(1)
        assert len(kv.match([*new, 1], None)) == 1
        assert len(kv.match([*old, 1], None)) == 2

    def test_what_is_held_is_never_evicted(self):
        kv = manager(4)
        held = store(kv, list(range(8)))
        kv.release(store(kv, list(range(50, 58))))
        assert kv.num_available == 2
        assert set(kv.take(2)).isdisjoint(held)
        assert kv.num_available == 0

    def test_evicting_everything_leaves_an_empty_tree(self):
        kv = manager(4)
        kv.release(store(kv, list(range(16))))
        kv.release(kv.take(4))
        assert kv.usage.free == 4
        assert kv.match(list(range(17)), None) == []


def test_a_parent_used_later_than_its_leaf_outlives_other_leaves():
    tree = RadixTree(1)
    tree.insert([1, 2], [0, 1], 0, None)
    tree.insert([3], [2], 0, None)
    for block in (1, 2, 0):
        tree.set_idle(block)
    assert [tree.evict() for _ in range(3)] == [1, 2, 0]


@given(seed=st.integers(0, 2**32), caching=st.booleans())
def test_blocks_are_conserved_under_random_use(seed, caching):
    rng = random.Random(seed)
    kv = manager(12, caching=caching)
    live: list[list[int]] = []
    for _ in range(60):
        if live and (rng.random() < 0.5 or kv.num_available < 4):
            kv.release(live.pop(rng.randrange(len(live))))
        elif kv.num_available >= 4:
            tokens = [rng.randrange(2) for _ in range(rng.randrange(1, 16))]
            live.append(store(kv, tokens, rng.choice([None, "salt"])))
        usage = kv.usage
        assert usage.free + usage.held + usage.cached == usage.total == 12
        assert usage.held == len({block for blocks in live for block in blocks})
    for blocks in live:
        kv.release(blocks)
    assert kv.num_available == 12


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=14), max_size=12))
def test_matching_agrees_with_comparing_prefixes(sequences):
    """Oracle: the longest common run of whole blocks with any sequence stored before. Nothing is evicted."""
    kv = manager(64)
    seen: list[list[int]] = []
    for tokens in sequences:
        longest = max((_common_blocks(tokens, other) for other in seen), default=0)
        assert len(kv.match(tokens, None)) == min(longest, (len(tokens) - 1) // SIZE)
        kv.release(store(kv, tokens))
        seen.append(tokens)


def _common_blocks(a: list[int], b: list[int]) -> int:
    count = 0
    while (count + 1) * SIZE <= min(len(a), len(b)) and a[: (count + 1) * SIZE] == b[: (count + 1) * SIZE]:
        count += 1
    return count
