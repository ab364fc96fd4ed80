"""`Grammar`: its constructors, what it accepts, what it explains, and what its errors say."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import re
import threading
import uuid
from collections.abc import Callable
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from pydantic import BaseModel, ConfigDict, Field
from toy_vocabulary import brute_force, mask_of, vocabulary
from typing_extensions import NotRequired, TypedDict

from formcast import Grammar, GrammarError, LimitError, Limits, compile_grammar

# --- json_schema ---------------------------------------------------------------------------------------------------

AGE = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"], "additionalProperties": False}


class Address(BaseModel):
    street: str = Field(min_length=1)


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    age: int = Field(ge=0, le=150)
    home: Address | None = None
    friends: list[Person] = []


@pytest.mark.parametrize("schema", [AGE, json.dumps(AGE), MappingProxyType(AGE)], ids=["dict", "text", "mapping"])
def test_a_schema_is_a_mapping_or_text(schema: Any) -> None:
    grammar = Grammar.json_schema(schema)
    assert grammar.kind == "json_schema"
    assert grammar.accepts('{"age": 3}')
    for text in ('{"age": -1}', "{}", '{"age": 3, "b": 1}', '{"age": 3', '{"age": 3}}', ""):
        assert not grammar.accepts(text), text


def test_boolean_schemas() -> None:
    everything = Grammar.json_schema(True)
    for text in ("null", "[1, {}]", '"x"', "-0.5e3"):
        assert everything.accepts(text)
    for text in ("", "nul", "[1,]", "01", "'x'"):
        assert not everything.accepts(text)
    with pytest.raises(GrammarError, match="no finite value"):
        Grammar.json_schema(False).compile()


def test_a_pydantic_model() -> None:
    grammar = Grammar.json_schema(Person)
    assert grammar.accepts('{"name": "Ada", "age": 36, "home": {"street": "x"}, "friends": [{"name": "B", "age": 0}]}')
    for text in (
        '{"name": "Ada"}',
        '{"name": "Ada", "age": 151}',
        '{"name": "Ada", "age": 3, "home": {"street": ""}}',
        '{"name": "Ada", "age": 3, "x": 1}',
    ):
        assert not grammar.accepts(text), text


def test_the_schema_may_change_afterwards() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    grammar = Grammar.json_schema(schema)
    schema["properties"]["a"]["type"] = "string"  # pyright: ignore[reportIndexIssue, reportArgumentType]
    assert grammar.accepts('{"a": 1}') and not grammar.accepts('{"a": "x"}')


def test_decimals_in_the_schema_are_exact() -> None:
    for schema in ({"minimum": Decimal("0.1000000000000000000001")}, '{"minimum": 0.1000000000000000000001}'):
        grammar = Grammar.json_schema(schema)
        assert grammar.accepts("0.1000000000000000000001") and not grammar.accepts("0.1")


@pytest.mark.parametrize("draft", ["4", "6", "7", "2019-09", "2020-12"])
def test_the_draft_can_be_given(draft: str) -> None:
    grammar = Grammar.json_schema({"prefixItems": [{"type": "string"}]}, draft=draft)
    assert grammar.accepts("[1]") == (draft != "2020-12")


def test_references_may_lead_to_registered_documents() -> None:
    schema = {"items": {"$ref": "https://example.com/step.json#/$defs/step"}}
    step = {"$id": "https://example.com/step.json", "$defs": {"step": {"multipleOf": 0.1}}}
    grammar = Grammar.json_schema(schema, registry={"https://example.com/step.json": step})
    assert grammar.accepts("[0.3, 1]") and not grammar.accepts("[0.35]")
    with pytest.raises(GrammarError, match=r"https://example\.com/step\.json") as caught:
        Grammar.json_schema(schema)
    assert caught.value.pointer == "/items/$ref"


def test_any_json_object() -> None:
    grammar = Grammar.json_object()
    assert grammar.accepts("{}") and grammar.accepts('{"a": {"b": []}}')
    assert not grammar.accepts("[]") and not grammar.accepts('{"a": 1, "a": 2}')
    assert not Grammar.json_object(whitespace="compact").accepts('{"a": 1}')


# what is refused, where, and a word of the reason
REFUSED: list[tuple[Any, str | None, str]] = [
    ({"properties": {"a/b~": {"minimum": "x"}}}, "/properties/a~1b~0/minimum", "must be a number"),
    ({"type": "strin"}, "/type", "unknown type 'strin'"),
    ({"type": ["string", "text"]}, "/type", "unknown type 'text'"),
    ({"items": {"pattern": "a("}}, "/items/pattern", "not closed"),
    ({"pattern": r"(a)\1"}, "/pattern", "backreference"),
    ({"$ref": "#/$defs/nope"}, "/$ref", "leads nowhere"),
    ({"$ref": "#nope"}, "/$ref", "no anchor"),
    ({"$ref": "https://example.com/x.json"}, "/$ref", "https://example.com/x.json"),
    ({"$ref": "#"}, "/$ref", "circle"),
    ({"properties": {"a": 3}}, "/properties/a", "must be an object or a boolean, not int"),
    ({"$schema": "http://json-schema.org/draft-03/schema#"}, "/$schema", "draft 3"),
    ({"type": "object", "required": ["a"], "properties": {"a": {"type": "object", "required": ["b"], "properties": {"b": {"enum": []}}}}}, "/properties/a/properties/b", "no finite value"),
    ({"type": "array", "prefixItems": [{"type": "string", "const": 1}], "minItems": 1}, "/prefixItems/0", "no finite value"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "", "no finite value"),
    ({"enum": ["abc"], "maxLength": 2}, "", "no finite value"),
    ({"enum": [{"a": 1}], "properties": {"a": {"type": "string"}}}, "", "no finite value"),
    ({"required": ["a"], "additionalProperties": False, "type": "object"}, "", "no finite value"),
    ({"required": ["a"], "properties": {"a": True}, "patternProperties": {"a": False}, "type": "object"}, "", "no finite value"),
    ({"type": "string", "minLength": 3, "maxLength": 2}, "", "no finite value"),
    ([], "", "must be an object or a boolean, not list"),
    ("[1]", "", "must be an object or a boolean, not list"),
    ("{", None, "not JSON"),
    ("", None, "not JSON"),
    ({"const": {1, 2}}, None, "set is not a JSON value"),
    ({"minimum": float("nan")}, None, "not JSON"),
    (b"{}", None, "bytes is not a JSON value"),
    (int, None, "use Grammar.of"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer", "reason"), REFUSED, ids=lambda x: str(x)[:50])
def test_a_refused_schema_names_the_place_and_the_reason(schema: Any, pointer: str | None, reason: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.json_schema(schema).compile()
    assert reason in caught.value.reason
    assert caught.value.pointer == pointer
    assert caught.value.reason in str(caught.value)
    if pointer:
        assert f"(at {pointer})" in str(caught.value)


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"property_order": "alphabetical"}, "property_order"),
    ({"whitespace": "x*"}, "whitespace"),
    ({"whitespace": "("}, "not closed"),
    ({"separators": (";", ":")}, "separator"),
    ({"separators": (",", "=")}, "separator"),
    ({"draft": "3"}, "draft"),
]


@pytest.mark.parametrize(("options", "reason"), OPTIONS, ids=lambda x: str(x))
def test_refused_options(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        Grammar.json_schema({}, **options)


# --- of ------------------------------------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


def forecast(city: str, days: int = 3, *, unit: Literal["c", "f"] = "c") -> None: ...


class Station:
    def report(self, day: int) -> None: ...

    @classmethod
    def nearest(cls, city: str) -> None: ...


TYPES: list[tuple[Any, list[str], list[str]]] = [
    (int, ["0", "-12"], ["1.5", '"1"', "true"]),
    (float, ["0.5", "3"], ['"x"', "null"]),
    (bool, ["true", "false"], ["0", "null"]),
    (str, ['"x"', '""'], ["1", "x"]),
    (None, ["null"], ["0"]),
    (Any, ["1", "{}", '"x"'], ["", "x"]),
    (list[int], ["[]", "[1, 2]"], ['["x"]', "1"]),
    (tuple[int, str], ['[1, "x"]'], ["[1]", '[1, "x", 2]', '["x", 1]']),
    (set[int], ["[1, 2]"], ["[1, 1]"]),
    (dict, ["{}", '{"a": [1]}'], ["[]"]),
    (dict[str, int], ['{"a": 1}'], ['{"a": "x"}']),
    (Literal["a", 1, None], ['"a"', "1", "null"], ['"b"', "2", "true"]),
    (Color, ['"red"', '"blue"'], ['"RED"', '"green"']),
    (Level, ["1", "2"], ["3", '"LOW"']),
    (Optional[int], ["1", "null"], ['"x"']),  # noqa: UP045
    (int | None, ["1", "null"], ['"x"']),
    (Union[int, str], ["1", '"x"'], ["null", "1.5"]),  # noqa: UP007
    (Annotated[int, Field(gt=3)], ["4"], ["3"]),
    (Point, ['{"x": 1}', '{"x": 1, "y": 0.5}'], ["{}", '{"x": 0.5}', '{"y": 1}']),
    (Movie, ['{"title": "M"}', '{"title": "M", "year": 1931}'], ["{}", '{"title": 1}', '{"title": "M", "year": "x"}']),
    (Person, ['{"name": "Ada", "age": 36}'], ["{}", '{"name": "Ada", "age": -1}']),
    (list[Point], ['[{"x": 1}]'], ["[{}]"]),
    (datetime.date, ['"2024-02-29"'], ['"2023-02-29"', '"x"']),
    (uuid.UUID, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']),
    (forecast, ['{"city": "Bern"}', '{"city": "Bern", "days": 1, "unit": "f"}'], ["{}", '{"city": "Bern", "unit": "k"}', '{"city": "Bern", "x": 1}', '["Bern"]']),
    (Station().report, ['{"day": 1}'], ["{}", '{"self": 1, "day": 1}']),
    (Station.nearest, ['{"city": "Bern"}'], ["{}"]),
]  # fmt: skip


@pytest.mark.parametrize(("python_type", "valid", "invalid"), TYPES, ids=lambda x: getattr(x, "__name__", str(x))[:40])
def test_types(python_type: Any, valid: list[str], invalid: list[str]) -> None:
    grammar = Grammar.of(python_type)
    for text in valid:
        assert grammar.accepts(text), text
    for text in invalid:
        assert not grammar.accepts(text), text


def test_types_take_the_options_of_schemas() -> None:
    assert Grammar.of(list[int], whitespace="compact").accepts("[1,2]")
    assert not Grammar.of(list[int], whitespace="compact").accepts("[1, 2]")
    assert Grammar.of(Point, property_order="any").accepts('{"y": 1, "x": 2}')


def test_every_name_of_a_parameter_is_kept() -> None:
    """Pydantic gives some names a meaning in models, or refuses them there."""

    def tool(_private: int, model_config: int, schema: int, copy: int = 1) -> None: ...

    grammar = Grammar.of(tool)
    assert grammar.accepts('{"_private": 1, "model_config": 2, "schema": 3}')
    assert not grammar.accepts("{}")


def _positional_only(x: int, /) -> None: ...


def _variadic(*args: int) -> None: ...


def _unknown(x: Nowhere) -> None: ...  # noqa: F821 # pyright: ignore[reportUndefinedVariable]


def _uncallable(x: Callable[[int], int]) -> None: ...


@pytest.mark.parametrize(
    "python_type",
    [5, object(), Station, len, Callable[[int], int], list["Nowhere"], _positional_only, _variadic, _unknown, _uncallable, functools.partial(_unknown, 1)],  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
    ids=lambda x: re.sub(" at 0x[0-9a-f]+", "", str(x)),
)  # fmt: skip
def test_types_without_a_schema_are_refused(python_type: Any) -> None:
    with pytest.raises(GrammarError):
        Grammar.of(python_type)


# --- regex and choice ----------------------------------------------------------------------------------------------

REGEXES: list[tuple[str, str, list[str], list[str]]] = [
    ("ab?", "ecma", ["a", "ab"], ["", "b", "abb", "xa"]),
    ("", "ecma", [""], ["a"]),
    (r"\d+", "ecma", ["7", "42"], ["٣", ""]),
    (r"\d+", "python", ["7", "٣"], [""]),
    ("a.c", "ecma", ["abc", "aéc", "a😀c"], ["a\nc", "ac"]),
    ("cat|dog", "python", ["cat", "dog"], ["catdog", "ca"]),
    ("(?P<x>a)b", "python", ["ab"], ["a"]),
    ("(?i)é", "python", ["é", "É"], ["e"]),
    (r"\p{Lu}", "ecma", ["É"], ["é"]),
    (r"(?=.*\d)[a-z\d]{3}", "ecma", ["ab1", "111"], ["abc", "ab12"]),
]


@pytest.mark.parametrize(("pattern", "dialect", "valid", "invalid"), REGEXES)
def test_regexes(pattern: str, dialect: Literal["ecma", "python"], valid: list[str], invalid: list[str]) -> None:
    grammar = Grammar.regex(pattern, dialect)
    assert grammar.kind == "regex"
    for text in valid:
        assert grammar.accepts(text), text
    for text in invalid:
        assert not grammar.accepts(text), text


BAD_REGEXES = [
    ("a(b", "ecma", 1),
    (r"ab\1", "ecma", 2),
    ("[b-a]", "python", 1),
    ("a{3,1}", "ecma", 1),
    ("\ud800", "ecma", 0),
    (r"\p{Lu}", "python", 0),
]


@pytest.mark.parametrize(("pattern", "dialect", "position"), BAD_REGEXES)
def test_a_refused_regex_names_the_position(pattern: str, dialect: Literal["ecma", "python"], position: int) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.regex(pattern, dialect)
    assert caught.value.position == position
    assert f"position {position}" in str(caught.value)


def test_a_refusal_shows_its_place() -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.regex(r"ab(c)\1d")
    assert str(caught.value).splitlines()[1:] == [r"  ab(c)\1d", "       ^"]
    with pytest.raises(GrammarError) as caught:
        Grammar.lark('start: "a" b\nb:\t"x" )\n')
    first, *shown = str(caught.value).splitlines()
    assert "position 20, line 2, column 8" in first
    assert shown == ['  b: "x" )', "         ^"]
    with pytest.raises(GrammarError) as caught:
        Grammar.gbnf("root ::= " + "(" * 100_000)
    assert len(str(caught.value)) < 300


def test_a_regex_that_nothing_matches_is_refused() -> None:
    with pytest.raises(GrammarError, match="no text"):
        Grammar.regex(r"[^\s\S]")


@pytest.mark.parametrize("arguments", [(5,), (None,), (b"a",), ("a", "pcre"), ("a", None)], ids=str)
def test_wrong_arguments_of_a_regex_are_grammar_errors(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(GrammarError):
        Grammar.regex(*arguments)


CHOICES: list[tuple[Any, list[str], list[str]]] = [
    (["yes", "no"], ["yes", "no"], ["", "ye", "yesno", "Yes"]),
    (("a", "ab", ""), ["a", "ab", ""], ["b"]),
    ("single", ["single"], ["s"]),
    ((word for word in ("é", "😀")), ["é", "😀"], ["e"]),
    (["a.*", "(", "\\"], ["a.*", "(", "\\"], ["abc"]),
    (["x", "x"], ["x"], []),
]


@pytest.mark.parametrize(("options", "valid", "invalid"), CHOICES, ids=lambda x: str(x)[:20])
def test_choices(options: Any, valid: list[str], invalid: list[str]) -> None:
    grammar = Grammar.choice(options)
    assert grammar.kind == "choice"
    for text in valid:
        assert grammar.accepts(text), text
    for text in invalid:
        assert not grammar.accepts(text), text


@pytest.mark.parametrize("options", [[], ["a", 5], [None], 5, None, ["\ud800"]], ids=str)
def test_wrong_choices_are_refused(options: Any) -> None:
    with pytest.raises(GrammarError):
        Grammar.choice(options)


def test_too_many_choices_are_refused() -> None:
    with pytest.raises(LimitError, match="max_enum"):
        Grammar.choice(map(str, range(Limits().max_enum + 1)))


# --- use -----------------------------------------------------------------------------------------------------------


def test_texts_that_are_not_unicode_are_not_accepted() -> None:
    assert not Grammar.json_schema({}).accepts('"\udcff"')
    assert not Grammar.regex(r"[^]").accepts("\ud800")


def test_explain() -> None:
    schema = {
        "title": "T", "x-order": 1, "type": "object", "format": "unheard-of", "$defs": {"unused": {"minimum": "not looked at"}},
        "properties": {"a/b": {"type": "string", "format": "date", "minLenght": 3}},
    }  # fmt: skip
    found = {(f.pointer, f.keyword): f.status for f in Grammar.json_schema(schema).explain()}
    assert found == {
        ("", "title"): "annotation",
        ("", "x-order"): "annotation",
        ("", "type"): "enforced",
        ("", "format"): "annotation",
        ("", "$defs"): "annotation",
        ("", "properties"): "enforced",
        ("/properties/a~1b", "type"): "enforced",
        ("/properties/a~1b", "format"): "enforced",
        ("/properties/a~1b", "minLenght"): "annotation",
    }


def test_keywords_that_assert_nothing_where_they_stand_are_annotations() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": {}}}
    for schema, keyword in [
        (old, "minimum"),
        ({"then": {"minimum": 3}}, "then"),
        ({"else": False}, "else"),
        ({"minContains": 3}, "minContains"),
    ]:
        found = {f.keyword: f.status for f in Grammar.json_schema(schema).explain() if f.pointer == ""}
        assert found[keyword] == "annotation", keyword


def test_constraints_without_keywords_have_nothing_to_explain() -> None:
    assert Grammar.regex("a").explain() == [] and Grammar.choice(["a"]).explain() == []


def test_keys_are_equal_for_equal_constraints() -> None:
    assert Grammar.json_schema(AGE).key == Grammar.json_schema(json.dumps(AGE)).key == Grammar.json_schema(MappingProxyType(AGE)).key
    assert Grammar.json_object().key == Grammar.json_schema({"type": "object"}).key
    assert Grammar.of(Person).key == Grammar.of(Person).key
    assert Grammar.choice(["a", "b"]).key == Grammar.choice(("a", "b")).key
    assert Grammar.regex("a", "ecma").key == Grammar.regex("a").key


def test_keys_differ_where_the_meaning_does() -> None:
    registries = [{"u:x": {"type": "string"}}, {"u:x": {"type": "null"}}]
    grammars = [
        Grammar.json_schema(AGE),
        Grammar.json_schema({**AGE, "minProperties": 1}),
        Grammar.json_schema(AGE, whitespace="compact"),
        Grammar.json_schema(AGE, property_order="any"),
        Grammar.json_schema(AGE, separators=(",", ":")),
        Grammar.json_schema(AGE, separators=(", ", ": ")),
        Grammar.json_schema(AGE, draft="7"),
        *(Grammar.json_schema({"$ref": "u:x"}, registry=registry) for registry in registries),
        Grammar.regex("a"),
        Grammar.regex("a", "python"),
        Grammar.choice(["a"]),
        Grammar.choice(["a", "b"]),
    ]
    assert len({grammar.key for grammar in grammars}) == len(grammars)


def test_the_order_of_properties_is_part_of_the_key() -> None:
    properties = {"a": {"type": "null"}, "b": {"type": "null"}}
    one = Grammar.json_schema({"properties": properties})
    other = Grammar.json_schema({"properties": dict(reversed(properties.items()))})
    assert one.key != other.key


def test_keys_do_not_depend_on_where_a_registry_lies_in_memory() -> None:
    """An address may be used again for another registry, so it must not be all that tells two grammars apart."""
    keys = set()
    for kind in ("string", "null", "integer"):
        keys.add(Grammar.json_schema({"$ref": "u:x"}, registry={"u:x": {"type": kind}}).key)
    assert len(keys) == 3
    registry = {"u:x": {"type": "string"}}
    assert Grammar.json_schema({"$ref": "u:x"}, registry=registry).key == Grammar.json_schema({"$ref": "u:x"}, registry=dict(registry)).key


def test_a_grammar_shows_itself_briefly() -> None:
    assert len(repr(Grammar.choice(["x" * 1000]))) < 100


def test_each_compilation_has_its_own_automaton() -> None:
    grammar = Grammar.json_schema(AGE)
    assert grammar.compile().machine is not grammar.compile().machine


def test_limits_are_obeyed() -> None:
    with pytest.raises(LimitError, match="max_bytes"):
        Grammar.json_schema({"title": "x" * 100}, limits=Limits(max_bytes=50))
    with pytest.raises(LimitError, match="max_enum"):
        Grammar.json_schema({"enum": [1, 2, 3]}, limits=Limits(max_enum=2))
    with pytest.raises(LimitError, match="max_schema_depth"):
        Grammar.json_schema({"items": {"items": {"items": {}}}}, limits=Limits(max_schema_depth=2))
    with pytest.raises(LimitError, match="max_nodes"):
        compiled = Grammar.json_schema({}).compile(Limits(max_nodes=100))
        compiled.machine.run(compiled.start, b"[" * 10_000)


# --- threads -------------------------------------------------------------------------------------------------------

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer", "multipleOf": 3}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["v"], "additionalProperties": False}},
}  # fmt: skip
THREADS = 8


def _in_threads(work: Callable[[int], None]) -> None:
    """Runs `work(0..THREADS-1)`, all at once, and raises the first failure."""
    barrier, failures = threading.Barrier(THREADS), list[BaseException]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_may_share_a_grammar() -> None:
    grammar = Grammar.json_schema(TREE)

    def work(number: int) -> None:
        for depth in range(1, 30):
            text = '{"v": 3, "kids": [' * depth + f'{{"v": {number * 3}}}' + "]}" * depth
            assert grammar.accepts(text)
            assert not grammar.accepts(text.replace('"v": 3', '"v": 4', 1))

    _in_threads(work)


def test_threads_may_share_a_token_automaton() -> None:
    vocab = vocabulary()
    grammar = Grammar.json_schema(TREE)
    fsm = compile_grammar(grammar, vocab)
    single = {piece[0]: token for token, piece in enumerate(vocab.token_bytes) if piece is not None and len(piece) == 1}

    def work(number: int) -> None:
        own = fsm if number % 2 else compile_grammar(grammar, vocab)
        cursor = own.cursor()
        for byte in f'{{"v":{number * 3},"kids":[{{"v":-12}}]}}'.encode():
            assert single[byte] in mask_of(cursor)
            assert cursor.advance(single[byte])
        assert cursor.accepting
        assert mask_of(cursor) == brute_force(cursor)

    _in_threads(work)
