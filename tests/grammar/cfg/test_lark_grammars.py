"""Lark grammars: conformance tables checked against lark itself, errors, and random grammars with lark as the oracle."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import lark
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formcast import GrammarError, LimitError, Limits
from formcast.grammar.cfg import compile_cfg, parse_lark


class Oracle:
    def __init__(self, text: str, start: str = "start"):
        self._lark = lark.Lark(text, parser="earley", lexer="dynamic", ambiguity="forest", start=start)

    def __call__(self, text: str) -> bool:
        try:
            self._lark.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True


class Case(NamedTuple):
    grammar: str
    accepted: list[str]
    rejected: list[str]


CASES = {
    "keywords": Case('start: "a" | "B"i "c"', ["a", "bc", "Bc"], ["", "A", "ac", "bC"]),
    "longest": Case('start: A "b" | "c"\nA: /[ab]+/', ["c"], ["ab", "aab", "b"]),
    "names touch": Case('start: NAME NAME\nNAME: /[a-z]+/\n%ignore " "', ["a b", " ab  c "], ["ab", "a", "a b c"]),
    "keyword and name": Case('start: "let" NAME\nNAME: /[a-z]+/\n%ignore " "', ["let x", "letx"], ["let", "le t x"]),
    "number and dot": Case(r'start: N "." "x"' + "\n" + r"N: /[0-9]+(\.[0-9]+)?/", ["1.x", "1.2.x"], ["1x", "1.2x", "1..x"]),
    "first branch wins": Case("start: A B\nA: /a|ab/\nB: /b?c/", ["abc", "ac"], ["abbc", "ab"]),
    "joined without a group": Case('start: A\nA: /a|b/ "c"', ["a", "bc"], ["ac", "b"]),
    "longer alternative first": Case('start: A "c"?\nA: "a" | "ab" | "abc"', ["a", "ab", "abc", "abcc"], ["abccc", "ac!", "b"]),
    "lazy": Case('start: S+\nS: /".*?"/', ['"a"', '"a""b"'], ['"', '"a', '"a"b']),
    "possible ends": Case("start: (A | B | C)+\nA: /cc/\nB: /c+d+q/\nC: /d+w/", ["cc", "ccdq", "ccddw", "ccccdq"], ["ccd", "dq", "c"]),
    "look behind": Case(
        "start: STRING+\n%import common.ESCAPED_STRING -> STRING", ['"a"', '"\\""', '"\\\\""b"'], ['"\\"', '"a""', '"a\n"']
    ),
    "look ahead": Case("start: A /b+/\nA: /a(?!bb)/", ["ab"], ["abb", "a"]),
    "word boundary": Case(r'start: /if\b/ /[a-z ]+/', ["if x", "if  "], ["ifx", "if"]),
    "not a keyword": Case(r'start: NAME ("," NAME)*' + "\n" + r"NAME: /(?!(?:if|else)\b)[a-z]+/", ["a", "iff,elsex"], ["if", "a,else"]),
    "ignored": Case('start: "a" "b" | "a"*\n%ignore /[ \\t]+/\n%ignore "#"', ["", " ", "a b", " a # # b ", "#"], ["ba", "abb", "a-b"]),
    "ignored text is greedy": Case('start: "a" WS? "b"\nWS: /[ \\n]+/\n%ignore / +/', ["ab", "a b", "a \nb", "a  \n b"], ["a", "ba"]),
    "comments": Case(
        "start: X+\nX: /[a-z*\\/]/\n%import common.C_COMMENT\n%import common.CPP_COMMENT\n%ignore C_COMMENT\n%ignore CPP_COMMENT",
        ["a/* x */b", "a//c", "/*", "//"],
        ["/* x */", ""],
    ),
    "arithmetic": Case(
        """
        ?start: sum
        ?sum: product | sum "+" product -> add | sum "-" product -> sub
        ?product: atom | product "*" atom -> mul | product "/" atom -> div
        ?atom: NUMBER -> number | "-" atom -> neg | NAME -> var | "(" sum ")"
        %import common.CNAME -> NAME
        %import common.NUMBER
        %import common.WS_INLINE
        %ignore WS_INLINE
        """,
        ["1", "1 + 2 * x", "-(a - -b) / 3.5e2", " 1.+.5 ", "x1"],
        ["", "+", "1 2", "(1", "1x y", "1 +"],
    ),
    "json": Case(
        """
        ?start: value
        ?value: object | array | string | SIGNED_NUMBER -> number | "true" -> true | "false" -> false | "null" -> null
        array : "[" [value ("," value)*] "]"
        object : "{" [pair ("," pair)*] "}"
        pair : string ":" value
        string : ESCAPED_STRING
        %import common.ESCAPED_STRING
        %import common.SIGNED_NUMBER
        %import common.WS
        %ignore WS
        """,
        ["{}", '{"a": [1, -2.5, true, "x\\"y"]}', ' [ [ ] ]\n', '"a"', "01"],
        ["", "{", "[1,]", '{"a"}', "tru", '"a'],
    ),
    "templates": Case(
        """
        start: list{NUMBER, ";"} | "<" _sep{pair{NAME}, ","} ">"
        list{item, end}: (item end)+
        _sep{item, delim}: item (delim item)*
        pair{x}: x "=" x
        NAME: "a".."z"
        NUMBER: /[0-9]/+
        """,
        ["1;", "12;3;", "<a=b>", "<a=b,c=d>"],
        ["1", ";", "<>", "<a>", "<a=b,>", "a=b"],
    ),
    "template as an argument": Case(
        'start: both{wrap, A}\nboth{t, x}: t{x} "-" t{x}\nwrap{y}: "(" y ")"\nA: "a"', ["(a)-(a)"], ["(a)", "a-a"]
    ),
    "repetition": Case('start: "a"~2 "b"~1..3 (A "!")~0..2\nA: "c"~2', ["aab", "aabbb", "aabcc!cc!"], ["ab", "aabbbb", "aabcc", "aabcc!cc!cc!"]),
    "options": Case('start: ["a"] ["b" | "c"]+ ["x" "y"]*', ["", "a", "bcb", "axyxy"], ["aa", "x", "axya"]),
    "empty alternatives": Case("start: x y\nx: | A\ny: B |\nA: /a/\nB: /b/", ["", "a", "b", "ab"], ["ba", "aa"]),
    "left recursion": Case('start: start "a" | x\nx: start "b" | "c"', ["c", "cabba"], ["", "a", "cc"]),
    "hidden left recursion": Case('start: n start "x" | "a"\nn: "n" |', ["a", "ax", "naxx", "nnaxx"], ["n", "nna", "xa"]),
    "ambiguous": Case('start: start start | "a" | "b"', ["a", "abba"], ["", "c"]),
    "flags": Case("start: A B C\nA: /a/i\nB: /b./s\nC: /c  # a comment\n d/x", ["Ab\ncd", "abxcd"], ["ab\ncxd", "abcd"]),
    "escapes": Case(r'start: "\n\t\"\\\x41\u00e9" | /\x62\//', ['\n\t"\\Aé', "b/"], ["n", "b"]),
    "ranges": Case(r'start: ("a".."f" | "\u0430".."\u044f")+', ["abcf", "дом"], ["g", "", "A"]),
    "unicode": Case(r"start: /\w+/ /[^\W\d]+/?", ["été", "日本", "a1"], ["-", ""]),
    "extend": Case("start: A x\n%import common.INT -> A\nx: \"x\"\n%extend x: \"y\"", ["1x", "12y"], ["1", "z"]),
    "override": Case("start: N\n%import common.NUMBER -> N\n%override N: /[ab]/", ["a", "b"], ["1"]),
    "priorities": Case("start: A | B\nA.2: /ab?/\nB.-1: /ab*c?/\n", ["a", "ab", "abc", "abbb"], ["b", "ac!"]),
    "modifiers": Case('!start: _x y*\n_x: "a"\n?y: "b" -> z', ["a", "abb"], ["b"]),
    "continued lines": Case('start: "a"   // one\n  # two\n\n     | "b" \\\n  "c"\n     | "d"', ["a", "bc", "d"], ["b", "ad"]),
    "library rules": Case("start: string number?\n%import python (string, number)", ["'a'", '"b"1', "r'x'0x1f"], ["1", "'a", "'a'01"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_lark_grammars_accept_what_lark_accepts(acceptor, name: str):
    case = CASES[name]
    accepts, oracle = acceptor(parse_lark(case.grammar)), Oracle(case.grammar)
    texts = [*case.accepted, *case.rejected]
    assert [oracle(text) for text in texts] == [True] * len(case.accepted) + [False] * len(case.rejected), "the table is wrong"
    assert [(text, accepts(text)) for text in texts] == [(text, oracle(text)) for text in texts]


def test_the_start_can_be_named(acceptor):
    accepts = acceptor(parse_lark('top: "a"\nstart: "b"', "top"))
    assert accepts("a") and not accepts("b")


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ('start: "a', 7, "unexpected"),
        ('start "a"', 6, "unexpected"),
        ('start: ("a"', 11, "end of the grammar"),
        ('start: "a")', 10, "unexpected"),
        ("start: x", 7, "rule x is used but not defined"),
        ("start: X", 7, "terminal X is used but not defined"),
        ('start: exprs\nexpr: "a"', 7, "expected expr"),
        ('start: "a"\nstart: "b"', 11, "defined twice"),
        ('x: "a"', None, "rule start is used but not defined"),
        ('start: A\nA: B\nB: "b" A', 9, "uses itself"),
        ('start: A\nA: x\nx: "b"', 12, "uses the rule x"),
        ("start: A\nA: /b*/", 9, "empty text"),
        ("start: /(a/", 7, "not closed"),
        ('start: ""', 7, "may not be empty"),
        ('start: "a" start', 0, "never ends"),
        ('start: "ab".."c"', 7, "single characters"),
        ('start: "a"~3..2', 10, "out of order"),
        ("start: A\n%declare A", 18, "no pattern"),
        ("start: A\n%import common.NOTHING -> A", 9, "NOTHING is used but not defined"),
        ("start: A\n%import other.A", 9, "no library grammar"),
        ("start: A\n%import .other.A", 9, "files"),
        ('start: "a"\n%unknown x', 11, "unknown"),
        ('start: t{"a"}\nt{x, y}: x y', 7, "takes 2 arguments"),
        ("start: t\nt{x}: x", 7, "needs arguments"),
        ('?_x: "a"\nstart: _x', 1, "inlined"),
        ('start: A\nA: "a" -> b', 16, "alias"),
        ("start: A A\nA: /a+/", None, "no text satisfies"),
        ("start: /a++/", 7, "possessive"),
        (r"start: /(a)\1/", 7, "backreference"),
        ("start: /(?<=x)a/", 7, "before a terminal"),
    ],
)
def test_errors_name_the_place(text: str, position: int | None, part: str):
    with pytest.raises(GrammarError) as caught:
        compile_cfg(parse_lark(text))
    assert part in str(caught.value) and caught.value.position == position


@pytest.mark.parametrize(
    "text",
    [
        "start: " + "(" * 3_000 + '"a"' + ")" * 3_000,
        "start: " + '("x" ' * 3_000 + '"a"' + ")" * 3_000,
        "start: " + "(" * 3_000 + '"a"' + ' "x")?' * 3_000,
        'start: "a"' + "\n" * 200_000,
        'start: "a"' + "  \n" * 20_000 + "// end",
        "start: " + " | ".join(f'"k{i}"' for i in range(5_000)),
        "start: x\n" + "x: " + " | ".join(f'"a" x "b{i}"' for i in range(2_000)) + ' | "c"',
        "start: " + '"k" ' * 8_000,
        "start: " + "[A] " * 3_000 + '\nA: "a"',
        "start: x0\n" + "\n".join(f"x{i}: x{i + 1} x{i + 1}" for i in range(200)) + '\nx200: "z" |',
        'start: x~0..3000 "b"\nx: "(" x ")" | "a"',
        "start: A\nA: /a/~1..100000",
    ],
    ids=[
        "nested",
        "nested right",
        "nested left",
        "blank",
        "blanks",
        "wide",
        "factored",
        "long",
        "optional",
        "doubling",
        "counted",
        "counted terminal",
    ],
)
def test_hostile_grammars_are_read(text: str):
    compile_cfg(parse_lark(text))


@pytest.mark.parametrize(
    "text",
    [
        "start: " + "(" * 30_000,
        "start: /" + "\\\\" * 100_000,
        'start: "' + "\\" * 100_001,
        "start: A0\n" + "\n".join(f"A{i}: A{i + 1} A{i + 1}" for i in range(40)) + '\nA40: "z"',
        "start: /" + "(?:" * 1_000 + "a" + ")" * 1_000 + "/",
        "start: t{A}\nt{x}: x t{t{x}}\nA: \"a\"",
        "start: A~1000000000 B\nA: /a+/\nB: /[ab]/",
        'start: A "a"\nA: /a/~1..100000',
    ],
    ids=["open", "backslashes", "quote", "doubling terminals", "deep pattern", "endless template", "counted", "counted terminal"],
)  # fmt: skip
def test_hostile_grammars_are_refused(text: str):
    with pytest.raises(GrammarError):
        compile_cfg(parse_lark(text, limits=Limits(max_steps=200_000, max_states=2_000)), Limits(max_steps=200_000, max_states=2_000))


def test_a_grammar_over_the_budget_is_refused():
    with pytest.raises(LimitError, match="max_bytes"):
        parse_lark('start: "é"', limits=Limits(max_bytes=10))


# --- lark as the oracle --------------------------------------------------------------------------------------------

_TERMINALS = [
    '"a"', '"ab"', '"c"i', "/a+/", "/[ab]+/", "/a*b/", "/b|bc/", "/a.*?b/", "/c+?/", "/(ab)+c?/", "/a(?!b)/", "/b(?=c)/",
    r"/c\b/", "/ab?c?/", '"a".."b"', "/[^a]c?/", "/ab(?<!ab)c?|bc(?<=c)a?/", "/a(b|bc)(c|)/", "A", "B",
    "/a{1,3}/", "/(a|b){2,3}c?/", "/b(a|bb)*b/", "/(?!ab)[ab]{1,2}/", "/a(ab){0,2}/", "/ab{0,2}c|c(?!a|b)/", "/(b|ba|a)+/", "/(a|b(?!bc))+/",
]  # fmt: skip
_DEFINITIONS = ['A: "a" | "ab"\nB: A "b"', 'A: /a/ "b"*\nB: /[bc]+/ "a"', 'A: "b"+ | /c/\nB: "c" A?', 'A: ("a"|"b") "c"?\nB: A~1..2']
_IGNORED = ["", "", '\n%ignore " "', "\n%ignore / +/", '\n%ignore "c"', "\n%ignore A", '\n%ignore " "\n%ignore /c+ /']


@st.composite
def lark_grammars(draw: st.DrawFn) -> str:
    names = ["start", "x", "y"][: draw(st.integers(1, 3))]
    atoms = st.sampled_from([*_TERMINALS, *names])

    def expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        sequence = st.lists(inner, min_size=1, max_size=3).map(" ".join)
        group = st.lists(sequence, min_size=1, max_size=2).map(" | ".join)
        return st.one_of(
            group.map("({})".format),
            group.map("[{}]".format),
            st.tuples(group, st.sampled_from(["*", "+", "?", "~2", "~0..2"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
        )

    element = st.recursive(atoms, expressions, max_leaves=4)
    alternatives = st.lists(st.lists(element, max_size=3).map(" ".join), min_size=1, max_size=3).map(" | ".join)
    rules = "\n".join(f"{name}: {draw(alternatives)}" for name in names)
    return f"{rules}\n{draw(st.sampled_from(_DEFINITIONS))}{draw(st.sampled_from(_IGNORED))}"


@lru_cache(maxsize=4)
def _texts() -> tuple[str, ...]:
    texts = [""]
    for _ in range(4):
        texts.extend(text + char for text in texts[:] for char in "abc ")
    return tuple(dict.fromkeys(texts))


@settings(max_examples=40, deadline=None)
@given(lark_grammars(), st.lists(st.text("abcC ", max_size=8), max_size=10))
def test_random_grammars_accept_what_lark_accepts(acceptor, text: str, longer: list[str]):
    try:
        oracle = Oracle(text)
    except (lark.exceptions.LarkError, AssertionError):
        assume(False)
        return
    try:
        accepts = acceptor(parse_lark(text))
    except GrammarError as error:
        assert "satisf" in str(error) or "never ends" in str(error)
        accepts = None
    for sample in (*_texts()[:90], *longer):
        try:
            expected = oracle(sample)
        except RuntimeError:  # lark's own "please report this bug"
            assume(False)
        assert (accepts is not None and accepts(sample)) == expected, sample
