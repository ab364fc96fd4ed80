"""Thoughts before answers: where they begin, what follows them, and what is said of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from api_fakes import PlainTemplate, fake_runtime, says

from formcast import Grammar, Vocabulary, compile_grammar
from formcast.api.answers.conversations import Conversations
from formcast.api.answers.forms import AnswerForm, AnswerForms, Asked
from formcast.api.answers.names import ALIASES, REASONING_NAMES
from formcast.api.answers.reader import Answer, AnswerReader
from formcast.api.answers.reasoning import REASONING_FORMATS, Thought, ThoughtMeter, reasoning_format, thought_after
from formcast.api.constraints import Constraint, of_regex, of_schema
from formcast.api.tools.formats import FORMATS
from formcast.api.tools.tool import Tool, ToolChoice
from formcast.engine.request import InvalidRequest

THINK = REASONING_FORMATS["qwen3"]
OPEN, MAYBE = Thought(format=THINK, is_open=True), Thought(format=THINK, is_open=False)
SCHEMA = of_schema(
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}, field="f"
)
STOP = Tool(name="stop", strict=True)
XML = {"type": "json_schema", "style": "qwen_xml"}
PARAMETERS = {"type": "object", "properties": {"q": {"type": "integer"}}}
MAYBE_OF = {
    "hermes": MAYBE,
    "cohere_command3": Thought(format=REASONING_FORMATS["cohere_command3"], is_open=False),
    "harmony": Thought(format=REASONING_FORMATS["openai_gptoss"], is_open=False),
}
CALL = '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'


def form(thought: Thought | None, **asked: Any) -> AnswerForm:
    return AnswerForms(FORMATS["hermes"]).form(Asked(**asked), thought)


def read(reader: AnswerReader, text: str, sizes: Sequence[int] = (1000,)) -> Answer:
    deltas, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        deltas += reader.feed(text[at : at + size], ())
        at, turn = at + size, turn + 1
    return Answer.of([*deltas, *reader.finish()])


def said(answer: Answer) -> tuple[str | None, str | None, list[str]]:
    return answer.reasoning, answer.content, [call.name for call in answer.calls]


@pytest.mark.parametrize(
    ("thought", "text", "expected"),
    [
        (MAYBE, "<think>\nHm, 1 < 2.\n</think>\n\nYes. \n", ("Hm, 1 < 2.", "Yes. \n", [])),
        (MAYBE, "<think>\n\n</think>\n\nYes.", (None, "Yes.", [])),
        (MAYBE, "Yes.", (None, "Yes.", [])),
        (MAYBE, "<thin> is no thought <think> either", (None, "<thin> is no thought <think> either", [])),
        (MAYBE, "<think>a</think>b <think>c</think>", ("a", "b <think>c</think>", [])),
        (MAYBE, "<think>cut </thi", ("cut </thi", None, [])),
        (OPEN, "\nHm </ think>\n</think>\n\nYes.", ("Hm </ think>", "Yes.", [])),
        (OPEN, "only a thought", ("only a thought", None, [])),
        (OPEN, "a</think>", ("a", None, [])),
    ],
)
def test_free_answers(thought: Thought, text: str, expected: tuple[str | None, str | None, list[str]]):
    used = form(thought)
    assert used.constraint is None and used.make_reader is not None, "a thought by itself binds nobody"
    rng = random.Random(len(text))
    for sizes in ([1], [2, 5], [rng.randint(1, 9) for _ in range(9)], [1000]):
        assert said(read(used.make_reader(), text, sizes)) == expected


@pytest.mark.parametrize(
    ("thought", "asked", "text", "expected"),
    [
        (MAYBE, {"constraint": SCHEMA}, '<think>\n{"a": no}\n</think>\n\n{"a": 1}', ('{"a": no}', '{"a": 1}', [])),
        (MAYBE, {"constraint": SCHEMA}, '{"a": 1}', (None, '{"a": 1}', [])),
        (OPEN, {"constraint": SCHEMA}, '{"a": 2}</think>{"a": 1}', ('{"a": 2}', '{"a": 1}', [])),
        (OPEN, {"constraint": of_regex(r"\n* a+", field="f")}, "x</think>\n aa", ("x", "\n aa", [])),
        (OPEN, {"tools": [STOP]}, f"I stop.\n</think>\n\n{CALL}", ("I stop.", None, ["stop"])),
        (MAYBE, {"tools": [STOP]}, f"<think>{CALL}</think>\n\nFine. {CALL}", (CALL, "Fine.", ["stop"])),
        (MAYBE, {"tools": [STOP]}, "Fine.", (None, "Fine.", [])),
        (MAYBE, {"tools": [STOP], "choice": ToolChoice(mode="required")}, f"<think>a</think>\n\n{CALL}", ("a", None, ["stop"])),
        (OPEN, {"tools": [STOP], "constraint": SCHEMA}, '</think>\n{"a": 3}', (None, '{"a": 3}', [])),
        (OPEN, {"tools": [STOP], "constraint": SCHEMA}, f"b</think>\n{CALL}", ("b", None, ["stop"])),
    ],
)
def test_bound_answers(thought: Thought, asked: dict[str, Any], text: str, expected: tuple[str | None, str | None, list[str]]):
    used = form(thought, **asked)
    assert used.constraint is not None and used.make_reader is not None
    assert used.constraint.grammar.accepts(text)
    for sizes in ([1], [3, 1, 4], [1000]):
        assert said(read(used.make_reader(), text, sizes)) == expected


@pytest.mark.parametrize(
    "text", ['{"a": 1}', 'x{"a": 1}</think>', 'x</think>{"a": 1.5}', "x</think>y", 'x</think>\n\n\n\n\n\n\n\n{"a": 1}']
)
def test_a_constraint_begins_with_the_end_of_the_thought(text: str):
    used = form(OPEN, constraint=SCHEMA)
    assert used.constraint is not None and not used.constraint.grammar.accepts(text)


TAGS = {
    "type": "triggered_tags",
    "triggers": ["<f="],
    "tags": [
        {"type": "tag", "name": "call:stop", "begin": "<f=x>", "content": {"type": "any_text"}, "end": "</f>"},
        {"type": "tag", "begin": "<f=y>", "content": {**XML, "json_schema": PARAMETERS}, "end": "</f>"},
    ],
}


@pytest.mark.parametrize("asked", [{}, {"tools": [STOP]}])
@pytest.mark.parametrize("name", ["hermes", "cohere_command3", "harmony"])
def test_tags_of_a_constraint_are_content(name: str, asked: dict[str, Any]):
    constraint = Constraint(grammar=Grammar.structural_tag(TAGS), field="f")
    used = AnswerForms(FORMATS[name]).form(Asked(constraint=constraint, **asked), None if name == "hermes" and asked else MAYBE_OF[name])
    assert used.constraint is not None and used.make_reader is not None
    content = "a <f=x>b <f=</f> c<f=y><parameter=q>1</parameter></f>"
    text = content if name == "hermes" else FORMATS[name].written_content(content)  # pyright: ignore[reportAttributeAccessIssue]
    assert used.constraint.grammar.accepts(text)
    for sizes in ([1], [3, 1, 4], [1000]):
        assert said(read(used.make_reader(), text, sizes)) == (None, content, [])


def _vocabulary(*more: bytes, **special: int) -> Vocabulary:
    pieces: list[bytes | None] = [None, None, None, *(bytes((b,)) for b in range(256)), *more]
    return Vocabulary(pieces, [0], special_tokens=special)


def test_a_token_may_hold_the_end_of_the_thought_and_what_follows():
    vocabulary = _vocabulary(b'.</think>{"a', b'.</think>{"b', b".</think>")
    used = AnswerForms(FORMATS["hermes"], vocabulary).form(Asked(constraint=SCHEMA), OPEN)
    assert used.constraint is not None
    cursor = compile_grammar(used.constraint.grammar, vocabulary).cursor()
    assert cursor.advance(3 + ord("x"))
    mark = cursor.fork()
    assert not mark.advance(3 + 257), "the same bytes in one token or in several"
    assert cursor.advance(3 + 256) and all(cursor.advance(3 + byte) for byte in b'": 1}') and cursor.accepting


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_a_budget_is_exact(budget: int):
    vocabulary = _vocabulary()
    thought = Thought(format=THINK, is_open=True, max_tokens=budget)
    used = AnswerForms(FORMATS["hermes"], vocabulary).form(Asked(), thought)
    assert used.constraint is not None, "a budget has to be kept"
    cursor = compile_grammar(used.constraint.grammar, vocabulary).cursor()
    for _ in range(budget):
        assert cursor.advance(3 + ord("x"))
    assert not cursor.fork().advance(3 + ord("x"))
    assert all(cursor.advance(3 + byte) for byte in b"</think>free") and cursor.accepting


def test_special_tokens_set_thoughts_off_where_the_vocabulary_has_them():
    vocabulary = _vocabulary(**{"[THINK]": 1, "[/THINK]": 2})
    thought = Thought(format=REASONING_FORMATS["mistral"], is_open=False)
    used = AnswerForms(FORMATS["mistral"], vocabulary).form(Asked(), thought)
    assert used.needs_tokens and used.constraint is not None and used.make_reader is not None
    tokens = [1, *(3 + byte for byte in b"a [/THINK] b"), 2, *(3 + byte for byte in b"\nYes.")]
    cursor = compile_grammar(used.constraint.grammar, vocabulary).cursor()
    assert all(cursor.advance(token) for token in tokens) and cursor.accepting
    reader = used.make_reader()
    deltas = [delta for token in tokens for delta in reader.feed("", [token])]
    assert said(Answer.of([*deltas, *reader.finish()])) == ("a [/THINK] b", "Yes.", [])


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("user: hi\nassistant:\n<think>\n", OPEN),
        ("user: hi\nassistant:\n<think>\n\n</think>\n\n", None),
        ("user: what is <think>?\nassistant:\n", MAYBE),
        ("user: </think>\nassistant:", MAYBE),
    ],
)
def test_what_a_prompt_says_of_the_thought(prompt: str, expected: Thought | None):
    assert thought_after(prompt, THINK, None) == expected


def test_thoughts_set_off_by_a_token_and_a_text():
    used = AnswerForms(FORMATS["gemma4"], _vocabulary(**{"<|channel>": 1, "<channel|>": 2})).form(
        Asked(constraint=SCHEMA), Thought(format=REASONING_FORMATS["gemma4"], is_open=False)
    )
    assert used.needs_tokens and used.constraint is not None and used.make_reader is not None
    tokens = [1, *(3 + byte for byte in b"thought\nHm <channel|>."), 2, *(3 + byte for byte in b'{"a": 1}')]
    cursor = compile_grammar(used.constraint.grammar, _vocabulary(**{"<|channel>": 1, "<channel|>": 2})).cursor()
    assert all(map(cursor.advance, tokens)) and cursor.accepting
    reader = used.make_reader()
    deltas = [delta for token in tokens for delta in reader.feed("", [token])]
    assert said(Answer.of([*deltas, *reader.finish()])) == ("Hm <channel|>.", '{"a": 1}', [])


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (None, "... '<think>' ... '</think>'", THINK),
        (None, "[THINK] [/THINK]", REASONING_FORMATS["mistral"]),
        (None, "only <think>", None),
        (None, None, None),
        ("none", "<think></think>", None),
        ("deepseek_r1", "", THINK),
        ("minimax_m2", "", THINK),
        (None, "{{ '<|channel>thought' }} <channel|>", REASONING_FORMATS["gemma4"]),
    ],
)
def test_the_format_of_a_template(name: str | None, source: str | None, expected: Any):
    assert reasoning_format(name, source, FORMATS["hermes"]) == expected
    with pytest.raises(InvalidRequest, match="qwen3"):
        reasoning_format("qwen4", source, FORMATS["hermes"])


def test_names_are_those_of_formats():
    assert tuple(REASONING_FORMATS) == REASONING_NAMES
    assert set(ALIASES.values()) <= set(REASONING_NAMES) and not set(ALIASES) & set(REASONING_NAMES)


@pytest.mark.parametrize(
    ("thought", "tokens", "expected"),
    [
        (OPEN, ["ab", "</th", "ink>x", "y"], 3),
        (OPEN, ["ab", "cd"], 2),
        (MAYBE, ["<th", "ink>", "a", "</think>", "b"], 4),
        (MAYBE, ["b", "<think>", "a"], 0),
        (MAYBE, ["<think>a</think>b"], 1),
    ],
)
def test_tokens_of_a_thought_are_counted(thought: Thought, tokens: list[str], expected: int):
    meter = ThoughtMeter(thought, lambda token: tokens[token].encode())
    for token in range(len(tokens)):
        meter.add([token])
    assert meter.num_tokens == expected


class Switching(PlainTemplate):
    """Thinks unless told otherwise, as Qwen 3 does."""

    source = "{% if enable_thinking %}<think></think>{% endif %}"

    def render(self, messages: list[dict[str, Any]], add_generation_prompt: bool = True, **variables: Any) -> str:
        end = "" if variables.get("enable_thinking", True) else "<think>\n\n</think>\n\n"
        return super().render(messages, add_generation_prompt) + end


def test_a_template_switches_thinking_off():
    conversations = Conversations(fake_runtime(says(""), chat_template=Switching()))
    talk = [{"role": "user", "content": "hi"}]
    assert conversations.switch(thinking=False) == {"enable_thinking": False}
    assert conversations.turn(talk, Asked(constraint=SCHEMA)).form.make_reader is not None
    off = conversations.turn(talk, Asked(constraint=SCHEMA), variables={"enable_thinking": False})
    assert off.form == AnswerForm(constraint=SCHEMA)
    with pytest.raises(InvalidRequest, match="negative"):
        conversations.turn(talk, Asked(), thinking_token_budget=-1)
    assert conversations.turn(talk, Asked(), thinking_token_budget=1 << 80).form.constraint is None
    plain = Conversations(fake_runtime(says("")))
    assert not plain.thinks and plain.switch(thinking=True) is None
    with pytest.raises(InvalidRequest, match="does not think"):
        plain.turn(talk, Asked(), thinking_token_budget=5)


def test_what_cannot_follow_a_thought_is_refused_by_name():
    from formcast.grammar.grammar import Grammar

    constraint = Constraint(grammar=Grammar.json_schema({}, separators=(",", ":")), field="schema")
    with pytest.raises(InvalidRequest, match="after a thought") as caught:
        form(OPEN, constraint=constraint)
    assert caught.value.param == "schema"
