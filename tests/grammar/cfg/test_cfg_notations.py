"""GBNF and EBNF: conformance tables, and where errors are found."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from formcast import Grammar, GrammarError, LimitError, Limits
from formcast.grammar.cfg import compile_cfg, inspect_grammar, parse_ebnf, parse_gbnf


class Case(NamedTuple):
    grammar: str
    accepted: list[str]
    rejected: list[str]


JSON_GBNF = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"""

GBNF = [
    Case('root ::= "a"', ["a"], ["", "aa", "b", "A"]),
    Case('root ::= "yes" | "no"', ["yes", "no"], ["", "y", "yesno", "yes "]),
    Case('root ::= "a"? "b"* "c"+', ["c", "ac", "bbc", "abbcc"], ["", "ab", "aac", "cb"]),
    Case('root ::= "a"{2} "b"{1,3} "c"{2,}', ["aabcc", "aabbbcccc"], ["abcc", "aabbbbcc", "aabc", "aaabcc"]),
    Case('root ::= "a"{0,2}', ["", "a", "aa"], ["aaa"]),
    Case("root ::= [a-cx-] [^a-c]", ["ad", "x-", "-é", "b\n"], ["aa", "yd", "a", "add"]),
    Case(r'root ::= [\]\\"\x41\u00e9\U0001F600]+', ["]", "\\", '"', "Aé😀"], ["[", "a", "e"]),
    Case(r'root ::= "\n\r\t\"\\\x41\u65e5\U0001F600"', ['\n\r\t"\\A日😀'], ["\n", "nrt"]),
    Case('root ::= . "x"', ["ax", "😀x", "\nx"], ["x", "xxx", "ab"]),
    Case(
        "root ::= [\u03b1-\u03c9\u1f00-\u1ffc]{2,3}", ["\u03b1\u03b2", "\u03c9\u1f00\u03b2"], ["\u03b1", "ab", "\u03b1\u03b2\u03b3\u03b4"]
    ),
    Case("# only a comment first\nroot ::= sp num # behind\n\nsp ::= [ ]*\n# between\nnum ::= [0-9]+\n", ["1", "  23"], ["", " ", "1 "]),
    Case('root ::= "(" root ")" | "x"', ["x", "((x))"], ["", "()", "((x)", "x)"]),
    Case('root ::= root "+" n | n\nn ::= [0-9]', ["1", "1+2+3"], ["", "+1", "1+", "12"]),
    Case('root ::= a "x" | "y"\na ::= b | root\nb ::= root "z"', ["y", "yx", "yzx", "yxzxx"], ["x", "yz", "yzz"]),
    Case('root ::= opt root "a" | "b"\nopt ::= "c"?', ["b", "ba", "cba", "ccbaaa"], ["c", "cb", "a", "bac", "ccba"]),
    Case('root ::= root root | "a" | ""', ["", "a", "aaaaa"], ["b", "ab"]),
    Case('root ::= e\ne ::= [0-9]+ | e ("-" | "*") e', ["7", "7-8", "1*2-3*4"], ["-7", "7-", "7--8", ""]),
    Case('root ::= list\nlist ::= item | item "," list\nitem ::= [a-z]+ ("=" [0-9]+)?', ["a", "a,b=1", "x=12,y"], ["", "a,", "=1", "a=b"]),
    Case('root ::= "a" root "b" | ""', ["", "ab", "aaabbb"], ["a", "abab", "aabbb"]),
    Case(JSON_GBNF, ["{}", '{"a":1}', '{"a": [1, 2.5e1, "x\\n", {}]}', '{"é": null}\n\t'], ["", "{", "[]", '{"a":}', '{"a":01}', "{a:1}"]),
    Case('root ::= x{3,5}\nx ::= "(" x ")" | "a"', ["aaa", "(a)aa((a))a"], ["aa", "aaaaaa", "(aaa)"]),
    Case('root ::= (x x?){2}\nx ::= "(" x ")" | "a"', ["aa", "aaaa", "(a)a(a)"], ["a", "aaaaa"]),
    Case('root ::=\n  "a"\n  | "b" |\n "c"\nother-rule_2 ::= "d"', ["a", "b", "c"], ["d", ""]),
    Case('root ::= "i" root ("e" root)? | "x"', ["x", "ix", "iixex", "iixexex"], ["", "i", "xe", "ixexex"]),
    Case('root ::= [ab] root [ab] | ""', ["", "ab", "aabb"], ["a", "aba"]),
    Case('root ::= ([0-9] ","?)+', ["1", "1,", "1,23"], ["", ",", "1,,2"]),
    Case('root ::= "" | "a" root', ["", "a", "aaa"], ["b", "ab"]),
]

EBNF = [
    Case('root ::= greeting " " name\ngreeting ::= "hello" | \'hi\'\nname ::= [A-Z] [a-z]*', ["hello Bob", "hi A"], ["hello", "hi bob"]),
    Case("root ::= #x41 [#x61-#x63]+ /* W3C characters */", ["Aa", "Aabc"], ["a", "Ad", "A"]),
    Case("root ::= [a-z]+ - 'if'", ["i", "ifx", "else"], ["if", "", "A"]),
    Case("root ::= ([^<&]* - ([^<&]* ']]>' [^<&]*)) '!'", ["!", "a]]b!", "]]!"], ["a]]>b!", "<!", "a"]),
    Case("root ::= (name - ('if' | 'else'))+ ';'\nname ::= [a-z]+", ["a;", "iff;", "elsex;"], [";", "A;"]),
    Case("root ::= a.b-c x_1\na.b-c ::= 'p'\nx_1 ::= 'q'", ["pq"], ["p", "q"]),
    Case("root ::= 'it''s' \"\\\"\" '\"' '\\''", ["its\"\"'"], ["it's"]),
    Case("root ::= a* b+ c?\na ::= 'a'\nb ::= 'b'\nc ::= 'c'", ["b", "aabbc"], ["", "ac", "abcc"]),
    Case("root ::= #x20* (\"x\" # a comment\n| /* another\n ** one **/ 'y')", ["x", "  y"], ["", "xy", "x "]),
    Case("root ::= s\ns ::= '[' (s (',' s)*)? ']'", ["[]", "[[],[[]]]"], ["", "[", "[,]", "[]]"]),
    Case("root ::= line+\nline ::= word (' ' word)* '\\n' | 'if ' word (' ' word)* '\\n'\nword ::= [a-z]+", ["if a b\nc d\n", "if if\n", "x\n"], ["A\n", "if \n", "a"]),
    Case("root ::= s s s | s s | 'a' s\ns ::= 'a' s 'b' | ''", ["", "ab", "aabbab", "aab", "ababab", "a"], ["b", "aaab", "abababab"]),
    Case("root ::= 'a'{2,3}{2}", ["aaaa", "aaaaa", "aaaaaa"], ["aaa", "aaaaaaa"]),
    Case("root ::= e\ne ::= e ('+' | '-') t | t\nt ::= t '*' f | f\nf ::= '(' e ')' | [0-9]", ["1", "1+2*3", "(1-2)*3"], ["", "1+", "(1", "12"]),
    Case("root ::= ('a' | 'b' root 'c')*", ["", "aa", "bac", "babcca"], ["b", "bc c", "abca b"]),
    Case("root ::= [#x30-#x39]{2} ':' [#x30-#x39]{2}", ["12:30"], ["1:30", "12:3", "12-30"]),
    Case("root ::= [^#x20-#x7E]+", ["é日😀", "\t"], ["", "a", "éa"]),
    Case("root ::= 'a' root? 'b'?", ["a", "ab", "aab", "aabb"], ["", "b", "abb", "aba"]),
    Case("root ::= ([a-z]+ - ('do' | 'if')) '.'", ["d.", "dot.", "i.", "iff."], ["do.", "if.", "."]),
    Case("root ::= '<' name '>' content '</' name '>'\nname ::= [a-z]+\ncontent ::= ([^<] | root)*", ["<a></b>", "<a>x<b>y</b></a>"], ["<a>", "<a><b></a>", "<></>"]),
    Case("root ::= row ('\\n' row)*\nrow ::= cell (',' cell)*\ncell ::= [^,;#xA]*", ["", "a,b", "a\nb,,c\n"], [";", "a,b;", "a\n;"]),
    Case("root ::= 'x'{0} 'y'{1} 'z'{0,1}", ["y", "yz"], ["xy", "yzz", ""]),
    Case("root ::= p\np ::= 'a' p 'a' | 'b' p 'b' | 'c'", ["c", "aca", "abcba"], ["", "ac", "abcab"]),
    Case("root ::= x y\nx ::= x 'a' | ''\ny ::= 'a' y | 'b'", ["b", "aaab"], ["", "a", "ba"]),
    Case("root ::= 'a'+ 'b'+ | 'c' root 'c'", ["ab", "aabb", "cabc"], ["a", "cab", "abc"]),
    Case("root ::= /* nothing */ ( /* none */ 'a' # end\n)", ["a"], ["", "aa"]),
]  # fmt: skip


@pytest.mark.parametrize("case", GBNF, ids=range(len(GBNF)))
def test_gbnf_accepts_exactly(acceptor, case: Case):
    accepts = acceptor(parse_gbnf(case.grammar))
    assert [text for text in case.accepted if not accepts(text)] == []
    assert [text for text in case.rejected if accepts(text)] == []


@pytest.mark.parametrize("case", EBNF, ids=range(len(EBNF)))
def test_ebnf_accepts_exactly(acceptor, case: Case):
    accepts = acceptor(parse_ebnf(case.grammar))
    assert [text for text in case.accepted if not accepts(text)] == []
    assert [text for text in case.rejected if accepts(text)] == []


def test_the_root_can_be_named(acceptor):
    assert acceptor(parse_gbnf('top ::= "a"\nroot ::= "b"', root="top"))("a")
    assert acceptor(parse_ebnf("document ::= 'a'", root="document"))("a")


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ('root ::= "a', 9, "not closed"),
        ("root ::= [a", 9, "not closed"),
        ('root ::= ("a"', 9, "not closed"),
        ('root ::= "a")', 12, "unexpected ')'"),
        ('root = "a"', 5, "unexpected '='"),
        ('root ::= "a"\n::= "b"', 13, "unexpected ':'"),
        ("root ::= other", 9, "'other' is used but not defined"),
        ('root ::= "a"\nroot ::= "b"', 13, "defined twice"),
        ('top ::= "a"', 11, "no rule 'root'"),
        ("", 0, "no rule 'root'"),
        ('root ::= "\\q"', 10, "escape"),
        ('root ::= "\\x4"', 10, "hexadecimal"),
        ('root ::= "\\uD800"', 10, "not a Unicode character"),
        ("root ::= [z-a]", 9, "out of order"),
        ('root ::= "a"{3,2}', 12, "out of order"),
        ('root ::= "a"{x}', 13, "unexpected 'x'"),
        ('root ::= "a"{2', 14, "end of the grammar"),
        ('root ::= "a" root', 0, "'root' never ends"),
        ('root ::= x\nx ::= "b" y\ny ::= x', 23, "never ends"),
        ("root ::= [^\\x00-\\U0010FFFF]", 0, "never ends"),
        ("root ::= !<think>", 9, "token"),
        ('root ::= "a" (="b")', 13, "assertion"),
        ("root ::= \ud800", 9, "surrogate"),
    ],
)
def test_gbnf_errors_name_the_place(text: str, position: int, part: str):
    with pytest.raises(GrammarError) as caught:
        parse_gbnf(text)
    assert part in str(caught.value) and caught.value.position == position


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ("root ::= 'a' - ", 15, "end of the grammar"),
        ("root ::= 'a' | - 'b'", 15, "unexpected '-'"),
        ("root ::= ('a' -) 'b'", 15, "unexpected"),
        ("root ::= x - 'a'\nx ::= '(' x ')' | 'a'", 11, "regular"),
        ("root ::= 'a' - 'a'", 0, "never ends"),
        ("root ::= 'a' /* no end", 13, "comment"),
        ("root ::= #xD800", 9, "not a Unicode character"),
        ("root ::= #x110000", 9, "not a Unicode character"),
    ],
)
def test_ebnf_errors_name_the_place(text: str, position: int, part: str):
    with pytest.raises(GrammarError) as caught:
        parse_ebnf(text)
    assert part in str(caught.value) and caught.value.position == position


def test_an_error_says_what_could_have_stood_there():
    with pytest.raises(GrammarError) as caught:
        parse_gbnf('root ::= "a" ("b" @')
    assert caught.value.position == 18
    assert {"a string", "a class", "(", ")", "|"} <= set(caught.value.expected)


def test_rules_without_a_part_in_any_sentence_are_reported_and_harmless(acceptor):
    grammar = parse_gbnf('root ::= "a" | "b" loop | x\nloop ::= "c" loop\nx ::= "x"\nlone ::= "d" other\nother ::= "e"')
    findings = inspect_grammar(grammar)
    assert findings.unproductive == ("loop",)
    assert findings.unreachable == ("lone", "other")
    accepts = acceptor(grammar)
    assert accepts("a") and accepts("x")
    machine, start = compile_cfg(grammar)
    assert machine.run(start, b"b") < 0  # the alternative that never ends is not begun


def test_a_grammar_explains_which_rules_are_in_no_text():
    text = "root ::= 'a' | 'b' loop\nloop ::= 'c' loop\nlone ::= 'd'"
    found = {(one.keyword, one.status): one.reason for one in Grammar.ebnf(text).explain()}
    assert found == {("loop", "unused"): "no finite text is derived from it", ("lone", "unused"): "the rule root never leads to it"}
    lark = Grammar.lark('start: "a" | "b" loop\nloop: "c" loop\nlone: other\nother: "d"\nt{x}: x')
    assert [one.keyword for one in lark.explain()] == ["loop", "lone", "other", "t"]
    assert Grammar.gbnf('root ::= "a"').explain() == []


@pytest.mark.parametrize("parse", [parse_gbnf, parse_ebnf])
@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("root ::= " + "(" * 3_000 + '"a"' + ")" * 3_000, "a"),
        ("root ::= " + '("x" ' * 3_000 + '"a"' + ")" * 3_000, None),
        ("root ::= " + "(" * 3_000 + '"a"' + ' "x")?' * 3_000, "xx"),
        ("root ::= " + "(" * 2_000 + '"a"' + ' "x" | root "y")' * 2_000, None),
        ('root ::= "a"' + "\n" * 200_000, "a"),
        ("root ::= " + " | ".join(f'"k{i}"' for i in range(5_000)), "k4999"),
        ("root ::= " + '"k" ' * 8_000, None),
        ('root ::= a0 "!"\n' + "\n".join(f"a{i} ::= a{i + 1} a{i + 1}" for i in range(200)) + '\na200 ::= "z" | root', "zz!"),
        ('root ::= a0 "!"\n' + "\n".join(f"a{i} ::= a{i + 1}? a{i + 1}?" for i in range(40)) + '\na40 ::= "z" root', "!"),
    ],
    ids=["nested", "nested right", "nested left", "nested both", "blank", "wide", "long", "doubling", "doubling options"],
)
def test_hostile_grammars_are_read(acceptor, parse, text: str, accepted: str | None):
    accepts = acceptor(parse(text))
    if accepted is not None:
        assert accepts(accepted) == (accepted != "zz!")


@pytest.mark.parametrize(
    "text", ["(" * 100_000, '"' * 100_000, "root ::= " + "(" * 30_000, 'root ::= "' + "\\\\" * 100_000, "root ::= " + "[" * 30_000]
)
def test_hostile_text_is_refused(text: str):
    for parse in (parse_gbnf, parse_ebnf):
        with pytest.raises(GrammarError):
            parse(text)


def test_a_grammar_over_the_budget_is_refused():
    with pytest.raises(LimitError, match="max_bytes"):
        parse_gbnf('root ::= "é"', limits=Limits(max_bytes=12))


def test_deep_nesting_and_long_iteration_take_constant_states(acceptor):
    accepts = acceptor(parse_gbnf('root ::= "(" root ")" | "x"'))
    assert accepts("(" * 10_000 + "x" + ")" * 10_000)
    machine, start = compile_cfg(parse_ebnf("root ::= e\ne ::= [0-9]+ | e ('-' | '*') e"))
    warm = machine.run(start, b"1-2*3-4")
    assert machine.run(start, b"1-2*3-4" + b"-5*6" * 5_000 + b"-4") in (warm, machine.run(start, b"1-4"))


def test_counted_repetition_of_a_nested_rule_is_made_on_demand(acceptor):
    grammar = parse_gbnf('root ::= x{2,1000000000} "b"\nx ::= "(" x ")" | "a"')
    accepts = acceptor(grammar)
    assert accepts("a(a)((a))b") and not accepts("ab")
