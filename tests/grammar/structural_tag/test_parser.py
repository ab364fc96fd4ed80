"""The parser of outputs: what it says, and when."""

from __future__ import annotations

from typing import Any

import pytest

from formcast import Grammar
from formcast.grammar.errors import OutputError
from formcast.grammar.structural_tag import TagBegin, TagDelta, TagEnd, TextDelta
from formcast.grammar.structural_tag.grammar import TagGrammar

ANY = {"type": "json_schema", "json_schema": {"type": "object"}}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tag", "name": name, "begin": f"<f={name}>", "content": ANY, "end": "</f>", **more}


CALLS = Grammar.structural_tag({"type": "triggered_tags", "triggers": ["<f="], "tags": [call("get"), call("getter")]})


def told(grammar: TagGrammar, *pieces: str) -> list[list[tuple[str, str]]]:
    """What each piece brings, and then the end."""
    parser = grammar.parser()
    steps = [parser.feed(piece) for piece in pieces]
    return [[(type(event).__name__, event.text) for event in step] for step in (*steps, parser.finish())]


def test_only_what_may_be_a_boundary_is_held_back():
    assert told(CALLS, "a<", "f", "x<<f", "=", "get", ">", '{"a"', ":1}", "</", "f>b", "<f=") == [
        [("TextDelta", "a")],
        [],
        [("TextDelta", "<fx<")],
        [],
        [],
        [("TagBegin", "<f=get>")],
        [("TagDelta", '{"a"')],
        [("TagDelta", ":1}")],
        [],
        [("TagEnd", "</f>"), ("TextDelta", "b")],
        [],
        [("TextDelta", "<f=")],
    ]


def test_excluded_text_is_not_held_back():
    grammar = Grammar.structural_tag({"type": "any_text", "excludes": ["abc"]})
    assert told(grammar, "a", "b") == [[("TextDelta", "a")], [("TextDelta", "b")], []]


def test_events_carry_their_tag():
    parser = CALLS.parser()
    begin, delta, end = parser.feed("<f=getter>{}</f>")
    assert isinstance(begin, TagBegin) and isinstance(delta, TagDelta) and isinstance(end, TagEnd)
    assert begin.name == delta.name == end.name == "getter"
    assert begin.tag is end.tag and begin.tag.begin == "<f=getter>"
    assert parser.complete and parser.open_tags == ()


def test_a_text_that_is_cut_leaves_its_tags_open():
    parser = CALLS.parser()
    parser.feed('<f=get>{"a": [1')
    assert parser.open_tags == ("get",) and not parser.complete
    assert parser.finish() == []


def test_nested_tags():
    inner = {"type": "tag", "name": "in", "begin": "(", "content": {"type": "any_text"}, "end": ")"}
    outer = {
        "type": "tag",
        "name": "out",
        "begin": "[",
        "content": {"type": "triggered_tags", "triggers": ["("], "tags": [inner]},
        "end": "]",
    }
    steps = told(Grammar.structural_tag(outer), "[a(b]c)d]")
    kinds = [
        ("TagBegin", "["),
        ("TagDelta", "a"),
        ("TagBegin", "("),
        ("TagDelta", "b]c"),
        ("TagEnd", ")"),
        ("TagDelta", "d"),
        ("TagEnd", "]"),
    ]
    assert steps == [kinds, []]


def test_of_two_readings_the_one_that_ends_the_tag_first_counts():
    content = {"type": "regex", "pattern": "[^]*"}
    tag = {"type": "tag", "begin": "<", "content": content, "end": ">"}
    grammar = Grammar.structural_tag({"type": "sequence", "elements": [tag, {"type": "any_text"}]})
    assert [step for step in told(grammar, "<a>", "b>c") if step] == [
        [("TagBegin", "<"), ("TagDelta", "a")],
        [("TagEnd", ">"), ("TextDelta", "b>c")],
    ]
    alone = Grammar.structural_tag(tag)
    assert told(alone, "<a>b>")[-1] == [("TagEnd", ">")]


def test_tags_with_the_same_begin_are_told_apart_by_what_follows():
    tags = [
        {"type": "tag", "name": word, "begin": "<", "content": {"type": "const_string", "value": word}, "end": ">"}
        for word in ("one", "own")
    ]
    parser = Grammar.structural_tag({"type": "or", "elements": tags}).parser()
    assert parser.feed("<o") == []
    begin, delta, _ = parser.feed("wn>")
    assert isinstance(begin, TagBegin) and begin.name == "own"
    assert isinstance(delta, TagDelta) and delta.text == "own"


def test_a_text_that_is_not_admitted():
    parser = CALLS.parser()
    with pytest.raises(OutputError) as caught:
        parser.feed("ab<f=x")
    assert caught.value.position == 5


def test_a_character_in_pieces_waits_for_its_end():
    parser = Grammar.structural_tag({"type": "any_text"}).parser()
    assert parser.feed("é") == [TextDelta(text="é")]
    with pytest.raises(ValueError, match="vocabulary"):
        parser.feed_tokens([1])


def test_a_long_text_takes_linear_steps():
    parser = CALLS.parser()
    piece = "free text, and then <f=get>" + '{"k": "' + "v" * 1000 + '"}</f>'
    events = [event for _ in range(200) for event in parser.feed(piece)]
    assert sum(len(event.text) for event in events) == 200 * len(piece)
    assert sum(isinstance(event, TagEnd) for event in events) == 200
