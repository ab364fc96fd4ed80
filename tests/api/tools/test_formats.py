"""Every format: what an answer may be, what is read from it however it is cut, and what the model could have written before."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import mask_of

from formcast import Vocabulary, compile_grammar
from formcast.api.answers.forms import AnswerForm, AnswerForms, Asked
from formcast.api.answers.reader import Answer, AnswerReader
from formcast.api.constraints import Constraint, of_schema
from formcast.api.tools.format import FramedFormat
from formcast.api.tools.formats import FORMATS, format_named, format_of_template
from formcast.api.tools.names import ALIASES, FORMAT_NAMES
from formcast.api.tools.tool import Tool, ToolChoice, ToolError
from formcast.grammar.structural_tag import JsonSchema, to_json
from formcast.grammar.structural_tag.bare_values import BARE_STYLES
from formcast.grammar.structural_tag.reader import read_tree
from formcast.grammar.structural_tag.spec import tokens_of, walk

# formats that write each argument apart: only those that a tool declares
COMPOSED = tuple(name for name, used in FORMATS.items() if hasattr(used, "style") or "pythonic" in name or name in ("olmo3", "lfm2"))
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
STOPPING = TOOLS[2]
# Texts and names of arguments that spell what formats are made of.
HOSTILE = Tool(
    name="get",
    strict=True,
    parameters={
        "type": "object",
        "properties": {
            "arguments": {"enum": ["", "\n", "</parameter>x", "</arg_value>", '"}', "<|call|>", '<|"|>', "null", "true", "\\", "[1]", ")", "```"]},
            "name": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}, {"type": "null"}]},
            "to": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[<{\"\n]*$"}}, "additionalProperties": False},
        },
        "required": ["arguments"],
        "additionalProperties": False,
    },
)
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


def plain(name: str, content: str) -> str:
    """An answer without calls, as the model writes it."""
    tool_format = FORMATS[name]
    return tool_format.written_content(content) if isinstance(tool_format, FramedFormat) else content


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
    for content in ("It is sunny.\n", "", "  a < b [1] {2}", '{"city": "Rome"}'):
        text = plain(name, content)
        assert used.grammar.accepts(text)
        assert not use(name, REQUIRED).grammar.accepts(text)
        for size in (1, 3, 100):
            assert read(used.reader(), text, [size]) == Answer(content=content or None)


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
    assert grammar.accepts(plain(name, '{"ok": true}')) and grammar.accepts(FORMATS[name].written_calls([TIME]))
    assert not grammar.accepts(plain(name, "It is sunny.")) and not grammar.accepts(plain(name, '{"ok": 1}'))
    assert read(used.reader(), plain(name, '{"ok": true}'), [1]) == Answer(content='{"ok": true}')
    assert calls_in(read(used.reader(), FORMATS[name].written_calls([TIME]), [1])) == [TIME]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in COMPOSED])
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


def test_arguments_are_read_as_their_schema_says():
    free = {
        "type": "object",
        "properties": {"s": {"type": "string"}, "n": {"type": ["integer", "string", "null"]}, "o": {"type": "object"}},
    }
    tools = [Tool(name="f", parameters=free, strict=True)]
    text = "<tool_call>\n<function=f>\n<parameter=s>\n{body}\n</parameter>\n</function>\n</tool_call>"
    for body, value in (("12", "12"), ("true", "true"), ('a "b" <c>\n', 'a "b" <c>\n'), ("", ""), ("\n", "\n"), ("</param", "</param")):
        answer = read(use("qwen3_coder", tools=tools).reader(), text.format(body=body), [1])
        assert answer.calls[0].parsed == {"s": value}
    mixed = text.replace("=s", "=n")
    for body, value in (("12", 12), ("null", None), ("12 days", "12 days"), ('"12"', "12"), ("nul", "nul")):
        used = use("qwen3_coder", REQUIRED, tools=tools)
        assert used.grammar.accepts(mixed.format(body=body))
        assert read(used.reader(), mixed.format(body=body), [2]).calls[0].parsed == {"n": value}
    assert not used.grammar.accepts(mixed.format(body="{1"))  # like JSON, and none
    assert not used.grammar.accepts(text.replace("=s", "=x"))
    compact = '<tool_call>\n<function=f><parameter=o>{"a": 1}</parameter></function>\n</tool_call>'
    assert read(used.reader(), compact, [1]).calls[0].arguments == '{"o": {"a": 1}}'


def test_constants_of_python():
    tools = [
        Tool(
            name="f",
            parameters={"type": "object", "properties": {"a": {"type": "boolean"}, "b": {}, "c": {"type": "integer"}}},
            strict=True,
        )
    ]
    used = use("llama4_pythonic", tools=tools)
    answer = read(used.reader(), "<|python_start|>[f(a=True, b=None), f(a=false, b=[true])]<|python_end|>", [3])
    assert calls_in(answer) == [("f", '{"a": true, "b": null}'), ("f", '{"a": false, "b": [true]}')]
    assert not used.grammar.accepts("[f(a=None)]") and not used.grammar.accepts("[f(c=True)]")


def test_ids_that_the_model_writes():
    kimi = FORMATS["kimi_k2"].written_calls([TIME, STOP])
    assert [call.call_id for call in read(use("kimi_k2").reader(), kimi, [4]).calls] == ["functions.get_time:0", "functions.stop:1"]
    twice = kimi.replace("stop:1", "get_time:0").replace("{}", TIME[1])
    assert len({call.call_id for call in read(use("kimi_k2").reader(), twice).calls}) == 2
    mistral = read(use("mistral_v11").reader(), "[TOOL_CALLS]stop[CALL_ID]aB3456789[ARGS]{}", [1])
    assert [call.call_id for call in mistral.calls] == ["aB3456789"]


_TEXTS = st.text(st.sampled_from("ab1 \n\t<>/{}[]\"'\\=,é漢😀"), max_size=12)
_RANDOM = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "unit": {"enum": ["c", "f"]},
        "items": {"type": "array", "items": {"type": "string"}},
        "inner": {"type": "object"},
    },
    "required": ["text"],
    "additionalProperties": False,
}
_VALUES = st.fixed_dictionaries(
    {"text": _TEXTS},
    optional={
        "number": st.integers(-9, 9) | st.sampled_from((0.5, 1e30)),
        "flag": st.booleans(),
        "unit": st.sampled_from("cf"),
        "items": st.lists(_TEXTS, max_size=2),
        "inner": st.dictionaries(_TEXTS, st.none() | _TEXTS, max_size=2),
    },
)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=5, deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=3), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_random_calls_are_read_back(name: str, values: list[Any], sizes: list[int]):
    used = use(name, REQUIRED, [Tool(name="act", parameters=_RANDOM, strict=True), STOPPING])
    ordered = [{key: value[key] for key in _RANDOM["properties"] if key in value} for value in values]
    text = FORMATS[name].written_calls([("act", json.dumps(value, ensure_ascii=False)) for value in ordered])
    assert used.grammar.accepts(text)
    answer = read(used.reader(), text, sizes)
    assert [(call.name, call.parsed) for call in answer.calls] == [("act", value) for value in ordered]
    assert calls_in(answer) == calls_in(read(used.reader(), text))


@pytest.mark.parametrize("name", FORMATS)
def test_whatever_the_masks_allow_is_a_call(name: str):
    """Walks along the masks: what comes out is a call that its tool takes, and is read alike however it is cut."""
    special = dict.fromkeys(token for tool_format in (FORMATS[name],) for token in _tokens_of(tool_format))
    pieces: list[bytes | None] = [
        None,
        *(None for _ in special),
        *(bytes((b,)) for b in range(256)),
        b"</",
        b">\n",
        b'"}',
        b'": "',
        b"</param",
    ]
    vocabulary = Vocabulary(pieces, [0], special_tokens={token: number for number, token in enumerate(special, 1)})
    tools = [*TOOLS, HOSTILE]
    used = Used(AnswerForms(FORMATS[name], vocabulary).form(Asked(tools=tools, choice=REQUIRED)))
    fsm = compile_grammar(used.grammar, vocabulary)
    rng = random.Random(name)
    for _ in range(3):
        cursor, tokens = fsm.cursor(), []
        while not cursor.finished and len(tokens) < 1500:
            allowed = sorted(mask_of(cursor))
            assert allowed, "a dead end"
            ends = 0 in allowed and len(tokens) > 40
            plain = [token for token in allowed if token < 1 + len(special) or token > 256 or 0x20 <= token - 1 - len(special) < 0x7F]
            token = 0 if ends else rng.choice([t for t in plain or allowed if t] or [0])
            assert cursor.advance(token)
            tokens.append(token)
        reader = used.reader()
        spelled = [vocabulary.spellings[token] or b"" for token in tokens if token]
        whole = read_tokens(reader, tokens, spelled, 10_000)
        assert whole == read_tokens(used.reader(), tokens, spelled, 1)
        if tokens[-1] == 0:
            assert whole
        by_name = {tool.name: tool for tool in tools}
        for call, complete in whole:
            if complete is not None:
                jsonschema.validate(complete, dict(by_name[call].schema))


def _tokens_of(tool_format: Any) -> list[str]:
    tree = tool_format.tree(TOOLS, REQUIRED)
    quotes = [BARE_STYLES[node.style].quote for node in walk(tree) if isinstance(node, JsonSchema) and node.style in BARE_STYLES]
    return [str(token.token) for token in (*quotes, *(token for node in walk(tree) for token in tokens_of(node)))]


def read_tokens(reader: AnswerReader, tokens: list[int], spelled: list[bytes], size: int) -> list[tuple[str, Any]]:
    """Names and parsed arguments, read `size` tokens at a time."""
    deltas = []
    if reader.needs_tokens:
        for at in range(0, len(tokens), size):
            deltas += reader.feed("", tokens[at : at + size])
    else:
        text = b"".join(spelled).decode(errors="ignore")
        for at in range(0, len(text), size):
            deltas += reader.feed(text[at : at + size], ())
    answer = Answer.of([*deltas, *reader.finish()])
    return [(call.name, call.parsed) for call in answer.calls]


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
        ("{{ tools }} [TOOL_CALLS] [ARGS]", "mistral_v13"),
        ("{{ tools }} [TOOL_CALLS] [CALL_ID] [ARGS]", "mistral_v11"),
        ("{{ tools }} <tool_call>\n<function=f>\n<parameter=x>", "qwen3_coder"),
        ("{{ tools }} <tool_call>{name}\n<arg_key>", "glm45"),
        ("{{ tools }} <minimax:tool_call>", "minimax_m2"),
        ("{{ tools }} <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json", "deepseek_v3"),  # noqa: RUF001
        ("{{ tools }} <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>", "deepseek_v31"),  # noqa: RUF001
        ("{{ tools }} <｜DSML｜function_calls>", "deepseek_v32"),  # noqa: RUF001
        ("{{ tools }} <｜DSML｜tool_calls>", "deepseek_v4"),  # noqa: RUF001
        ('{{ tools }} <｜tool_calls_begin｜><steptml:invoke name="f">', "step3"),  # noqa: RUF001
        ("{{ tools }} <tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>", "hy_v3"),
        ('{{ tools }} <function name="f"><param name="x">', "minicpm5"),
        ("{{ tools }} <|tool_call:start|>f\n<|tool_arg:start|>", "solar_open2"),
        ("{{ tools }} <|message_sep|>\n\nfunction call<|role_sep|>\n", "gigachat3"),
        ("{{ tools }} <|function_call|>", "gigachat31"),
        ("{{ tools }} <|tools_prefix|>[", "apertus"),
        ("{{ tools }} <|tool_call>call:{{ name }}", "gemma4"),
        ("{{ tools }} <start_function_call>call:{{ name }}", "functiongemma"),
        ("<|START_RESPONSE|> {{ tools }} <|START_ACTION|>", "cohere_command3"),
        ("<|START_TEXT|> {{ tools }} <|START_ACTION|>", "cohere_command4"),
        ("<|start|>assistant<|channel|>analysis<|message|>", "harmony"),
        ("{{ tools }} <|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>", "kimi_k2"),
        ('{{ tools }} {"name": function name, "parameters": dictionary}', "llama3_json"),
        ("{{ tools }} [func_name1(params_name1=params_value1)]", "pythonic"),
        ("{{ tools }}", "json"),
        ("{{ messages }} <tool_call>", "json"),
        (None, "json"),
    ],
)
def test_the_format_is_that_of_the_template(template: str | None, name: str):
    assert format_of_template(template).name == name


def test_names_are_those_of_formats():
    assert tuple(FORMATS) == FORMAT_NAMES
    assert format_named("qwen25").name == "hermes" and format_named("glm47").name == "glm45"
    assert set(ALIASES.values()) <= set(FORMAT_NAMES) and not set(ALIASES) & set(FORMAT_NAMES)
    assert format_named("mistral").name == "mistral"
    assert format_named("mistral", "[TOOL_CALLS]{{ name }}[ARGS]").name == "mistral_v13"
    with pytest.raises(ToolError, match="no tool call format 'qwem'"):
        format_named("qwem")


@pytest.mark.parametrize("name", FORMATS)
def test_trees_are_written_and_read_back(name: str):
    for choice in (AUTO, REQUIRED):
        written = to_json(FORMATS[name].tree(TOOLS, choice))
        assert to_json(read_tree(written)) == written


@pytest.mark.parametrize("name", FORMATS)
def test_instructions_name_the_tools_and_show_a_call(name: str):
    text = FORMATS[name].instructions(TOOLS)
    assert "get_weather" in text and json.dumps(ZONE) in text
    assert "name_of_the_function" in text
