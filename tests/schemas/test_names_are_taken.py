"""The name of a shipped schema or grammar stands for it wherever one is taken; the command line is tested with the others of its kind."""

from __future__ import annotations

from typing import Any

import pytest

from formcast import Grammar, GrammarError
from formcast.api import constraints
from formcast.api.openai.constraints import from_body, from_responses_body
from formcast.api.openai.errors import ApiError
from formcast.api.openai.protocol import ChatCompletionBody, CompletionBody
from formcast.api.openai.responses_body import ResponsesBody

MOOD = '{"sentiment": "mixed", "confidence": 0.5, "emotions": [], "evidence": []}'
SUM = "1 + 2 * 3"
MESSAGES = [{"role": "user", "content": "x"}]


def tag_text(content: dict[str, Any]) -> Grammar:
    return Grammar.structural_tag({"type": "tag", "begin": "<", "content": content, "end": ">"})


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (Grammar.json_schema("formcast:sentiment"), MOOD),
        (Grammar.lark("formcast:arithmetic"), SUM),
        (Grammar.gbnf("formcast:csv_row"), 'a,"b"'),
        (Grammar.ebnf("formcast:css_color"), "#fff"),
        (tag_text({"type": "json_schema", "json_schema": "formcast:sentiment"}), f"<{MOOD}>"),
        (tag_text({"type": "grammar", "grammar": "formcast:arithmetic", "notation": "lark"}), f"<{SUM}>"),
    ],
)
def test_grammars(grammar: Grammar, text: str):
    assert grammar.accepts(text) and not grammar.accepts(text + "x")


def test_python_arguments():
    for arguments, text in (
        ({"schema": "formcast:sentiment"}, MOOD),
        ({"grammar": "formcast:arithmetic"}, SUM),
        ({"grammar": "formcast:css_color"}, "#fff"),
    ):
        constraint = constraints.from_arguments(**arguments)
        assert constraint is not None and constraint.grammar.accepts(text)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": "formcast:sentiment"}}}, MOOD),
        ({"response_format": {"type": "grammar", "grammar": "formcast:css_color"}}, "#fff"),
        ({"structured_outputs": {"json": "formcast:sentiment"}}, MOOD),
        ({"structured_outputs": {"grammar": "formcast:css_color"}}, "#fff"),
        ({"guided_json": "formcast:sentiment"}, MOOD),
        ({"guided_grammar": "formcast:arithmetic"}, SUM),
        ({"json_schema": "formcast:sentiment"}, MOOD),
        ({"grammar": "formcast:arithmetic"}, SUM),
        ({"ebnf": "formcast:arithmetic"}, SUM),
    ],
)
def test_request_fields(fields: dict[str, Any], text: str):
    for body in (ChatCompletionBody(messages=MESSAGES, **fields), CompletionBody(prompt="x", **fields)):  # pyright: ignore[reportArgumentType]
        constraint = from_body(body)
        assert constraint is not None and constraint.grammar.accepts(text)


def test_responses():
    given: Any = {"format": {"type": "json_schema", "name": "x", "schema": "formcast:sentiment"}}
    constraint = from_responses_body(ResponsesBody(input="x", text=given))
    assert constraint is not None and constraint.grammar.accepts(MOOD)


def test_names_of_nothing():
    with pytest.raises(GrammarError, match="did you mean sentiment"):
        Grammar.json_schema("formcast:sentimnt")
    with pytest.raises(GrammarError, match="written in lark, not in gbnf"):
        Grammar.gbnf("formcast:arithmetic")
    with pytest.raises(ApiError, match="did you mean arithmetic"):
        from_body(CompletionBody(prompt="x", grammar="formcast:arithmetik"))
    with pytest.raises(GrammarError) as caught:
        tag_text({"type": "grammar", "grammar": "formcast:nothing"})
    assert caught.value.pointer == "/content/grammar"
