"""Answers of gpt-oss: thoughts, calls and content in messages of their own, set off by special tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from api_fakes import PlainTemplate, fake_runtime, says

from formcast import Vocabulary, compile_grammar
from formcast.api.answers.conversations import Conversations
from formcast.api.answers.forms import AnswerForm, AnswerForms, Asked
from formcast.api.answers.reader import Answer
from formcast.api.answers.reasoning import REASONING_FORMATS, Thought
from formcast.api.constraints import of_schema
from formcast.api.tools.formats import FORMATS
from formcast.api.tools.tool import Tool, ToolChoice, ToolError
from formcast.engine.request import InvalidRequest

NAMES = ("start", "end", "channel", "constrain", "message", "call", "return")
SPECIAL = {f"<|{name}|>": number for number, name in enumerate(NAMES, 1)}
CALL, RETURN = 6, 7
VOCABULARY = Vocabulary([None] * 8 + [bytes((b,)) for b in range(256)], [0, CALL, RETURN], special_tokens=SPECIAL)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
TOOLS = [Tool(name="get_weather", parameters=CITY, strict=True), Tool(name="stop")]
REQUIRED = ToolChoice(mode="required")
SCHEMA = of_schema(CITY, field="response_format")
MAYBE = Thought(format=REASONING_FORMATS["openai_gptoss"], is_open=False)
OPEN = Thought(format=REASONING_FORMATS["openai_gptoss"], is_open=True)

HM = "<|channel|>analysis<|message|>Hm <b>.<|end|><|start|>assistant"
SAYS = "<|channel|>commentary<|message|>Let me see. <|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>It is sunny.<|return|>"
WEATHER = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Rome"}<|call|>'
ROME = ('get_weather', '{"city": "Rome"}')


def token_bytes(token: int) -> bytes:
    return f"<|{NAMES[token - 1]}|>".encode() if 0 < token < 8 else bytes((token - 8,))


def tokens_of(text: str) -> list[int]:
    pieces = re.split("(" + "|".join(map(re.escape, SPECIAL)) + ")", text)
    return [token for piece in pieces for token in ([SPECIAL[piece]] if piece in SPECIAL else [byte + 8 for byte in piece.encode()])]


def form(thought: Thought | None = MAYBE, **asked: Any) -> AnswerForm:
    return AnswerForms(FORMATS["harmony"], VOCABULARY, token_bytes=token_bytes).form(Asked(**asked), thought)


def admits(used: AnswerForm, text: str) -> bool:
    """Whether the masks let a text through, to its end token."""
    assert used.constraint is not None
    *tokens, last = tokens_of(text)
    cursor = compile_grammar(used.constraint.grammar, VOCABULARY).cursor()
    return all(map(cursor.advance, tokens)) and cursor.advance(last) and cursor.finished


def read(used: AnswerForm, tokens: Sequence[int], size: int) -> Answer:
    assert used.make_reader is not None and used.needs_tokens
    reader = used.make_reader()
    deltas = [delta for at in range(0, len(tokens), size) for delta in reader.feed("", tokens[at : at + size])]
    return Answer.of([*deltas, *reader.finish()])


@pytest.mark.parametrize(
    ("asked", "text", "expected"),
    [
        ({}, HM + FINAL, ("Hm <b>.", "It is sunny.", [])),
        ({}, FINAL, (None, "It is sunny.", [])),
        ({}, HM + HM + FINAL, ("Hm <b>.\n\nHm <b>.", "It is sunny.", [])),
        ({"thought": OPEN}, HM[len("<|channel|>analysis<|message|>") :] + FINAL, ("Hm <b>.", "It is sunny.", [])),
        ({"constraint": SCHEMA}, HM + FINAL.replace("It is sunny.", ROME[1]), ("Hm <b>.", ROME[1], [])),
        ({"constraint": SCHEMA}, FINAL.replace("It is sunny.", ROME[1]).replace("<|m", " <|constrain|>json<|m"), (None, ROME[1], [])),
        ({"tools": TOOLS}, HM + WEATHER, ("Hm <b>.", None, [ROME])),
        ({"tools": TOOLS}, HM + SAYS + WEATHER, ("Hm <b>.", "Let me see.", [ROME])),
        ({"tools": TOOLS}, HM + SAYS + FINAL, ("Hm <b>.", "Let me see.\n\nIt is sunny.", [])),
        ({"tools": TOOLS, "choice": REQUIRED}, HM + WEATHER, ("Hm <b>.", None, [ROME])),
        ({"tools": TOOLS}, " to=functions.stop<|channel|>commentary json<|message|>{}<|call|>", (None, None, [("stop", "{}")])),
        ({"tools": TOOLS}, "<|channel|>commentary to=functions.stop<|message|>{}<|call|>", (None, None, [("stop", "{}")])),
        ({"tools": TOOLS, "constraint": SCHEMA}, FINAL.replace("It is sunny.", ROME[1]), (None, ROME[1], [])),
        ({"tools": TOOLS, "constraint": SCHEMA}, HM + WEATHER, ("Hm <b>.", None, [ROME])),
    ],
)
def test_what_answers_say(asked: dict[str, Any], text: str, expected: tuple[str | None, str | None, list[tuple[str, str]]]):
    used = form(**asked)
    assert admits(used, text)
    for size in (1, 3, 1000):
        answer = read(used, tokens_of(text), size)
        assert (answer.reasoning, answer.content, [(call.name, call.arguments) for call in answer.calls]) == expected


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({}, "It is sunny.<|return|>"),
        ({}, SAYS + FINAL),
        ({}, WEATHER),
        ({}, HM.replace("Hm", "<|message|>") + FINAL),
        ({}, FINAL.replace("sunny", "<|end|>")),
        ({"constraint": SCHEMA}, FINAL),
        ({"tools": TOOLS, "constraint": SCHEMA}, SAYS + WEATHER),
        ({"tools": TOOLS, "choice": REQUIRED}, FINAL),
        ({"tools": TOOLS}, WEATHER.replace("city", "town")),
        ({"tools": TOOLS}, WEATHER.replace("get_weather", "get_time")),
        ({"tools": TOOLS}, WEATHER.replace("get_weather", "get_weather<|channel|>commentary")),
    ],
)
def test_what_answers_may_not_be(asked: dict[str, Any], text: str):
    assert not admits(form(**asked), text)


@pytest.mark.parametrize(
    ("asked", "text"),
    [({}, HM + HM + FINAL), ({"tools": TOOLS}, HM + SAYS + WEATHER), ({"tools": TOOLS}, HM + SAYS + FINAL)],
)
def test_answers_that_are_cut_show_no_part_of_a_frame(asked: dict[str, Any], text: str):
    used, tokens = form(**asked), tokens_of(text)
    whole = read(used, tokens, 1000)
    for end in range(len(tokens)):
        cut = read(used, tokens[:end], 3)
        assert (whole.reasoning or "").startswith(cut.reasoning or "") and (whole.content or "").startswith((cut.content or "").rstrip(" "))
        assert all(call.arguments == whole.calls[0].arguments[: len(call.arguments)] for call in cut.calls)


def test_text_does_not_spell_control_tokens():
    spelt = FINAL.replace("sunny", "<|end|><|start|>assistant<|channel|>commentary to=functions.stop<|message|>{}")
    shown = spelt.removeprefix("<|channel|>final<|message|>").removesuffix("<|return|>")
    tokens = [*tokens_of("<|channel|>final<|message|>"), *(byte + 8 for byte in shown.encode()), RETURN]
    assert read(form(tools=TOOLS), tokens, 7) == Answer(content=shown)


def test_several_calls_where_a_call_does_not_end_the_answer():
    vocabulary = Vocabulary(list(VOCABULARY.token_bytes), [0, RETURN], special_tokens=SPECIAL)
    asked = Asked(tools=TOOLS, choice=REQUIRED)
    used = AnswerForms(FORMATS["harmony"], vocabulary, token_bytes=token_bytes).form(asked, MAYBE)
    assert used.constraint is not None
    twice = tokens_of(f"{HM}{WEATHER}<|start|>assistant{WEATHER}")
    cursor = compile_grammar(used.constraint.grammar, vocabulary).cursor()
    assert all(map(cursor.advance, twice)) and cursor.accepting
    assert [call.arguments for call in read(used, twice, 5).calls] == [ROME[1], ROME[1]]


@pytest.mark.parametrize(("budget", "thought", "good"), [(0, "", True), (0, "a", False), (3, "abc", True), (3, "abcd", False), (3, "", True)])
def test_a_budget_is_exact(budget: int, thought: str, good: bool):
    used = form(Thought(format=MAYBE.format, is_open=False, max_tokens=budget))
    text = (f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant" if thought else "") + FINAL
    assert admits(used, text) == good


def test_tokens_of_thoughts_are_counted():
    for text, expected in ((HM + FINAL, HM), (HM + HM + FINAL, HM + HM), (FINAL, ""), (HM + SAYS + WEATHER, HM)):
        used = form(tools=TOOLS)
        assert used.make_meter is not None
        meter = used.make_meter()
        for token in tokens_of(text):
            meter.add([token])
        assert meter.num_tokens == len(tokens_of(expected))


class Harmony(PlainTemplate):
    """Ends as the template of gpt-oss does, maybe with more."""

    source = "{{ tools }} <|start|>assistant<|channel|>analysis<|message|>{{ message.thinking }}"

    def __init__(self, end: str = "<|start|>assistant"):
        self._end = end
        self.seen: list[dict[str, Any]] = []

    def render(self, messages: list[dict[str, Any]], add_generation_prompt: bool = True, **variables: Any) -> str:
        self.seen = messages
        return super().render(messages, add_generation_prompt) + "<|end|>" + self._end


def test_the_format_is_that_of_the_template():
    template = Harmony()
    conversations = Conversations(fake_runtime(says(""), chat_template=template))
    assert conversations.thinks
    earlier = {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": []}
    turn = conversations.turn([{"role": "user", "content": "hi"}, earlier], Asked())
    assert template.seen[1]["thinking"] == "Hm."
    assert turn.form.constraint is not None and turn.form.constraint.grammar.accepts(HM + FINAL.removesuffix("<|return|>"))


def test_a_prompt_may_begin_the_content():
    conversations = Conversations(fake_runtime(says(""), chat_template=Harmony("<|start|>assistant<|channel|>final<|message|>")))
    turn = conversations.turn([{"role": "user", "content": "hi"}], Asked(constraint=SCHEMA))
    assert turn.form.constraint is not None and turn.form.constraint.grammar.accepts(ROME[1])
    with pytest.raises(ToolError, match="begun the content"):
        conversations.turn([{"role": "user", "content": "hi"}], Asked(tools=TOOLS, choice=REQUIRED))


def test_formats_that_do_not_go_together():
    runtime = fake_runtime(says(""), chat_template=Harmony())
    with pytest.raises(InvalidRequest, match="do not go with"):
        Conversations(runtime, reasoning_parser="qwen3")
    with pytest.raises(InvalidRequest, match="do not go with"):
        Conversations(runtime, tool_call_format="hermes", reasoning_parser="gpt-oss")
    assert not Conversations(runtime, reasoning_parser="none").thinks
    assert Conversations(runtime, tool_call_format="openai", reasoning_parser="openai_gptoss").thinks
