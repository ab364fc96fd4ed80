"""Classes of characters beyond ASCII, byte by byte."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from formcast import Grammar

_EDGES = (0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF)
POINTS = st.one_of(st.sampled_from(_EDGES), st.integers(0x80, 0xD7FF), st.integers(0xE000, 0x10FFFF))
RANGES = st.lists(st.tuples(POINTS, POINTS).map(lambda pair: (min(pair), max(pair))), min_size=1, max_size=3)
_NO_TEXT = (b"\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80")


def _class(ranges: list[tuple[int, int]]) -> str:
    return "[" + "".join(f"\\u{{{lo:x}}}-\\u{{{hi:x}}}" for lo, hi in ranges) + "]"


@given(RANGES, RANGES)
@example([(0x80, 0x10FFFF)], [(0xE9, 0xE9)])
def test_each_character_leads_where_its_classes_say(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    compiled = Grammar.regex(f"{_class(first)}a|{_class(second)}b").compile()
    around = {point + step for lo, hi in (*first, *second) for point in (lo, hi) for step in (-1, 0, 1)}
    for point in around | set(_EDGES):
        if not 0x80 <= point <= 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            continue
        for ranges, end in ((first, "a"), (second, "b")):
            state = compiled.machine.run(compiled.start, (chr(point) + end).encode())
            assert (state >= 0) == any(lo <= point <= hi for lo, hi in ranges), hex(point)
    for data in _NO_TEXT:
        assert compiled.machine.run(compiled.start, data) < 0
