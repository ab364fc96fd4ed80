r"""`\p{...}` against two other implementations, for every character.

The module `regex` may know a later version of Unicode: only characters of the version here are compared with it, and a few of them may have
changed.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
import regex

from formcast import Grammar, GrammarError
from formcast.grammar.regex import properties
from formcast.grammar.regex.charset import CharSet

TEXT = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF)

CATEGORIES = """C Cased_Letter Cc Cf Close_Punctuation Cn Co Combining_Mark Connector_Punctuation Control Cs Currency_Symbol Dash_Punctuation
Decimal_Number Enclosing_Mark Final_Punctuation Format Initial_Punctuation L LC Letter Letter_Number Line_Separator Ll Lm Lo Lowercase_Letter Lt Lu
M Mark Math_Symbol Mc Me Mn Modifier_Letter Modifier_Symbol N Nd Nl No Nonspacing_Mark Number Open_Punctuation Other Other_Letter Other_Number
Other_Punctuation Other_Symbol P Paragraph_Separator Pc Pd Pe Pf Pi Po Private_Use Ps Punctuation S Sc Separator Sk Sm So Space_Separator
Spacing_Mark Symbol Titlecase_Letter Unassigned Uppercase_Letter Z Zl Zp Zs cntrl digit punct""".split()  # noqa: SIM905

BINARY = """AHex ASCII ASCII_Hex_Digit Alpha Alphabetic Any Assigned Bidi_C Bidi_Control Bidi_M Bidi_Mirrored CI CWCF CWCM CWKCF CWL CWT CWU
Case_Ignorable Cased Changes_When_Casefolded Changes_When_Casemapped Changes_When_Lowercased Changes_When_NFKC_Casefolded
Changes_When_Titlecased Changes_When_Uppercased DI Dash Default_Ignorable_Code_Point Dep Deprecated Dia Diacritic EBase EComp EMod EPres Emoji
Emoji_Component Emoji_Modifier Emoji_Modifier_Base Emoji_Presentation Ext ExtPict Extended_Pictographic Extender Gr_Base Gr_Ext Grapheme_Base
Grapheme_Extend Hex Hex_Digit IDC IDS IDSB IDST IDS_Binary_Operator IDS_Trinary_Operator ID_Continue ID_Start Ideo Ideographic Join_C
Join_Control LOE Logical_Order_Exception Lower Lowercase Math NChar Noncharacter_Code_Point Pat_Syn Pat_WS Pattern_Syntax
Pattern_White_Space QMark Quotation_Mark RI Radical Regional_Indicator SD STerm Sentence_Terminal Soft_Dotted Term Terminal_Punctuation
UIdeo Unified_Ideograph Upper Uppercase VS Variation_Selector White_Space XIDC XIDS XID_Continue XID_Start space""".split()  # noqa: SIM905

SCRIPTS = """Adlam Arabic Armenian Avestan Bengali Bopomofo Braille Cherokee Common Copt Coptic Cyrillic Cyrl Devanagari Egyp Ethiopic Georgian
Gothic Greek Grek Gujarati Gurmukhi Han Hangul Hani Hebrew Hira Hiragana Inherited Kana Kannada Katakana Khmer Lao Latin Latn Malayalam
Mongolian Myanmar Nko Ogham Old_Italic Oriya Phags_Pa Qaac Qaai Runic SignWriting Sinhala Syriac Tai_Le Tamil Telugu Thaana Thai Tibetan
Tifinagh Toto Unknown Vai Yezidi Yi Zanabazar_Square Zinh Zyyy Zzzz""".split()  # noqa: SIM905

NAMES = [*CATEGORIES, *(f"gc={name}" for name in CATEGORIES), *BINARY, *(f"{key}={name}" for name in SCRIPTS for key in ("sc", "scx"))]


_CHANGED_LATER = 4
_OTHER_MEANING = ("IDC", "VS")  # in the module `regex`


def characters(name: str) -> CharSet:
    key, equals, value = name.partition("=")
    found = properties.unicode_property(key, value if equals else None)
    assert found is not None, name
    return found


def characters_of_regex(name: str) -> CharSet | None:
    """As the module `regex` has it, which knows neither all names nor all properties."""
    try:
        pattern = regex.compile(rf"\p{{{name}}}+")
    except regex.error:
        return None
    return CharSet.of((ord(found.group()[0]), ord(found.group()[0]) + len(found.group()) - 1) for found in _runs(pattern))


def differing(names: list[str]) -> list[str]:
    assigned = characters("Assigned")
    pairs = [(name, found) for name in names if (found := characters_of_regex(name)) is not None]
    sizes = {name: ((characters(name) - found | (found - characters(name))) & assigned).size for name, found in pairs}
    return [name for name, size in sizes.items() if size > _CHANGED_LATER and name not in _OTHER_MEANING]


def _runs(pattern: regex.Pattern[str]) -> list[regex.Match[str]]:
    # In two halves: a run must not reach over the surrogates, which the text leaves out.
    return [*pattern.finditer(TEXT, 0, 0xD800), *pattern.finditer(TEXT, 0xD800)]


@pytest.mark.parametrize(
    "name", ["L", "gc=Nd", "sc=Han", "sc=Greek", "scx=Greek", "Alphabetic", "Emoji", "ID_Start", "White_Space", "Uppercase"]
)
def test_a_property_has_the_characters_that_regex_says(name: str):
    assert differing([name]) == []


@pytest.mark.slow
def test_all_properties_have_the_characters_that_regex_says():
    assert len([name for name in NAMES if characters_of_regex(name) is not None]) > 0.9 * len(NAMES)
    assert differing(NAMES) == []


_NODE = """
const names = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const text = Array.from({length: 0x110000}, (_, code) => code < 0xD800 || code > 0xDFFF ? String.fromCodePoint(code) : '').join('');
const runs = name => Array.from(text.matchAll(new RegExp(`\\\\p{${name}}+`, 'gu')),
  found => [found[0].codePointAt(0), Array.from(found[0]).length]);
console.log(JSON.stringify({version: process.versions.unicode, runs: Object.fromEntries(names.map(name => [name, runs(name)]))}));
"""


@pytest.mark.slow
def test_all_properties_have_the_characters_that_an_ecmascript_engine_says():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    run = subprocess.run(["node", "-e", _NODE], input=json.dumps(NAMES), capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout)
    if answer["version"] != properties.UNICODE_VERSION:
        pytest.skip(f"node knows Unicode {answer['version']}")

    def expected(name: str) -> CharSet:
        found = CharSet.of(
            (first, first + length - 1) for first, length in answer["runs"][name] if first > 0xDFFF or first + length <= 0xD800
        )
        split = [(first, length) for first, length in answer["runs"][name] if first < 0xD800 < first + length]
        return found | CharSet.of(part for first, length in split for part in ((first, 0xD7FF), (0xE000, first + length + 0x7FF)))

    assert [name for name in NAMES if characters(name) != expected(name)] == []


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"\p{Script=Han}+", ["漢字", "々"], ["かな", "a"]),
        (r"\p{sc=Hani}", ["漢"], ["、"]),
        (r"\p{Script_Extensions=Han}\p{scx=Hira}", ["、ー"], ["aあ"]),
        (r"\P{Script=Latin}", ["я", "1"], ["é", "a"]),
        (r"[^\p{Script=Greek}\d]", ["a"], ["\u03b1", "1"]),
        (r"[\p{sc=Cyrl}-]+", ["я-"], ["a"]),
        (r"\p{Emoji_Presentation}\p{Emoji_Modifier}?", ["👍", "👍🏽"], ["☺"]),
        (r"\p{Alphabetic}\p{ID_Start}\p{ID_Continue}*", ["ab1"], ["1a"]),
        (r"\p{Cs}|\p{Lu}", ["A"], ["a"]),
        (r"\P{Any}|x", ["x"], ["y"]),
    ],
)
def test_properties_in_patterns(pattern: str, yes: list[str], no: list[str]):
    grammar = Grammar.regex(pattern)
    assert [text for text in yes if not grammar.accepts(text)] == []
    assert [text for text in no if grammar.accepts(text)] == []


@pytest.mark.parametrize(
    "name",
    ["han", "Script=han", "Script=Hanzi", "Script", "Script=", "sc", "InGreek", "IsAlphabetic", "alphabetic", "Emoji=Yes", "gc=Han", "L=Lu", "Block=Latin",
     "sc=Katakana_Or_Hiragana", "Other_Alphabetic", "Expands_On_NFC", "RGI_Emoji", " L", "L ", ""],
)  # fmt: skip
def test_unknown_names_are_refused_with_their_place(name: str):
    with pytest.raises(GrammarError, match="no Unicode property") as refusal:
        Grammar.regex(rf"ab\p{{{name}}}")
    assert refusal.value.position == 2
