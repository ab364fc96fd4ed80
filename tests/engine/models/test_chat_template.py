"""Chat templates: transformers' text, whatever the template does within its budget, and a typed error beyond."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.utils.chat_template_utils import render_jinja_template

from formcast.engine.errors import ChatTemplateError
from formcast.engine.models.chat_template import ChatTemplate
from formcast.engine.models.template_budget import TemplateLimits

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
HEADERS = """{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system_message = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start|>system<|end|>" ~ system_message }}
{%- if tools is not none %}
    {{- "Functions:\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n" }}
    {%- endfor %}
{%- endif %}
{%- for message in messages %}
    {%- if message.tool_calls is defined and message.tool_calls %}
        {{- '{"name": "' + message.tool_calls[0].function.name + '", "parameters": ' }}
        {{- message.tool_calls[0].function.arguments | tojson ~ "}" }}
    {%- else %}
        {{- '<|start|>' + message['role'] + '<|end|>' + message['content'] | trim }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant<|end|>' }}{%- endif %}"""
NAMESPACED = """{%- set ns = namespace(last=-1, seen=0) %}
{%- for m in messages %}
    {%- if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}
    {%- if m.content is string and m.content.startswith('skip') %}{% continue %}{% endif %}
    {%- set ns.seen = ns.seen + 1 %}
    {%- if '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% endif %}
    {%- if ns.seen > 50 %}{% break %}{% endif %}
{{ loop.index }}/{{ loop.length }} {{ m.role | upper }}: {{ "%s (%d)" | format(m.content, m.content | length) }}
{% endfor %}
{%- macro show(x, depth=0) %}{{ "  " * depth }}{{ x }}{% endmacro %}
{{ show(ns.last, depth=2) }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ eos_token }}
    {% if extra is defined %}{{ extra }}{% endif %}
{% generation %}{{ messages | map(attribute='role') | join(', ') }}{% endgeneration %}"""

MESSAGES: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "hi"}],
    [{"role": "system", "content": " be brief "}, {"role": "user", "content": "é <b>&\"' \n 世界 🎉"}],
    [{"role": "user", "content": "skip me"}, {"role": "assistant", "content": "<think>x</think>\n\nyes"}, {"role": "user", "content": ""}],
]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"const": 1700000000}}}}}]
CALL = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, None, "ü"]}}}]}


def oracle(source: str, messages: list[dict[str, Any]], **variables: Any) -> str:
    rendered, _ = render_jinja_template([copy.deepcopy(messages)], chat_template=source, bos_token="<s>", eos_token="</s>", **variables)
    return rendered[0]


@pytest.mark.parametrize("source", [CHATML, HEADERS, NAMESPACED], ids=["chatml", "headers", "namespaced"])
@pytest.mark.parametrize("messages", MESSAGES)
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_the_text_is_transformers(source: str, messages: list[dict[str, Any]], add_generation_prompt: bool):
    text = ChatTemplate(source, "<s>", "</s>").render(messages, add_generation_prompt=add_generation_prompt)
    assert text == oracle(source, messages, add_generation_prompt=add_generation_prompt)


def test_tools_and_further_variables():
    messages = [*MESSAGES[1], CALL]
    assert ChatTemplate(HEADERS, "<s>", "</s>").render(messages, tools=TOOLS) == oracle(
        HEADERS, messages, tools=TOOLS, add_generation_prompt=True
    )
    text = ChatTemplate(NAMESPACED, "<s>", "</s>").render(MESSAGES[0], extra="more")
    assert text == oracle(NAMESPACED, MESSAGES[0], extra="more", add_generation_prompt=True)


@given(contents=st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_any_content(contents: list[str]):
    messages = [{"role": "user", "content": content} for content in contents]
    for source in (CHATML, HEADERS, NAMESPACED):
        assert ChatTemplate(source, "<s>", "</s>").render(messages) == oracle(source, messages, add_generation_prompt=True)


def test_arguments_are_not_changed():
    messages, tools = [*MESSAGES[1], CALL], copy.deepcopy(TOOLS)
    before = copy.deepcopy((messages, tools))
    ChatTemplate(HEADERS).render(messages, tools=tools)
    assert (messages, tools) == before


def test_a_template_is_safe_from_several_threads():
    template = ChatTemplate(NAMESPACED)
    expected = [template.render(messages) for messages in MESSAGES]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: template.render(MESSAGES[number % 3]), range(60)))
    assert results == [expected[number % 3] for number in range(60)]


def test_strftime_now_is_there():
    assert ChatTemplate("{{ strftime_now('%Y') | length }}").render([]) == "4"


def test_a_template_can_refuse():
    template = ChatTemplate("{% if messages|length > 1 %}{{ raise_exception('only one turn') }}{% endif %}ok")
    assert template.render([{}]) == "ok"
    with pytest.raises(ChatTemplateError, match="refused the messages: only one turn"):
        template.render([{}, {}])


@pytest.mark.parametrize(
    "source",
    ["{% if %}", "{{ 'open", "{% for x in y %}", "{{ x | no_such_filter }}", "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "{% endfor %}"],
)
def test_a_malformed_template(source: str):
    with pytest.raises(ChatTemplateError, match="malformed") as caught:
        ChatTemplate(source)
    assert "\n" not in str(caught.value)


def test_a_template_that_is_too_long():
    with pytest.raises(ChatTemplateError, match="at most 1000000"):
        ChatTemplate("x" * 1_000_001)


@pytest.mark.parametrize(
    "source",
    [
        "{{ undefined.attribute }}",
        "{{ 1 / 0 }}",
        "{{ messages[5].role.x }}",
        "{{ 'a' + 1 }}",
        "{% include 'other' %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ lipsum(3) }}",
    ],
)
def test_a_template_that_fails(source: str):
    with pytest.raises(ChatTemplateError, match="failed"):
        ChatTemplate(source).render([{}])


ESCAPES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(a=1) }}",
    "{{ messages[0].__init__.__globals__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ '{0.__class__.__mro__}'.format(1) }}",
    "{{ ''|attr('__class__') }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ self._TemplateReference__context }}",
    "{{ ('{0.' ~ '__class__}').format_map({'0': 1}) }}",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_the_sandbox_holds(source: str):
    messages = [{"role": "user"}]
    try:
        text = ChatTemplate(source).render(messages)
    except ChatTemplateError:
        text = ""
    assert "class" not in text
    assert "function" not in text
    assert messages == [{"role": "user"}]


DOUBLING = "{% set ns = namespace(s=S) %}{% for i in range(64) %}{% set ns.s = X %}{% endfor %}"
BOMBS = [
    "{% for i in range(10**9) %}x{% endfor %}",
    "{% for i in range(1000) %}{% for j in range(1000) %}{% for k in range(1000) %}{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in messages %}{% for i in 'x' * 900000 %}{% for j in 'x' * 900000 %}{% endfor %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}" + "static text " * 40_000 + "{% endfor %}",
    "{{ 'x' * 10**9 }}",
    "{{ [0] * 10**9 }}",
    "{{ ('x' * 10**6, ) * 1000 }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ 10 ** 30 }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '%999999999d' | format(1) }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:{w}}'.format(1, w=999999999) }}",
    "{{ 'x'.center(999999999) }}",
    "{{ 'x' | center(999999999) }}",
    "{{ 'x'.zfill(999999999) }}",
    "{{ '\t'.expandtabs(999999999) }}",
    "{{ '\n\n' | indent(999999999) }}",
    "{{ ('\n' * 10**6) | indent(9999) }}",
    "{{ messages | tojson(indent=999999999) }}",
    "{{ [1] | batch(999999999, 'x') | list }}",
    "{{ 1.5 | round(999999999) }}",
    "{{ ('a' * 10**6).replace('a', 'b' * 10**6) }}",
    "{{ ('a' * 10**6) | replace('a', 'b' * 10**6) }}",
    "{{ ('b' * 10**6).join(['a'] * 10**6) }}",
    "{{ (['a'] * 10**6) | join('b' * 10**6) }}",
    "{{ (['a' * 10**6] * 1000) | join }}",
    "{% for i in range(900000) %}{% if ('x' * 10**6) == ('x' * 10**6) %}{% endif %}{% endfor %}",
    "{% macro f(n) %}{{ f(n - 1) if n }}{{ f(n - 1) if n }}{% endmacro %}{{ f(60) }}",
    DOUBLING.replace("S", "'x'").replace("X", "ns.s ~ ns.s"),
    DOUBLING.replace("S", "'x'").replace("X", "ns.s + ns.s"),
    DOUBLING.replace("S", "'x'").replace("X", "ns.s | replace('x', 'xx')"),
    DOUBLING.replace("S", "[1]").replace("X", "ns.s + ns.s"),
    DOUBLING.replace("S", "[1]").replace("X", "[ns.s, ns.s]") + "{{ ns.s }}",
    DOUBLING.replace("S", "[1]").replace("X", "[ns.s, ns.s]") + "{{ ns.s | tojson }}",
    DOUBLING.replace("S", "[1]").replace("X", "[ns.s, ns.s]") + "{{ ns.s ~ '' }}",
    DOUBLING.replace("S", "[1]").replace("X", "dict(a=ns.s, b=ns.s)") + "{{ ns.s.items() }}",
    DOUBLING.replace("S", "[1]").replace("X", "[ns.s, ns.s]") + "{{ ns }}",
    "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
    "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set t %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = t %}{% endfor %}",
    "{{ strftime_now('%999999999d') }}",
]


@pytest.mark.parametrize("source", BOMBS)
def test_work_is_bounded(source: str):
    with pytest.raises(ChatTemplateError, match="chat template"):
        ChatTemplate(source).render([{"role": "user", "content": "x"}], tools=[])


def test_the_budget_grows_with_the_messages():
    limits = TemplateLimits(max_work_chars=1000)
    template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", limits=limits)
    assert len(template.render([{"content": "x" * 100_000}] * 3)) == 300_000


def test_a_long_conversation_fits_the_budget():
    messages = [{"role": "user", "content": "word " * 200}] * 2000
    assert len(ChatTemplate(CHATML).render(messages)) > 2_000_000


def test_deeply_nested_messages_are_an_error_not_a_crash():
    content: Any = []
    for _ in range(20_000):
        content = [content]
    with pytest.raises(ChatTemplateError, match="recursion"):
        ChatTemplate("{{ messages | tojson }}").render([{"content": content}])
