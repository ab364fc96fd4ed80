"""Items that must differ inside structural tags: each tag is read by itself, whatever stands around it."""

from __future__ import annotations

from typing import Any

import pytest

from formcast import Grammar, LimitError
from formcast.grammar.errors import OutputError

ITEMS = {"type": "array", "uniqueItems": True, "items": {"type": ["object", "number"]}}


def tag(begin: str, end: str) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": {"type": "json_schema", "json_schema": ITEMS}, "end": end}


CALLS = Grammar.structural_tag({"type": "triggered_tags", "triggers": ["<f>"], "tags": [tag("<f>", "</f>")]})


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("<f>[1,2]</f>", True),
        ("<f>[1,1.0]</f>", False),
        ("[1,1] <f>[1,2]</f> [1,1", True),
        ('<f>[{"a":1}]</f> "x [{ <f>[{"a":1},{"a":2},3]</f>', True),
        ('<f>[{"a":1}]</f> "x [{ <f>[{"a":1},{"a":1}]</f>', False),
        ("<f>[]</f>]]} <f>[1,2,1]</f>", False),
        ("<f>[1]</f><f>[1]</f>", True),
    ],
)
def test_each_tag_is_read_by_itself(text: str, valid: bool) -> None:
    assert CALLS.accepts(text) is valid
    for pieces in ([text], list(text), [text[i : i + 3] for i in range(0, len(text), 3)]):
        parser = CALLS.parser()
        try:
            for piece in pieces:
                parser.feed(piece)
            parser.finish()
            told = True
        except OutputError:
            told = False
        assert told is valid, pieces


def test_texts_that_are_read_in_two_ways_are_exact_or_refused() -> None:
    either = {"type": "or", "elements": [{"type": "json_schema", "json_schema": ITEMS}, {"type": "sequence", "elements": [{"type": "regex", "pattern": '[^<]*'}, tag("<", ">")]}]}  # fmt: skip
    grammar = Grammar.structural_tag(either)
    assert grammar.accepts("[1,2]")
    assert not grammar.accepts("[1,1]")
    assert grammar.accepts("[1,x<[1,2]>")
    assert not grammar.accepts("[1,x<[1,1]>")
    assert grammar.accepts('[1,"<[1,2]>')  # the first reading has no items that are compared inside the string
    nested = {**ITEMS, "items": {"type": ["string", "array"], "items": ITEMS}}
    quoted = {"type": "tag", "begin": '["', "content": {"type": "json_schema", "json_schema": ITEMS}, "end": '"]'}
    grammar = Grammar.structural_tag({"type": "or", "elements": [{"type": "json_schema", "json_schema": nested}, quoted]})
    with pytest.raises(LimitError, match="two ways"):
        grammar.accepts('["[1,1]"]')
