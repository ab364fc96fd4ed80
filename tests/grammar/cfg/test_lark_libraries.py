"""`%import` of every terminal that lark ships, and of rules, against lark itself."""

from __future__ import annotations

import re
from importlib import resources

import lark
import pytest

from formcast import Grammar, GrammarError

_TERMINAL = re.compile(r"^(_?[A-Z][A-Z_0-9]*)(?:\.\d+)? *:", re.MULTILINE)
_TEXTS = (
    *("", "0", "7", "007", "12", "-1", "+12", "-0", "1.", ".5", "1.5", "1e5", "1.e-3", "-2.5E+7", "1e", "e5", "0x1F", "0xg", "0o17", "0b101", "1_000", "1__0"),
    *("3j", "1.5J", "0777", "00", "a", "Z", "aB", "ab1", "_x", "1a", "f", "F", "g", "é", "日本", "aé", "ab cd"),
    *('""', '"a"', '"a\\"b"', '"a""', '"\\\\"', '"a\nb"', "''", "'a'", "'it\\'s'", "r'x'", "b'x'", "u'x'", "rb'x'", '"""a"b"""', "'''a\nb'''", '"a', '"é"'),
    *(" ", "\t", "  ", "\n", "\r", "\r\n", "\n\n", "\f", "\xa0", " \n", " \t\xa0", "\n  ", "\n\t# c\n", "\\\n", "\\ \n"),
    *("#", "# c", "# c\n", "//", "// c", "/", "/**/", "/* a */", "/* a */ */", "/* \n */", "/*/", "--", "-- c", "-", "- c"),
    *("/a/", "/a\\/b/i", "//a", "/", "?", "*", "+", "~", "|", ":", "_rule", "rule", "!", "->", ".", "..", '"a"i', "%ignore", "if", "True"),
)  # fmt: skip


def _names(library: str) -> list[str]:
    text = (resources.files("lark") / "grammars" / f"{library}.lark").read_text(encoding="utf-8")
    return _TERMINAL.findall(text)


_TERMINALS = [(library, name) for library in ("common", "unicode", "python", "lark") for name in _names(library)]


def _oracle(grammar: str, start: str = "start") -> lark.Lark | None:
    """Lark's parser, None if it refuses the grammar."""
    try:
        return lark.Lark(grammar, parser="earley", lexer="dynamic", start=start)
    except lark.exceptions.GrammarError:
        return None


def _accepts(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def check(grammar: str, texts: tuple[str, ...]) -> int:
    """Compares verdicts; answers how many texts were accepted."""
    parser = _oracle(grammar)
    if parser is None:
        with pytest.raises(GrammarError):
            Grammar.lark(grammar).compile()
        return 0
    expected = {text: _accepts(parser, text) for text in texts}
    try:
        made = Grammar.lark(grammar)
        made.compile()
    except GrammarError:
        assert not any(expected.values())
        return 0
    assert {text: made.accepts(text) for text in texts} == expected
    return sum(expected.values())


@pytest.mark.parametrize(("library", "name"), _TERMINALS)
def test_a_terminal_of_a_library(library: str, name: str):
    imported = f"%import {library}.{name} -> {'X' if not name.startswith('_') else '_X'}"
    used = imported.split()[-1]
    check(f"start: {used}\n{imported}", _TEXTS)
    pairs = tuple(dict.fromkeys(left + right for left in _TEXTS[::4] for right in _TEXTS[1::5]))
    check(f'start: {used} ("a" | "1" | "/" | {used})\n{imported}', (*_TEXTS, *pairs[:60]))


def test_the_libraries_are_all_there():
    assert len(_names("common")) > 25 and len(_names("unicode")) == 2 and len(_names("python")) > 10


_EXPRESSIONS = (
    "x",
    "x+1",
    "f(a,b=2)",
    "[1,2][0]",
    "{'a':1}",
    "not x",
    "a<b<c",
    "lambda x:x",
    "a if b else c",
    "(yield)",
    "x[1:2]",
    "x+",
    "f(",
    "a b",
    "1 if",
    "...",
)


def test_expressions_of_the_python_grammar():
    grammar = "start: test\n%import python.test\n%import common.WS_INLINE\n%ignore WS_INLINE"
    assert check(grammar, _EXPRESSIONS) >= 11


def test_rules_of_a_library_by_list():
    grammar = 'start: (string | number) ("," (string | number))*\n%import python (string, number)'
    assert check(grammar, ("1", "'a',2", "0x1f,1.5", "1,", ",", "'a''b'", "1j,r'x'")) >= 4
