"""Every format: what an answer may be, what is read from it however it is cut, and what the model could have written before."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from formcast import Vocabulary, compile_grammar
from formcast.api.answers.forms import AnswerForm, AnswerForms, Asked
from formcast.api.answers.reader import Answer, AnswerReader
from formcast.api.constraints import Constraint, of_schema
from formcast.api.tools.formats import FORMATS, format_of_template
from formcast.api.tools.tool import Tool, ToolChoice, ToolError

CITY = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/name"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"name": {"type": "string", "maxLength": 8}},
}
ZONE = {
    "type": "object",
    "properties": {"zone": {"$ref": "#/$defs/name"}},
    "required": ["zone"],
    "additionalProperties": False,
    "$defs": {"name": {"enum": ["UTC", "CET"]}},
}
TOOLS = [
    Tool(name="get_weather", description="The weather", parameters=CITY, strict=True),
    Tool(name="get_time", parameters=ZONE, strict=True),
    Tool(name="stop"),
]
WEATHER = ("get_weather", '{"city": "Rome", "days": 3}')
TIME = ("get_time", '{"zone": "UTC"}')
STOP = ("stop", "{}")
AUTO, REQUIRED = ToolChoice(), ToolChoice(mode="required")


class Used:
    """The form of an answer, with what each test asks of it."""

    def __init__(self, form: AnswerForm):
        assert form.constraint is not None and form.make_reader is not None
        self.grammar = form.constraint.grammar
        self.reader = form.make_reader


def use(name: str, choice: ToolChoice = AUTO, tools: Sequence[Tool] = TOOLS, final: Constraint | None = None) -> Used:
    return Used(AnswerForms(FORMATS[name]).form(Asked(tools=tools, choice=choice, constraint=final)))


def read(reader: AnswerReader, text: str, sizes: Sequence[int] = (1000,)) -> Answer:
    deltas, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        deltas += reader.feed(text[at : at + size], ())
        at, turn = at + size, turn + 1
    return Answer.of([*deltas, *reader.finish()])


def calls_in(answer: Answer) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in answer.calls]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", [[WEATHER], [STOP], [WEATHER, TIME], [STOP, WEATHER, STOP]])
@pytest.mark.parametrize("choice", [AUTO, REQUIRED])
def test_what_is_written_is_admitted_and_read_back(name: str, calls: list[tuple[str, str]], choice: ToolChoice):
    used = use(name, choice)
    text = FORMATS[name].written_calls(calls)
    assert used.grammar.accepts(text)
    rng = random.Random(len(text))
    for sizes in ([1], [2, 5], [rng.randint(1, 9) for _ in range(20)], [1000]):
        answer = read(used.reader(), text, sizes)
        assert answer.content is None
        assert calls_in(answer) == calls
    assert len({call.call_id for call in answer.calls}) == len(calls)


@pytest.mark.parametrize("name", FORMATS)
def test_a_plain_answer_is_content(name: str):
    used = use(name)
    for text in ("It is sunny.\n", "", "  a < b [1] {2}", '{"city": "Rome"}'):
        assert used.grammar.accepts(text)
        assert not use(name, REQUIRED).grammar.accepts(text)
        for size in (1, 3, 100):
            assert read(used.reader(), text, [size]) == Answer(content=text or None)


@pytest.mark.parametrize("name", ["hermes", "function"])
def test_text_around_calls(name: str):
    used = use(name)
    written = FORMATS[name].written_calls([STOP, TIME])
    answer = read(used.reader(), f"I look it up. \n\n{written}\n", [3])
    assert answer.content == "I look it up."
    assert calls_in(answer) == [STOP, TIME]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "bad",
    [
        ("get_weather", '{"city": "a much too long name"}'),
        ("get_weather", "{}"),
        ("get_time", '{"zone": "Rome"}'),
        ("stop", '{"now": true}'),
        ("unknown", "{}"),
    ],
)
def test_calls_that_do_not_obey_their_tool(name: str, bad: tuple[str, str]):
    text = FORMATS[name].written_calls([bad])
    assert not use(name, REQUIRED).grammar.accepts(text)
    if bad[0] != "unknown":
        assert not use(name).grammar.accepts(text)


@pytest.mark.parametrize("name", FORMATS)
def test_choices(name: str):
    written = FORMATS[name].written_calls
    named = use(name, ToolChoice(mode="required", name="get_time")).grammar
    assert named.accepts(written([TIME]))
    assert not named.accepts(written([STOP])) and not named.accepts(written([TIME, TIME]))
    for mode in ("auto", "required"):
        single = use(name, ToolChoice(mode=mode, parallel=False)).grammar
        assert single.accepts(written([TIME]))
        assert not single.accepts(written([TIME, STOP]))


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_is_a_call_or_the_final_schema(name: str):
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    final = of_schema(schema, field="response_format")
    used = use(name, final=final)
    grammar = used.grammar
    assert grammar.accepts('{"ok": true}') and grammar.accepts(FORMATS[name].written_calls([TIME]))
    assert not grammar.accepts("It is sunny.") and not grammar.accepts('{"ok": 1}')
    assert read(used.reader(), '{"ok": true}', [1]) == Answer(content='{"ok": true}')
    assert calls_in(read(used.reader(), FORMATS[name].written_calls([TIME]), [1])) == [TIME]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "pythonic"])
def test_a_tool_that_is_not_strict_takes_any_object(name: str):
    loose = [Tool(name="get_weather", parameters=CITY)]
    grammar = use(name, REQUIRED, loose).grammar
    assert grammar.accepts(FORMATS[name].written_calls([("get_weather", '{"x": [1]}')]))
    assert not grammar.accepts(FORMATS[name].written_calls([("get_weather", "[1]")]))


def test_arguments_of_pythonic_calls_are_composed():
    used = use("pythonic")
    answer = read(used.reader(), '[get_weather(city="a, b=)]", days=2), stop()]', [1])
    assert calls_in(answer) == [("get_weather", '{"city": "a, b=)]", "days": 2}'), STOP]
    optional = Tool(name="f", strict=True, parameters={"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"]})
    grammar = use("pythonic", REQUIRED, [optional]).grammar
    assert all(grammar.accepts(f"[f({given})]") for given in ("b=1", "a=1, b=2", "b=1, c=[]", 'a=null, b="", c={"x": 1}'))
    assert not any(grammar.accepts(f"[f({given})]") for given in ("", "a=1", "b=1, a=1", "b=1,c=2", "a=1, c=1"))


def test_a_token_begins_calls_where_the_vocabulary_has_one():
    pieces: list[bytes | None] = [None, None, *(bytes((b,)) for b in range(256))]
    for name, token in (("mistral", "[TOOL_CALLS]"), ("llama3_json", "<|python_tag|>")):
        vocabulary = Vocabulary(pieces, [0], special_tokens={token: 1})
        used = Used(AnswerForms(FORMATS[name], vocabulary).form(Asked(tools=TOOLS)))
        text = FORMATS[name].written_calls([TIME, WEATHER]).removeprefix("[TOOL_CALLS]")
        tokens = [1, *(byte + 2 for byte in text.encode())]
        cursor = compile_grammar(used.grammar, vocabulary).cursor()
        assert all(cursor.advance(token) for token in tokens) and cursor.accepting
        reader = used.reader()
        deltas = [delta for token in (*tokens, 0) for delta in reader.feed("", [token])]
        assert calls_in(Answer.of([*deltas, *reader.finish()])) == [TIME, WEATHER]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Tool(name=""), "tools.name"),
        (lambda: Tool(name="a b", field="tools[1].function"), "tools[1].function.name"),
        (lambda: use("hermes", tools=[Tool(name="a"), Tool(name="a")]), "tools.name"),
        (lambda: use("hermes", ToolChoice(mode="required", name="b")), "tool_choice"),
        (lambda: use("hermes", tools=[Tool(name="a", strict=True, parameters={"properties": 3})]), "tools.parameters"),
        (lambda: use("pythonic", tools=[Tool(name="a-b")]), "tools.name"),
        (lambda: use("pythonic", tools=[Tool(name="a", strict=True, parameters={"minProperties": 1})]), "tools.parameters"),
    ],
)
def test_tools_that_cannot_be_served(make: Any, field: str):
    with pytest.raises(ToolError) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{% if tools %}<tool_call>{% endif %}", "hermes"),
        ("{{ tools }} [TOOL_CALLS]", "mistral"),
        ("{{ tools }} <function=", "function"),
        ('{{ tools }} {"name": function name, "parameters": dictionary}', "llama3_json"),
        ("{{ tools }} [func_name1(params_name1=params_value1)]", "pythonic"),
        ("{{ tools }}", "json"),
        ("{{ messages }} <tool_call>", "json"),
        (None, "json"),
    ],
)
def test_the_format_is_that_of_the_template(template: str | None, name: str):
    assert format_of_template(template).name == name


@pytest.mark.parametrize("name", FORMATS)
def test_instructions_name_the_tools_and_show_a_call(name: str):
    text = FORMATS[name].instructions(TOOLS)
    assert "get_weather" in text and json.dumps(ZONE) in text
    assert "name_of_the_function" in text
