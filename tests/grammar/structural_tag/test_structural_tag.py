"""What each part of a tree admits, which input is refused and where, and what explains it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from formcast import Grammar, GrammarError
from formcast.grammar import structural_tag as st

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def free(**more: Any) -> dict[str, Any]:
    return {"type": "any_text", **more}


def schema(of: Any = CITY) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": of}


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer"}, "tags": {"type": "array"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def text(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def calls(**more: Any) -> dict[str, Any]:
    tags = [tag("<f=get>", schema(), "</f>"), tag("<f=now>", schema({"enum": [{}]}), "</f>")]
    return {"type": "triggered_tags", "triggers": ["<f="], "tags": tags, **more}


GET, NOW = '<f=get>{"city": "Rome"}</f>', "<f=now>{}</f>"
OLD = {
    "type": "structural_tag",
    "structures": [{"begin": "<f=get>", "schema": CITY, "end": "</f>"}],
    "triggers": ["<f="],
}

TABLE: list[tuple[str, Any, list[str], list[str]]] = [
    ("text", text("hé"), ["hé"], ["", "h", "hé!"]),
    ("free text", free(), ["", "any\n<f=x é"], []),
    ("excludes", free(excludes=["ab", "aé"]), ["", "a", "aab"[:2], "ba", "é"], ["ab", "aab", "xaé"]),
    ("regex", {"type": "regex", "pattern": "a+|b"}, ["a", "aa", "b"], ["", "ab"]),
    ("regex without", {"type": "regex", "pattern": "[ab]+", "excludes": ["ab", "bb"]}, ["a", "baa"], ["ab", "aabb", ""]),
    ("few spaces", {**schema(), "max_whitespace_cnt": 2}, ['{"city":  "Rome"\n}'], ['{"city":   "Rome"}']),
    ("boundary of pieces", tag({"type": "sequence", "elements": [text("<"), text("a>")]}, free(), ">"), ["<a>x>"], ["<a", "a>x>"]),
    ("python regex", {"type": "regex", "pattern": r"\Aa\Z", "dialect": "python"}, ["a"], ["aa"]),
    ("ebnf", {"type": "grammar", "grammar": 'root ::= "(" root ")" | "x"'}, ["x", "((x))"], ["", "(x"]),
    ("lark", {"type": "grammar", "grammar": "start: NUM\nNUM: /[0-9]+/", "notation": "lark"}, ["12"], ["", "x"]),
    ("gbnf from a rule", {"type": "grammar", "grammar": 'r ::= "a"+', "notation": "gbnf", "start": "r"}, ["aa"], [""]),
    ("schema", schema(), ['{"city": "x"}', ' {"city":""}'], ["", "{}", '{"city": "x"} ']),
    ("sequence", {"type": "sequence", "elements": [text("a"), free(), text("b")]}, ["ab", "a..b", "abb"], ["a", "b", "ba"]),
    ("or", {"type": "or", "elements": [text("a"), tag("<", text("b"), ">"), text("")]}, ["a", "<b>", ""], ["b", "a<b>"]),
    ("optional", {"type": "optional", "content": text("a")}, ["", "a"], ["aa"]),
    ("repeat", {"type": "repeat", "content": text("ab"), "min": 1, "max": 2}, ["ab", "abab"], ["", "aba", "ababab"]),
    ("parameters", {"type": "json_schema", "json_schema": PERSON, "style": "qwen_xml"}, ["<parameter=name>Bob</parameter><parameter=age>100</parameter>", "\n<parameter=name>\nBob\n</parameter>\n<parameter=age>\n100\n</parameter>\n", "<parameter=name>a<b></parameter><parameter=age>1</parameter><parameter=tags>[]</parameter>"], ["<parameter=name>Bob</parameter>", "<parameter=age>1</parameter><parameter=name>Bob</parameter>", "<parameter=name>Bob</parameter><parameter=age>old</parameter>", "<parameter=name>too long</parameter><parameter=age>1</parameter>"]),
    ("qwen_xml_parameter", {"type": "qwen_xml_parameter", "json_schema": {"properties": {"a": {"enum": ["x", 1]}}}}, ["", "<parameter=a>x</parameter>", "<parameter=a>\n1\n</parameter>", '<parameter=a>"x"</parameter>'], ["<parameter=a>y</parameter>", "<parameter=a></parameter>", "<parameter=b>x</parameter>"]),
    ("glm parameters", {"type": "json_schema", "json_schema": PERSON, "style": "glm_xml"}, ["<arg_key>name</arg_key><arg_value>Bob</arg_value>\n<arg_key>age</arg_key>\n<arg_value>1</arg_value>"], ["<arg_key>name</arg_key><arg_value>Bob</arg_value>"]),
    ("ways to be an object", {"type": "json_schema", "json_schema": {"oneOf": [{"required": ["a"], "properties": {"a": {"const": 1}}}, {"required": ["a"], "properties": {"a": {"const": 2}, "b": {}}}]}, "style": "minimax_xml"}, ['<parameter name="a">1</parameter>', '<parameter name="a">2</parameter><parameter name="b">x</parameter>'], ['<parameter name="a">3</parameter>', '<parameter name="a">1</parameter><parameter name="b">x</parameter>']),
    ("a bounded text", {"type": "any_text", "max_chars": 2, "excludes": ["ab"]}, ["", "é😀", "ba"], ["ab", "abc", "bbb"]),
    ("a bounded text in a tag", tag("<", {"type": "any_text", "max_chars": 3}, [">>", "</>"]), ["<abc>>", "<abc</>", "<>>", "<a>b>>"], ["<abcd>>", "<abc>", "<>>>>"]),
    ("repeat of nothing", {"type": "star", "content": text("")}, [""], ["a"]),
    ("repeat of what may be empty", {"type": "repeat", "content": {"type": "regex", "pattern": "a*b?"}, "min": 2, "max": 3}, ["", "abb", "babab"], ["bbbb", "c"]),
    ("star of optional parts", {"type": "star", "content": {"type": "sequence", "elements": [{"type": "optional", "content": text("a")}, {"type": "grammar", "grammar": 'root ::= "b"*'}]}}, ["", "a", "bbaab"], ["c"]),
    ("open repeat", {"type": "repeat", "content": text("a"), "min": 2, "max": -1}, ["aa", "aaaaa"], ["a"]),
    ("star", {"type": "star", "content": text("a")}, ["", "aaa"], ["b"]),
    ("plus", {"type": "plus", "content": text("a")}, ["a", "aaa"], [""]),
    ("tag", tag("<t>", free(), "</t>"), ["<t></t>", "<t><t>x</</t>"], ["<t>", "<t></t></t>", "<t></t>x"]),
    ("ends", tag("<t>", free(), ["</t>", "!"]), ["<t>a!", "<t>a</t>"], ["<t>a!</t>", "<t>a</t>!"]),
    ("excluded end", tag("<t>", free(excludes=["</t>", "x"]), "</t>"), ["<t>a</t>"], ["<t>x</t>"]),
    ("no end", tag("<t>", text("a"), ""), ["<t>a"], ["<t>", "<t>a "]),
    ("tag at the end of a tag", tag("<t>", {"type": "sequence", "elements": [text("a"), free()]}, ">"), ["<t>ab>"], ["<t>ab>>", "<t>b>"]),
    ("triggered", calls(), ["", "a", "<f", f"{GET}", f"a{NOW}b{GET}<", f"<{NOW}"], ["<f=", "<f=get>{}</f>", f"{GET[:-1]}"]),
    ("at least one", calls(at_least_one=True), [GET, f"{NOW}x{GET}y"], ["", "a", f"a{GET}"]),
    ("text before", calls(at_least_one=True, text_before=True), [GET, f"a{GET}b"], ["", "a", "<f="]),
    ("one at most", calls(stop_after_first=True), ["", "a", f"a{GET}"], [f"{GET} ", f"{GET}{NOW}"]),
    ("just one", calls(at_least_one=True, stop_after_first=True), [GET, NOW], ["", f"a{GET}", f"{GET}{NOW}"]),
    ("triggered excludes", calls(excludes=["bad"]), ["ba", f"{NOW}ba"], ["bad", f"{NOW}a bad"]),
    ("calls in a tag", tag("[", calls(), "]"), ["[]", f"[a{GET}b{NOW}]"], [f"[{GET}", f"[{GET}]]"]),
    ("separator", {"type": "tags_with_separator", "tags": calls()["tags"], "separator": ","}, ["", NOW, f"{NOW},{GET}"], [f"{NOW},", f"{NOW}{GET}"]),
    (
        "separated, at least one",
        {"type": "tags_with_separator", "tags": calls()["tags"], "separator": "\n", "at_least_one": True, "stop_after_first": True},
        [NOW, GET],
        ["", f"{NOW}\n{GET}"],
    ),
    ("dispatch", {"type": "dispatch", "rules": [["<a>", text("x")], ["<b>", text("y")]]}, ["", "<a>xz<b>y"], ["<a>", "<a>y"]),
    ("dispatch once", {"type": "dispatch", "rules": [["<a>", text("x")]], "loop": False}, ["z<a>x"], ["<a>x<a>x", "<a>xz"]),
    ("old form", OLD, ["", f"a{GET}b"], ["<f=", NOW]),
    ("new form", {"type": "structural_tag", "format": calls()}, ["", f"a{GET}b{NOW}"], ["<f="]),
    (
        "a begin that begins another",
        {"type": "triggered_tags", "triggers": ["<a"], "tags": [tag("<a", text("x"), ">"), tag("<ab", text("y"), ">")]},
        ["<ax>", "<aby>"],
        ["<ay>", "<abx>"],
    ),
    (
        "the same begin",
        {"type": "triggered_tags", "triggers": ["<a>"], "tags": [tag("<a>", text("xy"), ">"), tag("<a>", text("xz"), ">")]},
        ["<a>xy>", "<a>xz>"],
        ["<a>x>"],
    ),
    (
        "two triggers",
        {"type": "triggered_tags", "triggers": ["ab", "bc"], "tags": [tag("ab1", text(""), "."), tag("bc2", text(""), ".")]},
        ["xab1.", "xbc2.", "b"],
        ["abc2."],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "good", "bad"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_is_admitted(spec: Any, good: list[str], bad: list[str]):
    for grammar in (Grammar.structural_tag(spec), Grammar.structural_tag(json.dumps(spec))):
        assert [t for t in good if not grammar.accepts(t)] == []
        assert [t for t in bad if grammar.accepts(t)] == []


@pytest.mark.parametrize("spec", [row[1] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_tree_survives_json(spec: Any):
    tree = Grammar.structural_tag(spec).tree
    assert Grammar.structural_tag(tree).tree == tree
    assert Grammar.structural_tag({"type": "structural_tag", "format": st.to_json(tree)}).tree == tree


REFUSED: list[tuple[Any, str, str]] = [
    ("[", "", "not JSON"),
    ([], "", "an object"),
    ({}, "", "'type' is missing"),
    ({"type": "texte"}, "/type", "no part of type 'texte'"),
    ({"type": "structural_tag"}, "", "'format' is missing"),
    ({"type": "structural_tag", "format": free(), "triggers": []}, "/triggers", "no field 'triggers'"),
    ({"type": "structural_tag", "format": {"type": "const_string"}}, "/format", "'value' is missing"),
    ({"type": "const_string", "value": 3}, "/value", "a text, not a number"),
    ({"type": "const_string", "value": "\ud800"}, "/value", "surrogate"),
    (free(max_tokens=-1), "/max_tokens", "whole number"),
    (free(max_tokens=True), "/max_tokens", "whole number"),
    ({"type": "any_text", "max_chars": 3, "max_tokens": 2}, "/max_chars", "not in both"),
    (free(excludes=[""]), "/excludes/0", "empty"),
    (free(exclude=["a"]), "/exclude", "no field"),
    ({"type": "sequence", "elements": []}, "/elements", "at least one"),
    ({"type": "or", "elements": [text("a"), {**schema(), "excludes": ["x"]}]}, "/elements/1/excludes", "not supported"),
    ({**schema(), "max_whitespace_cnt": 1, "whitespace": "compact"}, "/max_whitespace_cnt", "says all"),
    (tag({"type": "sequence", "elements": [text("a"), free()]}, text("b"), "c"), "/begin/elements/1", "a boundary is"),
    ({"type": "repeat", "content": text("a"), "min": 3, "max": 2}, "/max", "less than"),
    ({"type": "star", "content": tag("", {"type": "optional", "content": text("a")}, "")}, "/content", "may be empty"),
    ({"type": "plus", "content": {"type": "triggered_tags", "triggers": ["<"], "tags": [tag("<a", text("b"), ">")]}}, "/content", "goes on by itself"),
    ({"type": "star", "content": {"type": "any_text", "max_tokens": 3}}, "/content", "tokens matter"),
    ({"type": "regex", "pattern": "(a"}, "/pattern", ""),
    ({"type": "regex", "pattern": "[^\\s\\S]"}, "/pattern", "no text"),
    ({"type": "regex", "pattern": "a", "dialect": "perl"}, "/dialect", "perl"),
    ({"type": "grammar", "grammar": "root ::= x"}, "/grammar", "x"),
    ({"type": "grammar", "grammar": 'root ::= "a" root'}, "/grammar", "never ends"),
    ({"type": "json_schema", "json_schema": {"type": "objekt"}}, "/json_schema/type", ""),
    ({"type": "json_schema", "json_schema": {"allOf": [{"type": "string"}, {"type": "null"}]}}, "/json_schema", "no finite value"),
    ({"type": "json_schema", "json_schema": True, "style": "cohere_xml"}, "/style", "no option"),
    ({"type": "json_schema", "json_schema": True, "style": "qwen_xml", "any_order": True}, "/any_order", "keeps the order"),
    ({"type": "json_schema", "json_schema": {"type": "string"}, "style": "qwen_xml"}, "/json_schema", "members of an object"),
    ({"type": "json_schema", "json_schema": {"minProperties": 1, "properties": {"a": {}}}, "style": "glm_xml"}, "/json_schema", "count members"),
    ({"type": "json_schema", "json_schema": {"dependentRequired": {"a": ["b"]}}, "style": "qwen_xml"}, "/json_schema", "depend on each other"),
    ({"type": "json_schema", "json_schema": {"properties": {"a>b": {}}}, "style": "minimax_xml"}, "/json_schema", "the name 'a>b'"),
    ({"type": "json_schema", "json_schema": {"required": ["a"], "properties": {"a": {"const": "</parameter>"}}}, "style": "qwen_xml"}, "/json_schema", "no finite value"),
    (tag("<t>", text("a"), 3), "/end", "a text or a token"),
    (calls(triggers=["<f", "<g"]), "/triggers/1", "no tag begins"),
    (calls(triggers=["<f=get"]), "/tags/1/begin", "no trigger"),
    (calls(triggers=["<f=", ""]), "/triggers/1", "empty"),
    (calls(tags=[]), "/tags", "at least one"),
    (calls(tags=[text("a")]), "/tags/0", "a tag"),
    (calls(excludes=["<"]), "/tags/0/begin", "never begin"),
    ({"type": "triggered_tags", "triggers": ["<ab>", "b"], "tags": [tag("<ab>", free(), "."), tag("b", free(), ".")]}, "/tags/0/begin", "never begin"),
    (tag("[", calls(), "<f="), "/content/triggers", "the end of the tag"),
    (tag("[", free(excludes=["</"]), "</t>"), "/end", "never reach"),
    ({"type": "sequence", "elements": [schema(), schema() | {"whitespace": "any"}]}, "/elements/1/whitespace", "same whitespace"),
    ({**OLD, "structures": [{"begin": "<f=get>", "schema": {"type": 3}, "end": ""}]}, "/structures/0/schema/type", ""),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "pointer", "reason"), REFUSED)
def test_what_is_refused_and_where(spec: Any, pointer: str, reason: str):
    with pytest.raises(GrammarError) as caught:
        Grammar.structural_tag(spec)
    assert caught.value.pointer == pointer
    assert reason in caught.value.reason


def test_a_deep_tree_is_refused():
    deep: Any = text("a")
    for _ in range(20_000):
        deep = {"type": "optional", "content": deep}
    with pytest.raises(GrammarError, match="deep"):
        Grammar.structural_tag(deep)


def test_a_long_sequence_and_many_tags():
    long = {"type": "sequence", "elements": [text("a"), {"type": "optional", "content": text("b")}] * 3000}
    assert Grammar.structural_tag(long).accepts("ab" * 3000)
    tags = [tag(f"<f={i}>", text("x"), "</f>") for i in range(5000)]
    many = Grammar.structural_tag({"type": "triggered_tags", "triggers": ["<f="], "tags": tags})
    assert many.accepts("a<f=4999>x</f>")
    assert not many.accepts("a<f=5000>x</f>")


def test_trees_are_built_from_nodes_too():
    tree = st.Sequence(
        elements=(st.Tag(begin="<t>", content=st.AnyText(), end=("</t>",)), st.Optional(content=st.JsonSchema(json_schema=True)))
    )
    grammar = Grammar.structural_tag(tree)
    assert grammar.accepts("<t>a</t>[1]")
    assert grammar.accepts("<t></t>")


def test_findings_are_placed_in_the_tree():
    findings = Grammar.structural_tag(tag("<t>", schema({"type": "string", "title": "x"}), ">")).explain()
    assert {(f.pointer, f.keyword, f.status) for f in findings} == {
        ("/content/json_schema", "type", "enforced"),
        ("/content/json_schema", "title", "annotation"),
    }


def test_equal_trees_share_a_key():
    assert Grammar.structural_tag(calls()).key == Grammar.structural_tag(json.dumps(calls())).key
    assert Grammar.structural_tag(calls()).key != Grammar.structural_tag(calls(at_least_one=True)).key
