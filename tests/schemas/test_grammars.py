"""The shipped grammars: they say yes and no where they should, Lark ones exactly as lark itself does."""

from __future__ import annotations

import ast
import csv
import datetime
import io
import itertools
import json
import random
import re
from typing import Any

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_vocabulary import vocabulary, walk

from formcast import Grammar, schemas
from formcast.grammar.errors import FormcastError

ACCEPTED: dict[str, list[str]] = {
    "arithmetic": ["0", "1 + 2*3", "-(4 - 2) ** 2 / 0.5", "2**-1", "--7%3", "((10))", "1.50*2"],
    "css_color": ["#fff", "#A0b1C2d3", "rgb(0, 99, 255)", "rgba(1, 2, 3, 0.5)", "hsl(359, 100%, 0%)", "hsla(0, 5%, 50%, 1)", "teal"],
    "csv_row": ["", "a", "a,b,,d", '"a,b",c', '"say ""hi""\r\nnow",', "é, 1.5 ,x"],
    "email": ["a@b.co", "first.last+tag@mail.example.org", "o'neil@x-y.example", "a" * 64 + "@b.co", "!#$%&@b.museum", "a@1.2.co"],
    "graphql_query": [
        "{ me }",
        "query Q { a b c }",
        "query { a }",
        'query Find($id: ID!, $tags: [String!]! = ["x", "y"]) { node(id: $id, tags: $tags) { id name: title } }',
        'mutation { add(item: {name: "a\\"b", count: 2, kinds: [A, B], on: null}) { id ... on Thing { size } ...Rest } } fragment Rest on Item { price }',
        '{ f(a: {}, b: [], c: -1.5, d: true, e: "") }',
    ],
    "iso_datetime": ["2031-02-28T09:30:00Z", "2032-02-29T23:59:59.25+01:00", "2000-02-29T00:00:00", "0000-12-31T12:00:00-23:59"],
    "json": [
        "null",
        "-0.5e+10",
        '{"a": [1, 2, {"b": true}], "c": "\\u00e9\\n\\/ é"}',
        '{\n  "a": [\n    1\n  ]\n}',
        "[]",
        "{ }",
        '""',
        "[[[[]]]]",
    ],
    "json_lines": ["{}\n", '{"a": 1}\n{"b": [true, {"c": null}]}\n', '{"a":"\\u00e9\\n"}\n' * 3],
    "markdown_table": [
        "| a | b |\n| --- | :---: |\n| 1 | two words |",
        "| Name | Since | Paid |\n| --- | ---: | :--- |\n| Ada | 1843 | no |\n| Grace | 1944 | yes |",
        "| 1 | 2 | 3 | 4 | 5 | 6 |\n| --- | --- | --- | --- | --- | --- |\n| a | b | c | d | e | f |",
    ],
    "python_function": [
        "def f():\n    pass\n",
        'def area(width: int, height) -> float:\n    """Square metres."""\n    return width * height\n',
        "def f(a: dict[str, int]):\n    x.y[0] += a[1](2)[b]**-c\n",
        "def f(n):\n    if n < 2 and not n in seen:\n        return 1\n    elif n == 2:\n        raise error(n)\n    else:\n"
        '        for k in n:\n            say("a\\"b", [1, 2.5], {"k": (a, b)})\n    return f(n - 1) if n else None\n',
        "def f(iffy, nota):\n    while iffy or nota:\n        assert (iffy + 1) // 2 is nota\n",
    ],
    "semver": ["0.0.0", "1.4.0", "2.0.0-rc.1", "1.0.0-alpha+build.005", "1.0.0+21AF26D3---117B344092BD", "1.0.0-0A.is.legal", "1.0.0--"],
    "sql_select": [
        "SELECT * FROM users",
        "SELECT DISTINCT u.name, COUNT(*) AS n FROM users AS u LEFT JOIN orders AS o ON u.id = o.user_id WHERE o.total >= 10.5"
        " AND NOT u.name LIKE 'A%' OR (u.id IN (1, 2) AND u.mail IS NOT NULL) GROUP BY u.name HAVING COUNT(*) > 2"
        " ORDER BY n DESC, u.name LIMIT 10 OFFSET 20;",
        "SELECT (price + 1) * 2 AS p FROM items WHERE name = 'it''s' AND price BETWEEN 1 AND 2 + 3",
        "SELECT MAX(DISTINCT a) FROM t WHERE ((a)) = -1",
    ],
}

REFUSED: dict[str, list[str]] = {
    "arithmetic": ["", "1 +", "+1", "01", "1.", ".5", "1  + 2", "(1", "1)", "2 3", "* 2", "1 +\n2"],
    "css_color": ["#ff", "#12345", "#ggg", "rgb(256, 0, 0)", "rgb(1,2,3)", "rgb(1, 2)", "hsl(360, 1%, 1%)", "hsl(1, 101%, 1%)", "Teal", ""],
    "csv_row": ['a"b', '"a', '"a"b', "a\nb", "," * 30, 'a,"b" '],
    "email": [
        "",
        "a",
        "@b.co",
        "a@b",
        ".a@b.co",
        "a.@b.co",
        "a..b@c.de",
        "a@-b.co",
        "a@b-.co",
        "a@b.c1",
        "a@b..co",
        "a b@c.de",
        "a" * 65 + "@b.co",
    ],
    "graphql_query": [
        "{}",
        "{ }",
        "{ a",
        "{ a  b }",
        "query Q",
        "{ a(b 1) }",
        "{ a() }",
        "{ f(a: $) }",
        "{ ... on { a } }",
        "query Q() { a }",
        "{ a } { b }",
    ],
    "iso_datetime": [
        "2031-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2031-04-31T00:00:00Z",
        "2031-13-01T00:00:00Z",
        "2031-01-01T24:00:00Z",
        "2031-01-01T23:60:00Z",
        "2031-01-01T23:59:60Z",
        "2031-01-01 00:00:00Z",
        "2031-01-01T00:00Z",
        "2031-01-01T00:00:00.Z",
        "2031-01-01T00:00:00+1:00",
        "31-01-01T00:00:00Z",
    ],
    "json": [
        "",
        "[1,]",
        "{a: 1}",
        "{'a': 1}",
        '{"a" 1}',
        "01",
        "1.",
        "+1",
        "NaN",
        '"\n"',
        '"\\x"',
        "[1  ]",
        "[1] ",
        "tru",
        "[" * 9,
        '{"a": 1, }',
    ],
    "json_lines": ["", "{}", "\n", "{}\n\n", "{}{}\n", "[]\n", '{"a": 1}\r\n', '{"a":\n1}\n', '{"a": 1,}\n', '{"a":  1}\n'],
    "markdown_table": [
        "| a | b |\n| --- | --- |",
        "| a |\n| --- |\n| 1 |",
        "| a | b |\n| --- |\n| 1 | 2 |",
        "| a | b |\n| --- | --- |\n| 1 | 2 | 3 |",
        "| a | b |\n| -- | --- |\n| 1 | 2 |",
        "| a | b |\n| --- | --- |\n| 1 |  |",
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n",
        "|a|b|\n| --- | --- |\n| 1 | 2 |",
    ],
    "python_function": [
        "",
        "def f():\n",
        "def f():\n    pass",
        "def f():\npass\n",
        "def f():\n  pass\n",
        "def f() :\n    pass\n",
        "def if():\n    pass\n",
        "def f(None):\n    pass\n",
        "def f(a,):\n    pass\n",
        "def f():\n    x\n",
        "def f():\n    1 = x\n",
        "def f():\n    f() = 1\n",
        "def f():\n    if x:\n    pass\n",
        "def f():\n    return x +\n",
        "def f():\n    x = (1)(2))\n",
        "def f():\n    x = 'a'\n",
        'def f():\n    x = "a\nb"\n',
        "def f():\n    pass\ndef g():\n    pass\n",
        "def f():\n    while a:\n        while b:\n            while c:\n                pass\n",
    ],
    "semver": ["", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "v1.2.3", "1.2.3-a..b", "1.2.3+a+b", "1.2.3-é"],
    "sql_select": [
        "",
        "SELECT FROM t",
        "SELECT * FROM",
        "select * from t",
        "SELECT  * FROM t",
        "SELECT * FROM t WHERE a",
        "SELECT * FROM t WHERE a = 'it's'",
        "SELECT a b FROM t",
        "SELECT * FROM t; DROP TABLE t",
        "SELECT * FROM t LIMIT -1",
        "SELECT * FROM t HAVING a = 1",
        "SELECT * FROM t WHERE a IN ()",
        "SELECT * FROM t ORDER BY",
    ],
}

ACCEPTED_CASES = [(name, text) for name, texts in ACCEPTED.items() for text in texts]
REFUSED_CASES = [(name, text) for name, texts in REFUSED.items() for text in texts]
# lark itself takes minutes to read the grammar of Python functions; there, Python is the oracle.
LARK_NAMES = [name for name in schemas.grammar_names() if schemas.load_grammar(name).kind == "lark" and name != "python_function"]
_LENGTHS = (0, 1, 3)


def grammar_of(name: str) -> Grammar:
    kind, text = schemas.load_grammar(name)
    return {"lark": Grammar.lark, "gbnf": Grammar.gbnf, "ebnf": Grammar.ebnf}[kind](text)


GRAMMARS = {name: grammar_of(name) for name in schemas.grammar_names()}


class Oracle:
    """lark's own parser."""

    def __init__(self, name: str):
        self._parser = lark.Lark(schemas.load_grammar(name).text, parser="earley", lexer="dynamic")

    def accepts(self, text: str) -> bool:
        try:
            self._parser.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True


def damaged(text: str, rng: random.Random) -> str:
    """A text that differs a little: something taken away, doubled, or put in from elsewhere."""
    start = rng.randrange(len(text) + 1)
    rest = text[start + rng.choice(_LENGTHS) :]
    source = rng.randrange(len(text) + 1)
    return text[:start] + text[source : source + rng.choice(_LENGTHS)] + rest


def test_each_grammar_has_cases():
    assert tuple(sorted(ACCEPTED)) == tuple(sorted(REFUSED)) == schemas.grammar_names()
    assert {grammar.kind for grammar in GRAMMARS.values()} == {"lark", "gbnf", "ebnf"}
    assert not set(schemas.grammar_names()) & set(schemas.names())


@pytest.mark.parametrize(("name", "text"), ACCEPTED_CASES)
def test_accepts(name: str, text: str):
    assert GRAMMARS[name].accepts(text)


@pytest.mark.parametrize(("name", "text"), REFUSED_CASES)
def test_refuses(name: str, text: str):
    assert not GRAMMARS[name].accepts(text)


@pytest.mark.parametrize("name", LARK_NAMES)
def test_lark_says_the_same(name: str):
    oracle = Oracle(name)
    rng = random.Random(name)
    texts = [*ACCEPTED[name], *REFUSED[name], *(damaged(text, rng) for text in ACCEPTED[name] for _ in range(8))]
    assert [text for text in texts if GRAMMARS[name].accepts(text) != oracle.accepts(text)] == []


@pytest.mark.parametrize("name", schemas.grammar_names())
def test_walks_through_the_masks_end_in_the_grammar(name: str):
    vocab = vocabulary()
    oracle = Oracle(name) if name in LARK_NAMES else GRAMMARS[name]
    texts = [walk(GRAMMARS[name], vocab, random.Random(seed), max_tokens=60) for seed in range(2)]
    assert [text for text in texts if text is not None and not oracle.accepts(text.decode())] == []


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_takes_what_python_writes(value: Any, indent: int | str | None, ascii_only: bool):
    assert GRAMMARS["json"].accepts(json.dumps(value, indent=indent, ensure_ascii=ascii_only))


@given(st.text(alphabet='{}[]",:01.-e \n\\tru', max_size=12))
def test_json_takes_only_json(text: str):
    if GRAMMARS["json"].accepts(text):
        json.loads(text)


@given(st.text(alphabet="0123456789.+-*/%() ", max_size=12))
def test_arithmetic_takes_only_python(text: str):
    if GRAMMARS["arithmetic"].accepts(text):
        ast.parse(text, mode="eval")


expressions: st.SearchStrategy[str] = st.recursive(
    st.integers(0, 10**6).map(str) | st.sampled_from(["0.5", "12.25", "0"]),
    lambda inner: (
        st.builds(lambda a, op, b: f"{a}{op}{b}", inner, st.sampled_from([" + ", "-", " *", "/ ", "%", " ** "]), inner)
        | inner.map(lambda a: f"({a})")
        | inner.map(lambda a: f"-{a}")
    ),
    max_leaves=8,
)


@given(expressions)
def test_arithmetic_takes_expressions(text: str):
    assert GRAMMARS["arithmetic"].accepts(text)


@given(st.datetimes(timezones=st.none() | st.just(datetime.timezone.utc) | st.just(datetime.timezone(-datetime.timedelta(hours=3.5)))))
def test_iso_datetime_takes_what_python_writes(moment: datetime.datetime):
    assert GRAMMARS["iso_datetime"].accepts(moment.isoformat())


def test_iso_datetime_knows_the_calendar():
    def exists(year: int, month: int, day: int) -> bool:
        try:
            datetime.date(year, month, day)
        except ValueError:
            return False
        return True

    days = itertools.product([1600, 1900, 1996, 2000, 2031, 2100, 2104], range(14), range(33))
    wrong = [
        (year, month, day)
        for year, month, day in days
        if GRAMMARS["iso_datetime"].accepts(f"{year}-{month:02}-{day:02}T00:00:00Z") != exists(year, month, day)
    ]
    assert wrong == []


def test_python_takes_what_a_function_is_written_as():
    for text in ACCEPTED["python_function"]:
        ast.parse(text)


def test_python_walks_are_python():
    rng = random.Random(5)
    compiled = GRAMMARS["python_function"].compile()
    machine = compiled.machine
    pieces = [piece.encode() for piece in re.findall(r"\w+|\s+|[^\w\s]+", "".join(ACCEPTED["python_function"]))]
    pieces += [bytes((byte,)) for byte in range(0x20, 0x7F)]
    closers = [b"):\n", b"    pass\n", b"\n", b")", b"]", b"}", b'"', b":\n", b'"""\n']
    finished = 0
    for _ in range(15):
        state, text = compiled.start, b""
        for _ in range(120):
            if machine.accepting(state) and rng.random() < 0.3:
                finished += 1
                ast.parse(text.decode())
                break
            ways = [(piece, target) for piece in closers if (target := machine.run(state, piece)) >= 0]
            if not ways or rng.random() < 0.6:
                ways = [(piece, target) for piece in (*pieces, *closers) if (target := machine.run(state, piece)) >= 0]
            piece, state = rng.choice(ways)
            text += piece
    assert finished > 5


fields = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(st.lists(fields, min_size=1, max_size=6), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_csv_row_takes_what_python_writes(row: list[str], quoting: Any):
    written = io.StringIO()
    csv.writer(written, quoting=quoting).writerow(row)
    assert GRAMMARS["csv_row"].accepts(written.getvalue().removesuffix("\r\n"))


@given(st.text(alphabet='a,"\n', max_size=10))
def test_csv_row_takes_only_one_row(text: str):
    if text and GRAMMARS["csv_row"].accepts(text):
        assert len(list(csv.reader(io.StringIO(text, newline=""), strict=True))) == 1


@pytest.mark.parametrize(
    ("name", "near"), [("semvar", ("semver",)), ("zzzz", ()), ("../pyproject", ()), ("json.lark", ("json",)), ("contact", ()), ("", ())]
)
def test_unknown_name_is_refused_with_near_matches(name: str, near: tuple[str, ...]):
    with pytest.raises(schemas.UnknownGrammar) as refusal:
        schemas.load_grammar(name)
    assert isinstance(refusal.value, FormcastError) and isinstance(refusal.value, KeyError)
    assert refusal.value.name == name
    assert refusal.value.near[:1] == near
    assert (near or schemas.grammar_names())[0] in str(refusal.value)
