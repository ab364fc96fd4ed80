"""JSON values and special tokens inside of grammars."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import EOS, brute_force, mask_of

from formcast import Grammar, GrammarError, Vocabulary, compile_grammar

CALL, OVER, OTHER = 1, 2, 3
_WORDS = (b"hi", b'{"', b'"}', b'": ', b"<|call|>", b"12", b'{"a": 1}', "é".encode(), b"\xff\x00\x00\x01")
_PIECES = [None, None, None, None, *(bytes((b,)) for b in range(256)), *_WORDS]
VOCABULARY = Vocabulary(_PIECES, [EOS], special_tokens={"<|call|>": CALL, "<|over|>": OVER, "<other>": OTHER})

_A = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}'


def ids(*words: bytes | int) -> list[int]:
    return [word if isinstance(word, int) else _PIECES.index(word) for word in words]


def takes(cursor: Any, tokens: list[int]) -> bool:
    return all(cursor.advance(token) for token in tokens)


@pytest.mark.parametrize(
    ("grammar", "accepted", "refused"),
    [
        (f"start: %json {_A}", ['{"a": 1}', '{"a":12}', '{ "a": 1 }'], ["", "{}", ' {"a": 1}', '{"a": "1"}']),
        (f'start: "x" %json {_A} "y"', ['x{"a": 1}y'], ['x{"a": 1}', "xy"]),
        (f"start: (NAME %json {_A})+\nNAME: /[a-z]+/\n%ignore /\\s+/", ['f {"a":1} g\n{"a":2}', 'f{"a":1}g{"a":2} '], ["f", 'f {"a":1} 2']),
        ('start: "[" _l{%json {"type": "integer"}} "]"\n_l{x}: x (";" x)*', ["[1]", "[1;23;4]"], ["[]", "[1;]", "[1;a]", "[01]"]),
        ('start: start "+" start | %json {"type": "integer"}', ["1", "1+2", "1+23+4"], ["+", "1+", "1++2"]),
        ('start: a?\na: a? %json {"enum": ["p", 7]} b?\nb: "," b?', ["", '"p"', '7"p",,"p",', "77"], [",", '"q"']),
        (
            'start: %json {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}} "!"',
            ["[[], [[]]]!"],
            ["[[]"],
        ),
        ('start: %json {"const": "}\\"{"} "."', ['"}\\"{".'], ['"}".']),
        ('start: (%json {"type": "integer"} %json {"type": "boolean"})~2', ["1true2false"], ["1true", "1true2false3true"]),
    ],
)
def test_json_values_in_rules(grammar: str, accepted: list[str], refused: list[str]):
    made = Grammar.lark(grammar)
    assert [text for text in accepted if not made.accepts(text)] == []
    assert [text for text in refused if made.accepts(text)] == []


@pytest.mark.parametrize(
    ("grammar", "position", "pointer", "part"),
    [
        ("start: %json [1]", 13, None, "unexpected"),
        ('start: %json {"type": "integer"', 13, None, "not closed"),
        ('start: %json {"type" "integer"}', 21, None, "not JSON"),
        ('start: "a" %json {"type": "integr"}', 11, "/type", "integr"),
        ('start: "a" %json {"properties": {"a": {"pattern": "("}}}', 11, "/properties/a/pattern", "closed"),
        ('start: A\nA: %json {"type": "integer"}', 12, None, "not in terminals"),
        ("start: A\nA: <|call|>", 12, None, "not in terminals"),
        ("start: <[99999999999]>", 7, None, "numbers"),
    ],
)
def test_errors_of_reading_name_the_place(grammar: str, position: int, pointer: str | None, part: str):
    with pytest.raises(GrammarError, match=part) as caught:
        Grammar.lark(grammar)
    assert (caught.value.position, caught.value.pointer) == (position, pointer)


@pytest.mark.parametrize(
    ("grammar", "position", "part"),
    [
        ('start: "a" %json {"type": "integer", "enum": ["a"]}', 11, "no"),
        ('start: NAME %json {"type": "integer"}\nNAME: /[a-z0-9]+/', 12, "could go on"),
        ("start: <[3, 4]>", 7, "no special token"),
    ],
)
def test_errors_of_compiling_name_the_place(grammar: str, position: int, part: str):
    with pytest.raises(GrammarError, match=part) as caught:
        Grammar.lark(grammar).compile(special_tokens=VOCABULARY.special_tokens)
    assert caught.value.position == position


def test_a_schema_nested_deeper_than_python_can_recurse():
    schema = '{"items": ' * 20_000 + "{}" + "}" * 20_000
    try:
        assert Grammar.lark(f"start: %json {schema}").accepts("[[1]]")
    except GrammarError as error:
        assert error.reason


_SCALARS = st.sampled_from(["integer", "boolean", "null", "string", "number"]).map(lambda kind: {"type": kind})
_SCHEMAS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items, "maxItems": 2}),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some}),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda some: {"type": "object", "properties": some, "required": sorted(some), "additionalProperties": False}
        ),
    ),
    max_leaves=4,
)


@settings(max_examples=25, deadline=None)
@given(_SCHEMAS, st.integers(0, 1 << 30))
def test_a_grammar_of_one_value_has_the_masks_of_its_schema(schema: Any, seed: int):
    choose = random.Random(seed)
    nested = compile_grammar(Grammar.lark(f"start: %json {json.dumps(schema | {'minProperties': 0})}"), VOCABULARY).cursor()
    alone = compile_grammar(Grammar.json_schema(schema | {"minProperties": 0}), VOCABULARY).cursor()
    for _ in range(12):
        mask = mask_of(nested)
        assert mask == mask_of(alone) - outer_blanks(alone, nested) == brute_force(nested)
        tokens = sorted(mask - {EOS})
        if not tokens:
            break
        token = choose.choice(tokens)
        assert nested.advance(token) and alone.advance(token)


def outer_blanks(alone: Any, nested: Any) -> set[int]:
    """Tokens that the document takes and the value does not: white space around it."""
    extra = mask_of(alone) - mask_of(nested)
    assert all((_PIECES[token] or b"x").isspace() or (_PIECES[token] or b"x")[-1:] in b" \n" for token in extra)
    return extra


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar.lark("start: <|call|> NAME? <|over|>+\nNAME: /[a-z]+/\n%ignore /\\s+/"),
        Grammar.lark("%declare <|call|> <|over|>\nstart: <|call|> NAME? <[2]>+\nNAME: /[a-z]+/\n%ignore /\\s+/"),
        Grammar.gbnf('root ::= " "* <|call|> " "* [a-z]* " "* (<[2]> " "*)+'),
    ],
)
def test_tokens_are_matched_by_id(grammar: Grammar):
    cursor = compile_grammar(grammar, VOCABULARY).cursor()
    assert CALL in mask_of(cursor) and not {OVER, OTHER, EOS} & mask_of(cursor)
    assert mask_of(cursor) == brute_force(cursor)
    assert takes(cursor, ids(CALL, b"hi"))
    assert mask_of(cursor) == brute_force(cursor)
    assert OVER in mask_of(cursor) and CALL not in mask_of(cursor)
    assert takes(cursor, ids(b" ", OVER)) and mask_of(cursor) == brute_force(cursor) and cursor.accepting
    assert takes(cursor, ids(OVER, OVER)) and not cursor.advance(CALL)


def test_text_cannot_spell_a_token():
    cursor = compile_grammar(Grammar.lark('start: <|call|> "x"'), VOCABULARY).cursor()
    assert mask_of(cursor) == {CALL} == brute_force(cursor)
    assert not any(cursor.advance(token) for token in ids(b"<", b"<|call|>", b"\xff", b"\xff\x00\x00\x01"))


def test_any_of_several_ids():
    cursor = compile_grammar(Grammar.lark('start: <[1, 3]> | "x" <|over|>'), VOCABULARY).cursor()
    assert mask_of(cursor) == {CALL, OTHER, *ids(b"x")} == brute_force(cursor)


def test_a_name_without_such_a_token_is_text():
    grammar = Grammar.lark('start: <|unknown|> "x"')
    assert grammar.accepts("<|unknown|>x")
    assert takes(compile_grammar(grammar, VOCABULARY).cursor(), ids(*(bytes((b,)) for b in b"<|unknown|>x")))
    assert Grammar.gbnf("root ::= <think> [a-z]").accepts("<think>a")


@pytest.mark.parametrize(
    ("pattern", "may_follow"),
    [("/a(?=;)/", False), ("/a(?!;)/", True), ("/a$/", True), ("/a+/", True), (r"/a\b/", True), (r"/a\B/", False)],
)
def test_to_a_terminal_a_token_is_the_end_of_the_text(pattern: str, may_follow: bool):
    grammar = Grammar.lark(f'start: A (<|call|> | ";" | "a") "."\nA: {pattern}')
    cursor = compile_grammar(grammar, VOCABULARY).cursor()
    assert mask_of(cursor) == brute_force(cursor)
    assert takes(cursor, ids(b"a"))
    assert (CALL in mask_of(cursor)) == may_follow
    assert mask_of(cursor) == brute_force(cursor)


def test_tokens_and_values_in_the_grammars_of_a_structural_tag():
    text = f"start: <|call|> %json {_A}"
    tag = Grammar.structural_tag(
        {"type": "tag", "begin": "b", "content": {"type": "grammar", "notation": "lark", "grammar": text}, "end": "e"}
    )
    cursor = compile_grammar(tag, VOCABULARY).cursor()
    assert takes(cursor, ids(b"b")) and mask_of(cursor) == {CALL} == brute_force(cursor)
    assert takes(cursor, ids(CALL, b'{"a": 1}')) and mask_of(cursor) == set(ids(b"e")) == brute_force(cursor)
    assert takes(cursor, ids(b"e")) and cursor.accepting
    other = {
        "type": "sequence",
        "elements": [
            {"type": "grammar", "notation": "lark", "grammar": text},
            {"type": "json_schema", "json_schema": {}, "whitespace": "any"},
        ],
    }
    with pytest.raises(GrammarError, match="same whitespace"):
        Grammar.structural_tag(other)


def test_many_ambiguous_places_that_may_be_empty_stay_few():
    rules = "\n".join(f'r{i}: r{i + 1} r{i + 1} %json {{"const": 1}}? | r{i + 1}?' for i in range(6))
    grammar = Grammar.lark(f'start: r0 <|over|>\n{rules}\nr6: %json {{"const": 2}}? ","?')
    assert grammar.accepts("2,1,2,2,1,1" + "<|over|>")
