from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.engine.detokenizer import Detokenizer, StopStrings, TokenTable

TABLE = TokenTable(token_bytes=[bytes([byte]) for byte in range(256)] + [None, None], special_name={256: "<tool>"}.get)


def detokenize(data: bytes | list[int], *, skip: bool = True) -> list[str]:
    detokenizer = Detokenizer(TABLE, skip_special_tokens=skip)
    return [*(detokenizer.push(token) for token in data), detokenizer.flush()]


def test_a_code_point_comes_whole():
    assert detokenize("aé€😀".encode()) == ["a", "", "é", "", "", "€", "", "", "", "😀", ""]


def test_bytes_that_are_no_text_are_replaced():
    assert "".join(detokenize(b"a\xff\xe2\x82b")) == "a\ufffd\ufffdb"


def test_a_code_point_cut_off_by_the_end_is_replaced():
    assert detokenize("€".encode()[:2]) == ["", "", "\ufffd"]


@pytest.mark.parametrize(("skip", "text"), [(True, "ab"), (False, "a<tool>b")])
def test_special_tokens_are_shown_by_name_or_not_at_all(skip, text):
    assert "".join(detokenize([97, 256, 257, 98], skip=skip)) == text


@given(st.binary(max_size=60))
def test_pieces_add_up_to_the_text_of_the_whole(data):
    assert "".join(detokenize(data)) == codecs.decode(data, "utf-8", "replace")


def first_stop(text: str, stops: list[str]) -> tuple[int, int] | None:
    """Oracle: start and end of the stop string that ends first, the longest of several."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            return end - max(map(len, ending)), end
    return None


@given(
    pieces=st.lists(st.text(alphabet="ab", max_size=5), max_size=10),
    stops=st.lists(st.text(alphabet="ab", min_size=1, max_size=5), max_size=3),
    include=st.booleans(),
)
def test_stop_strings_against_an_oracle(pieces, stops, include):
    scanner, shown, whole = StopStrings(stops, include=include), "", ""
    for piece in pieces:
        whole += piece
        scan = scanner.push(piece)
        shown += scan.text
        place = first_stop(whole, stops)
        if place is not None:
            start, end = place
            assert scan.stop == whole[start:end]
            assert shown == whole[: end if include else start]
            return
        assert scan.stop is None
        held = whole[len(shown) :]
        assert whole == shown + held
        longest = max((n for stop in stops for n in range(len(stop)) if whole.endswith(stop[:n])), default=0)
        assert len(held) == longest
    assert shown + scanner.flush() == whole


def test_a_long_hostile_stop_string_costs_linear_time():
    scanner = StopStrings(["a" * 4000 + "b"] * 1, include=False)
    assert sum(len(scanner.push("a").text) for _ in range(20_000)) == 16_000
