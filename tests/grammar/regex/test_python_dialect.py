r"""The Python dialect against the module `re` itself."""

from __future__ import annotations

import re
import sys
import warnings

import pytest

from formcast.grammar.errors import GrammarError
from formcast.grammar.regex import Language

# (pattern, texts to try); whether they match is asked from `re`.
ROWS = [
    ("", ["", "a"]),
    ("abc", ["abc", "ab", "abcd", "xabcx"]),
    ("a|b|cd", ["a", "b", "cd", "c", "ab"]),
    ("|a", ["", "a", "b"]),
    ("a*", ["", "aaa", "ab"]),
    ("a+b?", ["a", "ab", "aab", "b", ""]),
    ("a{2}", ["a", "aa", "aaa"]),
    ("a{2,}", ["a", "aa", "aaaa"]),
    ("a{2,3}", ["a", "aa", "aaa", "aaaa"]),
    ("a{,2}", ["", "a", "aa", "aaa"]),
    ("a{,}", ["", "a", "aaaa", "b"]),
    ("a{}", ["a", "a{}", "aa"]),
    ("a{x}", ["a{x}", "ax"]),
    ("a{1,x}", ["a{1,x}", "a"]),
    ("{", ["{", ""]),
    ("}]", ["}]", "}"]),
    ("a*?b", ["b", "aab", "aa"]),
    ("(a|ab)(c|bcd)", ["abcd", "ac", "abc", "abbcd"]),
    (".", ["a", "\n", "\r", "\u2028", "", "\U0001f600"]),
    ("(?s).", ["a", "\n", ""]),
    (r"\d", ["0", "٣", "a", "²"]),
    (r"(?a)\d", ["0", "٣"]),
    (r"\D", ["0", "٣", "a"]),
    (r"\w+", ["abc_1", "été", "a b", "ª", "\u0345"]),
    (r"(?a)\w+", ["abc_1", "été"]),
    (r"\s", [" ", "\t", "\x1c", "\x85", "\u3000", "\ufeff", "\u200b"]),
    (r"(?a)\s", [" ", "\x1c", "\u3000", "\v"]),
    (r"\S\W", ["a ", "aa", " a"]),
    ("[abc]", ["a", "c", "d", ""]),
    ("[^abc]", ["a", "d", "\n", ""]),
    ("[]a]", ["]", "a", "b"]),
    ("[^]a]", ["]", "a", "b"]),
    ("[a-c-e]", ["b", "-", "e", "d"]),
    ("[a-]", ["a", "-", "b"]),
    ("[-a]", ["a", "-", "b"]),
    (r"[\w.-]", ["a", ".", "-", " "]),
    (r"[\d\s]", ["1", " ", "a"]),
    (r"[^\d\s]", ["1", " ", "a"]),
    (r"[\b]", ["\b", "b"]),
    (r"[\]\\]", ["]", "\\", "a"]),
    (r"\.\*\+\?\(\)\[\]\{\}\|\^\$\\", [".*+?()[]{}|^$\\", "."]),
    (r"\x41\u0042\U00000043", ["ABC", "abc"]),
    (r"\N{LATIN SMALL LETTER E WITH ACUTE}", ["é", "e"]),
    (r"\0\012\101", ["\0\nA", "0"]),
    (r"[\0-\12]", ["\0", "\n", "\v"]),
    (r"\a\f\n\r\t\v", ["\a\f\n\r\t\v", "afnrtv"]),
    ("^a", ["a", "ba", "b\na"]),
    ("(?m)^a", ["a", "ba", "b\na"]),
    ("a$", ["a", "a\n", "a\n\n", "ab"]),
    ("(?m)a$", ["a", "a\n", "a\nb", "ab"]),
    (r"a\Z", ["a", "a\n"]),
    (r"\Aa", ["a", "ba"]),
    ("a$\n", ["a\n", "a"]),
    ("^a|b$", ["ax", "xb", "xa", "bx", "b\n"]),
    ("^$", ["", "\n", "a"]),
    ("a^b", ["ab", "a\nb"]),
    (r"\bfoo\b", ["foo", "a foo b", "foob", "éfoo"]),
    (r"(?a)\bfoo\b", ["foo", "éfoo"]),
    (r"\Boo\B", ["foob", "oo", "fooo"]),
    (r"\B", ["", "a", "aa", " ", "  "]),
    (r"\b", ["", "a", " "]),
    (r"(?:\b\w+\b ?)+", ["foo bar", "foo  bar", ""]),
    ("(?=ab)a.", ["ab", "ac"]),
    ("(?!ab)a.", ["ab", "ac"]),
    ("(?=.*1)(?=.*a)...", ["a1b", "1ab", "abc", "1bb"]),
    ("(?:(?!foo).)*", ["fo", "foo", "barfo", ""]),
    ("(?:(?=a)a|b)+", ["abab", "c"]),
    ("(?:(?=a)){3}a", ["a", "b"]),
    ("(?<=a)b", ["ab", "b", "cb"]),
    ("(?<!a)b", ["ab", "b", "cb"]),
    ("(?<=^)b", ["b", "ab"]),
    ("(?<=a|b)c", ["ac", "bc", "cc"]),
    ("(?:a(?<!ba)|b)+", ["a", "ba", "b"]),
    ("(?=(?!a)b)b", ["b", "a"]),
    ("(?<=(?<!a)b)c", ["bc", "abc", "xbc"]),
    ("(?i)straße", ["STRAßE", "straẞe", "strasse"]),
    ("(?i)k", ["k", "K", "\u212a", "j"]),
    ("(?i)s", ["S", "\u017f"]),
    ("(?ai)k", ["k", "K", "\u212a"]),
    ("(?i)[a-k]", ["B", "\u212a", "L"]),
    ("(?i)[^k]", ["K", "\u212a", "j"]),
    ("(?i)i", ["I", "\u0130", "\u0131"]),
    ("(?i)\u0345", ["\u0345", "\u03b9", "\u0399", "\u1fbe"]),
    (r"(?i)[\w]", ["\u0345", "\u03b9"]),
    ("(?i:a)b", ["Ab", "ab", "aB"]),
    ("(?i)a(?-i:b)", ["Ab", "AB"]),
    ("(?s:.)(?-s:.)", ["\na", "a\n"]),
    ("(?s)a(?-s:.)b.", ["axb\n", "a\nb\n"]),
    ("(?x) a b # comment\n c", ["abc", "a b c"]),
    (r"(?x)a\ b[ ]", ["a b ", "ab"]),
    ("(?x: a b ) c", ["ab c", "abc"]),
    ("a(?#comment)b", ["ab", "a"]),
    (r"(?a:\d)\d", ["12", "1٣", "٣1"]),
    (r"(?a:\w+)\w", ["aé", "éa", "ab"]),
    (r"(?a)\w(?u:\w)", ["aé", "éa"]),
    (r"(?a:\b)é(?u:\b)", ["é"]),
    (r"(?i)k(?a:k)", ["kK", "k\u212a", "\u212ak"]),
    (r"(?i:k(?-i:k)k)", ["KkK", "KKk"]),
    (r"(?s-i:.)(?i-s:a.)", ["\nAx", "\nA\n"]),
    (r"(?m:^b$)", ["b", "b\n", "a\nb\nc"]),
    (r"(?x: a (?-x: b) \# ) # c", ["a b# # c", "ab# # c", "a b#"]),
    ("(a{2,3}b){2,3}", ["aabaab", "aabaaab", "aab", "aabaabaab", "abab"]),
    ("((a{1,2}){2}b?){2}", ["aaaa", "aabaab", "aaa", "aaaaaaaab", "aaaaaaaaa"]),
    ("((a|bc){0,2}d){1,2}", ["d", "abcd", "dd", "abcdbcad", "aaad"]),
    ("(?:a{0,2}){3,4}", ["", "aaaaaaaa", "aaaaaaaaa"]),
    ("(?:a{2}){2,}?b", ["aaaab", "aaaaab", "aab"]),
    ("(?P<name>a)(?P<other>b)", ["ab", "a"]),
    ("(?i)(?s)a.", ["A\n", "ab"]),
    ("(?>abc|abd)", ["abc", "abd", "ab"]),
    ("(?>[a-z]+)1", ["abc1", "1", "abc"]),
    ("[a-z]++1", ["abc1", "1"]),
    ("a{2}+b", ["aab", "ab"]),
    ("(a*)*b", ["b", "aaab", "aaa"]),
    ("(a|a)*b", ["b", "aab", "aa"]),
    ("(?:)*a", ["a", ""]),
    ("()|a", ["", "a"]),
    ("a{0}", ["", "a"]),
    ("(?:^a)*b", ["ab", "b", "aab"]),
    ("(?:a$)?", ["a", "a\n", ""]),
    ("\ud83d", ["a", ""]),
    ("[\ud800-\udfff]", ["a", "\U0001f600"]),
    ("[&&a]", ["&", "a"]),
    ("é", ["é", "e\u0301"]),
]


@pytest.mark.parametrize("mode", ["full", "search"])
@pytest.mark.parametrize(("pattern", "candidates"), ROWS, ids=[repr(row[0]) for row in ROWS])
def test_agrees_with_re(pattern: str, candidates: list[str], mode):
    if not pattern.isascii() and any("\ud800" <= char <= "\udfff" for char in pattern):
        pattern = pattern.encode("ascii", "backslashreplace").decode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        compiled = re.compile(pattern)
    language = Language.pattern(pattern, "python", mode)
    for text in candidates:
        expected = compiled.fullmatch(text) if mode == "full" else compiled.search(text)
        assert language.matches(text) == bool(expected), text


REFUSED = [
    (r"(a)\1", 3),
    ("(?P<n>a)(?P=n)", 8),
    ("(a)?(?(1)b|c)", 4),
    ("a**", 2),
    ("*a", 0),
    ("a|*", 2),
    ("^*", 1),
    ("(", 0),
    ("(a", 0),
    ("a)", 1),
    ("[a", 0),
    ("[", 0),
    ("[b-a]", 1),
    (r"[\d-a]", 1),
    ("a{3,2}", 1),
    (r"\p{L}", 0),
    (r"\q", 0),
    ("a\\", 1),
    (r"\x4", 0),
    (r"\u12", 0),
    (r"\U00110000", 0),
    (r"\N{NO SUCH NAME}", 0),
    (r"\400", 0),
    (r"[\8]", 1),
    ("(?<=a*)b", 0),
    ("(?<n>a)", 0),
    ("(?P<1>a)", 4),
    ("(?P<n>a)(?P<n>b)", 12),
    ("a(?i)b", 1),
    ("(?q)", 0),
    ("(?i-i:a)", 0),
    ("(?#a", 0),
    ("(?P>a)", 0),
    ("(?i", 0),
    ("a*+ab", 1),
    ("(?>a|ab)c", 0),
    ("(?>b*?)", 0),  # matches as little as it can, and gives no more
    ("(?>|a)", 0),
    ("(?>(?:a??)*)", 0),
    ("(?<=a(?=b))b", 0),
    ("[a-\\", 3),
]


@pytest.mark.parametrize(("pattern", "position"), REFUSED)
def test_refuses_with_the_position(pattern: str, position: int):
    with pytest.raises(GrammarError) as caught:
        Language.pattern(pattern, "python")
    assert caught.value.position == position


def test_what_re_refuses_is_refused():
    # Possessive and atomic forms, and a lookahead inside a lookbehind, are the only patterns that `re` has and we do not.
    only_ours = {"a*+ab", "(?>a|ab)c", "(?>b*?)", "(?>|a)", "(?>(?:a??)*)", "(?<=a(?=b))b", r"(a)\1", "(?P<n>a)(?P=n)", "(a)?(?(1)b|c)"}
    for pattern, _ in REFUSED:
        if pattern in only_ours:
            re.compile(pattern)
        else:
            with pytest.raises((re.error, OverflowError)):
                re.compile(pattern)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="possessive quantifiers came with Python 3.11")
@pytest.mark.parametrize("pattern", ["a++", "a*+b", "[ab]{1,3}+c", "(?>a*)b", "(?>ab){2}", "x(?>[0-9]+)y"])
def test_possessive_forms_that_change_nothing(pattern: str):
    compiled = re.compile(pattern)
    language = Language.pattern(pattern, "python")
    for text in ["", "a", "aa", "aab", "b", "abc", "aabbc", "c", "abab", "x12y", "xy"]:
        assert language.matches(text) == bool(compiled.fullmatch(text))


@pytest.mark.parametrize("pattern", [r"\w", r"\d", r"\s", r"(?i)k", "(?i)[s-z]", pytest.param("(?i)[^a-k]", marks=pytest.mark.slow), r"(?i)\u0390", "(?i)\u1e9e", pytest.param(r"(?i)[\W_]", marks=pytest.mark.slow)])  # fmt: skip
def test_classes_agree_with_re_on_every_character(pattern: str):
    compiled = re.compile(pattern)
    automaton = Language.pattern(pattern, "python").automaton()
    accepted = {char for low, high, _ in automaton.edges(automaton.start) for char in map(chr, range(low, high + 1))}
    everything = [chr(number) for number in range(0x110000) if not 0xD800 <= number <= 0xDFFF]
    assert accepted == {char for char in everything if compiled.match(char)}


def test_case_folds_as_in_re():
    characters = [chr(number) for number in range(0x110000) if not 0xD800 <= number <= 0xDFFF]
    cased = [char for char in characters if char.lower() != char or char.upper() != char or char.casefold() != char]
    text = "".join(cased)
    for char in cased[::23]:
        automaton = Language.pattern(f"(?i){re.escape(char)}", "python").automaton()
        accepted = {other for low, high, _ in automaton.edges(automaton.start) for other in map(chr, range(low, high + 1))}
        assert accepted == set(re.findall(f"(?i){re.escape(char)}", text)), char
