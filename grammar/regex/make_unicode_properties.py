"""Writes `unicode_properties.txt`: the Unicode properties that ECMA-262 names, with their characters.

Run by hand when Unicode changes: `python -m formcast.grammar.regex.make_unicode_properties`. Needs `node`, which knows the characters, and
fontTools, which knows the names of scripts.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

_HEADER = """\
# Unicode {version}: properties of characters, by the names of ECMA-262 (tables "Non-binary Unicode property aliases" and following).
# Data derived from the Unicode Character Database, copyright (c) 1991-2026 Unicode, Inc., under the Unicode License v3
# (https://www.unicode.org/license.txt). Made by make_unicode_properties.py.
#
# gc, sc, scx or bin; names, separated by commas; ranges in base 36, each as the gap after the one before and, if it is longer than one
# character, a comma and the number of further characters. A script without a line scx has the same characters there.
"""

_CATEGORIES = """
Cased_Letter,LC Close_Punctuation,Pe Connector_Punctuation,Pc Control,Cc,cntrl Currency_Symbol,Sc Dash_Punctuation,Pd
Decimal_Number,Nd,digit Enclosing_Mark,Me Final_Punctuation,Pf Format,Cf Initial_Punctuation,Pi Letter,L Letter_Number,Nl
Line_Separator,Zl Lowercase_Letter,Ll
Mark,M,Combining_Mark Math_Symbol,Sm Modifier_Letter,Lm Modifier_Symbol,Sk Nonspacing_Mark,Mn Number,N Open_Punctuation,Ps Other,C
Other_Letter,Lo Other_Number,No Other_Punctuation,Po Other_Symbol,So Paragraph_Separator,Zp Private_Use,Co Punctuation,P,punct Separator,Z
Space_Separator,Zs Spacing_Mark,Mc Surrogate,Cs Symbol,S Titlecase_Letter,Lt Unassigned,Cn Uppercase_Letter,Lu
"""

_BINARY = """
ASCII ASCII_Hex_Digit,AHex Alphabetic,Alpha Any Assigned Bidi_Control,Bidi_C Bidi_Mirrored,Bidi_M Case_Ignorable,CI Cased
Changes_When_Casefolded,CWCF Changes_When_Casemapped,CWCM Changes_When_Lowercased,CWL Changes_When_NFKC_Casefolded,CWKCF
Changes_When_Titlecased,CWT Changes_When_Uppercased,CWU Dash Default_Ignorable_Code_Point,DI Deprecated,Dep Diacritic,Dia Emoji
Emoji_Component,EComp Emoji_Modifier,EMod Emoji_Modifier_Base,EBase Emoji_Presentation,EPres Extended_Pictographic,ExtPict Extender,Ext
Grapheme_Base,Gr_Base Grapheme_Extend,Gr_Ext Hex_Digit,Hex IDS_Binary_Operator,IDSB IDS_Trinary_Operator,IDST ID_Continue,IDC ID_Start,IDS
Ideographic,Ideo Join_Control,Join_C Logical_Order_Exception,LOE Lowercase,Lower Math Noncharacter_Code_Point,NChar Pattern_Syntax,Pat_Syn
Pattern_White_Space,Pat_WS Quotation_Mark,QMark Radical Regional_Indicator,RI Sentence_Terminal,STerm Soft_Dotted,SD
Terminal_Punctuation,Term Unified_Ideograph,UIdeo Uppercase,Upper Variation_Selector,VS White_Space,space XID_Continue,XIDC XID_Start,XIDS
"""

# Reads expressions, writes the ranges of each, or null where the engine knows no such property.
_SCRIPT = r"""
const names = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const found = {version: process.versions.unicode, ranges: {}};
for (const name of names) {
  let property;
  try { property = new RegExp(`^\\p{${name}}$`, 'u'); } catch { found.ranges[name] = null; continue; }
  const ranges = [];
  let first = -1;
  for (let code = 0; code <= 0x110000; code++) {
    const inside = code <= 0x10FFFF && property.test(String.fromCodePoint(code));
    if (inside && first < 0) first = code;
    if (!inside && first >= 0) { ranges.push([first, code - 1]); first = -1; }
  }
  found.ranges[name] = ranges;
}
console.log(JSON.stringify(found));
"""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _base36(number: int) -> str:
    digits = ""
    while number >= 36:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return _DIGITS[number] + digits


def _line(kind: str, names: str, ranges: list[list[int]]) -> str:
    words: list[str] = []
    end = 0
    for first, last in ranges:
        words.append(_base36(first - end) + (f",{_base36(last - first)}" if last > first else ""))
        end = last + 1
    return f"{kind} {names} {' '.join(words)}".rstrip()


def main() -> None:
    from fontTools.unicodedata import Scripts  # pyright: ignore[reportMissingImports]

    scripts = [",".join(dict.fromkeys((name, code))) for code, name in sorted(Scripts.NAMES.items())]
    extra = {"Coptic,Copt": "Coptic,Copt,Qaac", "Inherited,Zinh": "Inherited,Zinh,Qaai"}
    scripts = [extra.get(names, names) for names in scripts]
    wanted = [("gc", names, f"gc={names.split(',')[0]}") for names in _CATEGORIES.split()]
    wanted += [(kind, names, f"{kind}={names.split(',')[0]}") for names in scripts for kind in ("sc", "scx")]
    wanted += [("bin", names, names.split(",")[0]) for names in _BINARY.split()]
    source = json.dumps([key for _, _, key in wanted])
    answer = json.loads(subprocess.run(["node", "-e", _SCRIPT], input=source, capture_output=True, text=True, check=True).stdout)
    found = answer["ranges"]
    lines = [
        _line(kind, names, found[key])
        for kind, names, key in wanted
        if found[key] is not None and not (kind == "scx" and found[key] == found[key.replace("scx=", "sc=")])
    ]
    path = Path(__file__).parent / "unicode_properties.txt"
    path.write_text(_HEADER.format(version=answer["version"]) + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
