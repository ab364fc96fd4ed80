from __future__ import annotations

import pytest
from engine_fakes import EOS, NUM_TOKENS, SPECIAL, ByteNames, FakeCompiler, Script, mask_of

from formcast.engine.constraint import Constraint
from formcast.engine.detokenizer import TokenTable
from formcast.engine.generation import EndTokens, Generation
from formcast.engine.mask_meter import MaskMeter
from formcast.engine.request import GenerationError, Request, SamplingParams

TABLE = TokenTable(token_bytes=FakeCompiler().vocabulary.token_bytes, special_name=ByteNames().id_to_token)
ENDS = EndTokens(token_ids=frozenset({EOS}), num_tokens=NUM_TOKENS)


def generation(script: Script | None = None, **params) -> Generation:
    max_tokens = params.setdefault("max_tokens", 100)
    request = Request(request_id="r", prompt_token_ids=[1], params=SamplingParams(**params), grammar=script)  # type: ignore[arg-type]
    made = Generation(request, seed=0, max_tokens=max_tokens, ends=ENDS, table=TABLE)
    if script is not None:
        made.constrain(Constraint(script, MaskMeter()))
    return made


def feed(made: Generation, tokens: bytes | list[int]) -> tuple[str, str | None, object]:
    """Text, finish reason and stop reason once the answer ended or the tokens did."""
    text = ""
    for index, token in enumerate(tokens):
        is_last = made.take(token)
        progress = made.read()
        text += progress.text
        assert progress.verdict.reason is not None or not is_last
        if progress.verdict.reason is not None:
            assert index == len(tokens) - 1, "ended early"
            return text, progress.verdict.reason, progress.verdict.stop_reason
    return text, None, None


@pytest.mark.parametrize(
    ("params", "tokens", "outcome"),
    [
        ({}, b"ab", ("ab", None, None)),
        ({}, [97, EOS], ("a", "stop", None)),
        ({"ignore_eos": True}, [97, EOS, 98], ("ab", None, None)),
        ({"stop_token_ids": [98]}, b"ab", ("a", "stop", 98)),
        ({"stop_token_ids": [EOS], "ignore_eos": True}, [97, EOS], ("a", "stop", EOS)),
        ({"stop_token_ids": [SPECIAL]}, [97, SPECIAL], ("a", "stop", SPECIAL)),
        ({"stop": ["bc"]}, b"abc", ("a", "stop", "bc")),
        ({"stop": ["bc"], "include_stop_str_in_output": True}, b"abc", ("abc", "stop", "bc")),
        ({"stop": ["bc"]}, b"ab", ("a", None, None)),
        ({"stop": ["bc"], "max_tokens": 2}, b"ab", ("ab", "length", None)),
        ({"stop": ["bc"], "max_tokens": 3}, b"abc", ("a", "stop", "bc")),
        ({"stop": ["bc"]}, [97, 98, EOS], ("ab", "stop", None)),
        ({"stop": ["a"], "min_tokens": 2}, b"aaba", ("aab", "stop", "a")),
        ({"max_tokens": 1}, [EOS], ("", "stop", None)),
        ({"max_tokens": 2}, "€".encode()[:2], ("\ufffd", "length", None)),
        ({"stop": ["\ufffd"], "max_tokens": 1}, b"\xe2", ("", "stop", "\ufffd")),
    ],
)
def test_how_a_free_answer_ends(params, tokens, outcome):
    assert feed(generation(**params), tokens) == outcome


@pytest.mark.parametrize(
    ("params", "outcome"),
    [
        ({}, ("ab", "stop", None)),
        ({"ignore_eos": True}, ("ab", "stop", None)),
        ({"max_tokens": 2}, ("ab", "stop", None)),
        ({"min_tokens": 50}, ("ab", "stop", None)),
        ({"stop": ["b"]}, ("ab", "stop", None)),
        ({"stop_token_ids": [98]}, ("ab", "stop", None)),
    ],
)
def test_the_end_of_a_grammar_wins_and_needs_no_end_token(params, outcome):
    assert feed(generation(Script.literal(b"ab"), **params), b"ab") == outcome


def test_an_unfinished_constrained_answer_can_end_by_length():
    assert feed(generation(Script.literal(b"abc"), max_tokens=2), b"ab") == ("ab", "length", None)


def test_a_token_the_mask_allowed_but_the_cursor_refuses_is_an_error():
    made = generation(Script((frozenset(b"ab"),), refuse_at=0))
    with pytest.raises(GenerationError):
        made.take(97)


def _allowed(made: Generation) -> list[int]:
    mask = made.rows(())[0].mask
    assert mask is not None
    return mask.row(-(-NUM_TOKENS // 32)).tolist()


def test_an_end_token_is_held_back_by_the_mask_until_min_tokens():
    made = generation(Script((frozenset({97, EOS}), frozenset({EOS}))), min_tokens=2)
    assert _allowed(made) == mask_of([97]).tolist()
    made.take(97)
    made.read()
    assert _allowed(made) == mask_of([EOS]).tolist()


def test_a_free_row_forbids_end_tokens_until_min_tokens():
    made = generation(min_tokens=1, stop_token_ids=[5])
    token_ids, _, _, biases = made.rows(())[0].edits  # type: ignore[union-attr]
    assert set(token_ids.tolist()) == {EOS, 5} and (biases == -float("inf")).all()
    made.take(97)
    assert (made.rows(())[0].edits[3] == 0).all()  # type: ignore[union-attr]


def test_an_unconstrained_row_without_penalties_carries_nothing():
    row = generation().rows(())[0]
    assert row.mask is None and row.edits is None
