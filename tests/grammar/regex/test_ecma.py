r"""The ECMA-262 dialect: meaning by table, equivalence with an independent automata library, refusals with positions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formcast.grammar.errors import GrammarError
from formcast.grammar.regex import Language

# (pattern, texts in which it is found, texts in which it is not)
SEARCH_ROWS = [
    ("", ["", "a"], []),
    ("b", ["b", "abc", "\nb\n"], ["", "a"]),
    ("^a", ["a", "ab"], ["ba", "b\na"]),
    ("a$", ["a", "ba"], ["ab", "a\n"]),
    ("^a|b$", ["ax", "xb"], ["xa", "bx"]),
    ("^(a|b)$", ["a", "b"], ["ab", "a\n"]),
    ("(^a|b)c", ["ac", "xbc"], ["xac"]),
    ("a(b|$)", ["ab", "a", "xa"], ["ac"]),
    ("^$", [""], ["a", "\n"]),
    ("$^", [""], ["a"]),
    ("^[a-z0-9]+(-[a-z0-9]+)*$", ["a", "a-b", "a1-b2-c3"], ["", "-a", "a-", "a--b", "A"]),
    (r"^\S(|(.|\n)*\S)$", ["a", "a b", "a\nb"], ["", " a", "a "]),
    (r"\bfoo\b", ["foo", "a foo b", "éfoo"], ["afoo", "foo1"]),
    (r"\Bfoo", ["afoo"], ["foo", "-foo"]),
    (r"\B", ["", "aa", "  "], ["a"]),
    ("^(?!foo)", ["bar", "fo", ""], ["foo", "foobar"]),
    ("^(?=.*[A-Z])(?=.*[0-9]).{3,5}$", ["aB1", "1Bccc"], ["abc", "B1", "aB1ccc"]),
    ("^(?!.*(foo|bar)).*$", ["", "fo", "ba"], ["foo", "xbarx"]),
    ("(?<=a)b", ["ab"], ["b", "cb"]),
    ("(?<!a)b", ["b", "cb"], ["ab"]),
    ("(?<=^|,)x", ["x", "a,x"], ["ax"]),
    ("(?<=a+)b", ["ab", "aab"], ["b"]),
    ("^(?:(?!--).)*$", ["", "a-b-"], ["a--b"]),
    ("^(?:(?!a)[ab]|a(?=b))*$", ["", "b", "ab", "abab"], ["a", "aa", "ba"]),
    (r"^(?:\b[a-z]+\b ?)*$", ["", "ab cd", "ab "], ["ab  cd", "1"]),
    (r"(?=a)(?=.b)", ["ab", "xab"], ["a", "ba"]),
]

FULL_ROWS = [
    ("a.c", ["abc", "a\U0001f600c", "a\x85c"], ["a\nc", "a\rc", "a\u2028c", "a\u2029c"]),
    ("[^]", ["a", "\n", "\U0010ffff"], ["", "ab"]),
    ("[]", [], ["", "a"]),
    ("a[]|b", ["b"], ["a"]),
    ("[^a]", ["b", "\n"], ["a", ""]),
    ("[a-]", ["a", "-"], ["b"]),
    ("[-a]", ["a", "-"], ["b"]),
    ("[a-c-e]", ["b", "-", "e"], ["d"]),
    ("[--/]", ["-", ".", "/"], [","]),
    ("[[a]", ["[", "a"], ["]"]),
    ("[a^]", ["a", "^"], ["b"]),
    (r"[\w-.]", ["a", "-", "."], ["/", ","]),
    (r"[\w-z.]", ["a", "-", "."], ["/"]),
    (r"[.-\w]", ["a", "-", "."], ["/"]),
    (r"[\]\\]", ["]", "\\"], ["["]),
    (r"[\b]", ["\b"], ["b"]),
    (r"[\d\s]", ["1", " "], ["a"]),
    (r"[^\d\s]", ["a"], ["1", " "]),
    (r"[\u0041-\u0043]", ["A", "C"], ["D"]),
    (r"[\ud83d\ude00-\ud83d\ude02]", ["\U0001f600", "\U0001f602"], ["\U0001f603"]),
    (r"\ud83d\ude00", ["\U0001f600"], ["\ud83d"]),
    (r"\ud83d", [], ["a", "\U0001f600"]),
    (r"\ud83da", [], ["a"]),
    (r"[\ud800-\udfff]", [], ["a", "\U0001f600"]),
    (r"\u{1F600}\u{41}\u{000041}", ["\U0001f600AA"], ["\U0001f600"]),
    (r"\x41\u0042", ["AB"], ["ab"]),
    (r"\t\n\v\f\r\0", ["\t\n\v\f\r\0"], ["tnvfr0"]),
    (r"\cA\cz\cJ", ["\x01\x1a\n"], ["AzJ"]),
    (r"\d", ["0", "9"], ["a", "٣"]),
    (r"\D", ["a", "٣"], ["0"]),
    (r"\w", ["a", "Z", "0", "_"], ["é", "-", "\u017f"]),
    (r"\W", ["é", "-"], ["a", "_"]),
    (r"\s", [" ", "\t", "\v", "\xa0", "\ufeff", "\u2028", "\u3000", "\u1680", "\u200a"], ["\x85", "\x1c", "\u200b", "\u180e"]),
    (r"\S", ["a", "\x85", "\u200b"], [" ", "\ufeff"]),
    ("a{2}", ["aa"], ["a", "aaa"]),
    ("a{2,}", ["aa", "aaaa"], ["a"]),
    ("a{1,2}", ["a", "aa"], ["", "aaa"]),
    ("a{0}", [""], ["a"]),
    ("a{01,02}", ["a", "aa"], ["aaa"]),
    ("(?:ab){2}", ["abab"], ["ab"]),
    ("a*?b+?c??", ["b", "aabb", "bc"], ["a"]),
    ("a{1,2}?", ["a", "aa"], ["aaa"]),
    ("{", ["{"], [""]),
    ("a{", ["a{"], ["a"]),
    ("a{b}", ["a{b}"], ["ab"]),
    ("}", ["}"], [""]),
    ("]", ["]"], [""]),
    ("^{a}$", ["{a}"], ["a"]),
    (r"\-\_\@\/\"\'\ \#\&\,\:\;\<\=\>\!\%\`\~", ["-_@/\"' #&,:;<=>!%`~"], [""]),
    (r"\^\$\\\.\*\+\?\(\)\[\]\{\}\|", ["^$\\.*+?()[]{}|"], [""]),
    (r"\é", ["é"], ["e"]),
    ("(a)(?<name>b)(?:c)(?P<other>d)", ["abcd"], ["abc"]),
    ("(?<$n_1>a)", ["a"], ["b"]),
    ("a||b", ["", "a", "b"], ["ab"]),
    ("(|a)b", ["b", "ab"], ["a"]),
    ("(a*)*", ["", "aa"], ["b"]),
    ("(a|ab)(bc|c)", ["abc", "ac", "abbc"], ["ab"]),
    ("(?=a)[ab]b", ["ab"], ["bb"]),
    ("(?i)k", ["k", "K", "\u212a"], ["j"]),
    (r"\cA\cz", ["\x01\x1a"], ["Az", "\x01z"]),
    (r"[\cM\cJ-\cK]", ["\r", "\n", "\v"], ["M", "c", "\f"]),
    ("(.{0,3}x){0,2}", ["", "x", "abcx", "xxxx", "abcxabcx"], ["abcd", "abcdx", "xa"]),
    ("(?i)ß", ["ß", "\u1e9e"], ["ss"]),
    ("(?i)\u0130", ["\u0130"], ["i", "I"]),
    (r"(?i)\w", ["a", "\u017f", "\u212a"], ["é"]),
    (r"(?i)[^x]", ["a", "\n"], ["x", "X"]),
    (r"(?i)\u03c3", ["\u03c3", "\u03c2", "\u03a3"], ["s"]),
    ("(?i:a)b", ["Ab", "ab"], ["aB"]),
    ("(?i)a(?-i:b)", ["Ab"], ["AB"]),
    ("(?s).", ["\n", "a"], ["ab"]),
    ("(?m)a$\n^b", ["a\nb"], ["ab"]),
    ("(?is)a.", ["A\n"], ["b\n"]),
    (r"\p{L}+", ["aé日"], ["1", ""]),
    (r"\p{Lu}\p{Ll}", ["Éa"], ["éa"]),
    (r"\p{Letter}\p{Uppercase_Letter}", ["aB"], ["ab"]),
    (r"\p{gc=Nd}\p{General_Category=Decimal_Number}", ["1٣"], ["a1"]),
    (r"\P{L}", ["1", " "], ["a"]),
    (r"[\p{L}\p{N}_-]+", ["a1_-", "é٣"], [" "]),
    (r"[^\p{L}]", ["1"], ["a"]),
    (r"\p{ASCII}", ["a", "\x7f"], ["\x80"]),
    (r"\p{Any}", ["a", "\u0378"], [""]),
    (r"\p{Assigned}", ["a"], ["\u0378"]),
    (r"\p{AHex}\p{Hex_Digit}", ["aF", "1\uff11"], ["\uff11a"]),
    (r"\p{White_Space}", [" ", "\x85", "\u3000"], ["\ufeff"]),
    (r"\p{Uppercase}\p{Lowercase}", ["\u24b6ª"], ["aA"]),
    (r"\p{LC}", ["a", "A", "\u01c5"], ["ª"]),
    (r"\p{P}\p{Sc}\p{Zs}\p{Mn}\p{Cc}", ["!€ \u0301\0"], ["aaaaa"]),
    (r"\p{XIDS}\p{XID_Continue}", ["a1", "é_"], ["1a"]),
]


@pytest.mark.parametrize(("pattern", "found", "missing"), SEARCH_ROWS, ids=[repr(row[0]) for row in SEARCH_ROWS])
def test_search(pattern: str, found: list[str], missing: list[str]):
    language = Language.pattern(pattern, "ecma", "search")
    assert [text for text in found if not language.matches(text)] == []
    assert [text for text in missing if language.matches(text)] == []


@pytest.mark.parametrize(("pattern", "matching", "failing"), FULL_ROWS, ids=[repr(row[0]) for row in FULL_ROWS])
def test_full_match(pattern: str, matching: list[str], failing: list[str]):
    language = Language.pattern(pattern)
    assert [text for text in matching if not language.matches(text)] == []
    assert [text for text in failing if language.matches(text)] == []


REFUSED = [
    (r"(a)\1", 3),
    (r"\1", 0),
    (r"(?<n>a)\k<n>", 7),
    ("*a", 0),
    ("a**", 2),
    ("a+*", 2),
    ("^*", 1),
    ("(?=a)*", 5),
    (r"\b+", 2),
    ("{2}", 0),
    ("(", 0),
    ("a)", 1),
    ("(?:a", 0),
    ("[a", 0),
    ("[z-a]", 1),
    ("a{2,1}", 1),
    ("a{,2}", 1),
    ("\\", 0),
    (r"\A", 0),
    (r"\Z", 0),
    (r"\z", 0),
    (r"\a", 0),
    (r"\e", 0),
    (r"\h", 0),
    (r"\01", 0),
    (r"[\1]", 1),
    (r"\x4", 0),
    (r"\u12", 0),
    (r"\u{110000}", 0),
    (r"\u{}", 0),
    (r"\c1", 0),
    (r"\p", 0),
    (r"\pL", 0),
    (r"\p{Nope}", 0),
    (r"\p{gc=Nope}", 0),
    (r"\p{L", 0),
    (r"\p{lu}", 0),
    ("a(?i)b", 1),
    ("(?x)a b", 0),
    ("(?i-i:a)", 0),
    ("(?-:a)", 0),
    ("(?P=n)", 0),
    ("(?>a)", 0),
    ("(?#a)", 0),
    ("(?<1>a)", 3),
    ("(?<n", 3),
    ("(?<=a(?=b))b", 0),
    (r"(?<=\bfoo)x", 0),
]


@pytest.mark.parametrize(("pattern", "position"), REFUSED)
def test_refuses_with_the_position(pattern: str, position: int):
    with pytest.raises(GrammarError) as caught:
        Language.pattern(pattern)
    assert caught.value.position == position


def test_a_lone_surrogate_in_the_pattern_is_refused():
    with pytest.raises(GrammarError) as caught:
        Language.pattern("a\ud800")
    assert caught.value.position == 1


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="dialect"):
        Language.pattern("a", "perl")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="mode"):
        Language.pattern("a", "ecma", "match")  # pyright: ignore[reportArgumentType]


@settings(max_examples=50)
@given(st.text("ab-_ ./", max_size=6))
def test_an_escaped_literal_matches_itself_only(text: str):
    pattern = "".join("\\" + char if not char.isalnum() else char for char in text)
    language = Language.pattern(pattern)
    assert language.matches(text)
    assert (language - Language.literal(text)).is_empty()
