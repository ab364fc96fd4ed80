"""Sets of code points against Python sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formcast.grammar.regex.charset import ALL_CHARS, NO_CHARS, CharSet, partition

# Numbers around the borders where interval code goes wrong.
_POINTS = st.one_of(st.integers(0, 12), st.integers(0xD7FC, 0xE003), st.integers(0x10FFFA, 0x10FFFF))
_RANGES = st.lists(st.tuples(_POINTS, st.integers(0, 6)).map(lambda pair: (pair[0], min(pair[0] + pair[1], 0x10FFFF))), max_size=5)
_SAMPLES = [*range(0, 20), *range(0xD7F8, 0xE008), *range(0x10FFF4, 0x110000)]


def _members(ranges: list[tuple[int, int]]) -> set[int]:
    return {point for low, high in ranges for point in range(low, high + 1) if not 0xD800 <= point <= 0xDFFF}


def _sampled(chars: CharSet) -> set[int]:
    return {point for point in _SAMPLES if point in chars}


@given(_RANGES, _RANGES)
def test_operators(left: list[tuple[int, int]], right: list[tuple[int, int]]):
    first, second = CharSet.of(left), CharSet.of(right)
    assert _sampled(first) == _members(left)
    assert first.size == len(_members(left))
    assert _sampled(first | second) == _members(left) | _members(right)
    assert _sampled(first & second) == _members(left) & _members(right)
    assert _sampled(first - second) == _members(left) - _members(right)
    assert ~~first is first
    assert first & ~first is NO_CHARS
    assert first | ~first is ALL_CHARS
    assert (first | second) is (second | first)


@given(_RANGES)
def test_ranges_are_canonical(ranges: list[tuple[int, int]]):
    chars = CharSet.of(ranges)
    for (_, high), (low, _) in zip(chars.ranges, chars.ranges[1:], strict=False):
        assert high + 1 < low
    assert CharSet.of(reversed(chars.ranges)) is chars
    assert bool(chars) == bool(_members(ranges))


@given(st.lists(_RANGES, min_size=1, max_size=4))
def test_partition_cells_are_disjoint_and_tell_their_sets(parts: list[list[tuple[int, int]]]):
    sets = [CharSet.of(ranges) for ranges in parts]
    cells = partition(tuple(sets))
    for point in _SAMPLES:
        expected = sum(1 << index for index, chars in enumerate(sets) if point in chars)
        masks = [mask for cell, mask in cells if point in cell]
        assert masks == ([expected] if expected else [])


def test_the_alphabet_has_no_surrogates():
    assert ALL_CHARS.size == 0x110000 - 0x800
    assert 0xD800 not in ALL_CHARS
    assert 0xDFFF not in ALL_CHARS
    assert ~NO_CHARS is ALL_CHARS
