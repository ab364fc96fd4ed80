# Foreign letters that look like ASCII are what these tables are about.
# ruff: noqa: RUF001
from __future__ import annotations

import calendar
import gzip
import ipaddress
import json
import os
import random
import re
from functools import lru_cache
from pathlib import Path

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formcast.grammar.json_schema.formats import FORMAT_NAMES, format_language
from formcast.grammar.json_schema.formats_idna import max_a_label_octets
from formcast.grammar.languages import CharAutomaton
from formcast.grammar.limits import Limits
from formcast.grammar.regex import Language

SUITE = Path(os.environ.get("FORMCAST_CASES", Path(__file__).parents[4] / "shared/cases")) / "jsts_draft2020-12_format.jsonl.gz"

# format: (values that are valid, values that are not)
TABLES: dict[str, tuple[list[str], list[str]]] = {
    "date": (
        ["2024-02-29", "2000-02-29", "0400-02-29", "1999-12-31", "2023-02-28"],
        ["2023-02-29", "1900-02-29", "2024-02-30", "2024-04-31", "2024-13-01", "2024-00-10", "2024-1-01", "24-01-01", "2024-01-01Z"],
    ),
    "time": (
        ["00:00:00Z", "23:59:59.123456789z", "12:00:00+23:59", "23:59:60Z", "01:29:60+01:30", "15:59:60.5-08:00", "22:59:60-01:00"],
        ["24:00:00Z", "12:60:00Z", "12:00:00", "12:00:00+24:00", "12:00:00.Z", "23:58:60Z", "23:59:60+00:01", "23:59:60-00:30"],
    ),
    "date-time": (
        ["2024-02-29T12:00:00Z", "1998-12-31T23:59:60Z", "1990-12-31t15:59:60-08:00", "2024-01-01T00:00:00.5+05:30"],
        [
            "2023-02-29T12:00:00Z",
            "2024-02-29 12:00:00Z",
            "2024-02-29",
            "2024-02-29T12:00:00",
            "1998-12-31T22:59:60Z",
            "2024-01-01T24:00:00Z",
        ],
    ),
    "duration": (
        ["P1D", "PT1H30M", "P1Y2M3DT4H5M6S", "P2W", "PT0S", "P01D", "P1M", "PT1M"],
        ["P", "PT", "P1YT", "P1Y2D", "PT1H2S", "P1W1D", "PT0.5S", "1D", "P1H", "-P1D", "P1D "],
    ),
    "email": (
        ["a@b", "joe.bloggs@example.com", '"joe bloggs"@example.com', r'"a\"b"@x.org', "x@[127.0.0.1]", "x@[IPv6:::1]", "a" * 64 + "@b"],
        ["a", "@b", "a@", ".a@b", "a.@b", "a..b@c", "a@-b", "a@b_c", "a b@c", "x@[127.0.0.300]", "a" * 65 + "@b", "a@b@c", "é@b"],
    ),
    "idn-email": (
        ["δοκιμή@example.com", "실례@실례.테스트", "a@b", "𝕏@example.com", "user@café.com", '"δ ε"@b', "é" * 32 + "@b", "x@[127.0.0.1]"],
        ["a", "@b", "a＠b", "a@", "é" * 33 + "@b", "𝕏" * 17 + "@b", "a@b@c", "a@é-"],
    ),
    "hostname": (
        ["a", "example.com", "a--b.com", "1host", "x" * 63 + ".org", "A-B.c", "xn--zca", "a.xn--4dbc5h", "xn-a", "X-n"],
        [
            *("", ".", "a.", ".a", "-a", "a-", "a_b", "x" * 64, "xn--X", "ab--c", "a..b", ".".join(["x" * 63] * 4), "é.com"),
            *("xn--", "xn--a", "xn--zca-", "xn---zca", "xn--a-", "xn--ls8h", "0a.xn--4dbc5h", "xn--4dbc5h.1", "X" * 64),
        ],
    ),
    "idn-hostname": (
        [
            "실례.테스트",
            "bücher.example",
            "παράδειγμα.δοκιμή",
            "a。b",
            "l·l",
            "α͵β",
            "א״ב",
            "・ぁ",
            "ب٠ب",
            "क्\u200dष",
            "بي\u200cبي",
            "ßς་〇",
            "Host",
        ],
        [
            "〮실례.테스트",
            "̀a",
            "a·l",
            "α͵",
            "A׳ב",
            "def・abc",
            "ب٠۰",
            "क\u200dष",
            "aא",
            "0a.א",
            "א0٠",
            "xn--7a",
            "ü" * 60,
            "a..b",
            "Ä",
            "e\u0301",
        ],
    ),
    "ipv4": (
        ["0.0.0.0", "255.255.255.255", "10.20.30.40"],
        ["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4\n", " 1.2.3.4", "1.2.3.x"],
    ),
    "ipv6": (
        ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "a:B::c"],
        [
            "",
            ":",
            ":::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "::1%eth0",
            "1:2:3:4:5:6:7:1.2.3.4",
            "::01.2.3.4",
            "[::1]",
        ],
    ),
    "uri": (
        [
            "http://a",
            "http://a:80/b?c=d#e",
            "mailto:a@b",
            "urn:x:y",
            "http://[::1]/",
            "http://[v1.x]",
            "file:/etc",
            "a:",
            "http://u:p@h/%20",
        ],
        [
            "a",
            "/a",
            "//a",
            "http://a b",
            "http://a:x",
            "http:/[::1]",
            "1http://a",
            "http://a/%zz",
            "http://é",
            "a:[",
            "http://[1]",
            "h://a@b@c",
        ],
    ),
    "uri-reference": (
        ["", "a", "/a", "//a/b", "?q", "#f", "./a:b", "http://a/b", "a/b:c", "//"],
        ["1:b", "#a#b", "\\a", "/é", '/a"', "/[::1]", "//a:b/"],
    ),
    "iri": (
        ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a", "urn:é", "http://a/?\ue000", "http://a/𐌀"],
        ["/é", "é:a", "http://a/\ue000", "http://a\n", "http://a/\ufdd0", "http://é b"],
    ),
    "iri-reference": (["é", "/é?é#é", "", "//é"], ["\\é", "#\ue000", "é|", "é:b c"]),
    "uri-template": (
        ["", "a{b}", "{+a}", "{#a}", "{?a,b*}", "{&a:3}", "{a.b}", "{%41}", "é", "a'b", "http://x/{y}{z}"],
        ["{", "}", "{}", "{a", "{a,}", "{a:0}", "{a:10000}", "{a..b}", "a b", "{=a}", "{a b}", "%zz", "<a>"],
    ),
    "uuid": (
        ["2eb8aa08-AA98-11ea-b4aa-73b441d16380", "00000000-0000-0000-0000-000000000000"],
        ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g", "{}"],
    ),
    "json-pointer": (["", "/", "/a/b~0~1", "//", "/é\n", "/~01"], ["a", "#", "/~", "/~2", "#/a", "/a~"]),
    "relative-json-pointer": (["0", "1/a", "12#", "0/", "0//~1"], ["", "/a", "01", "-1", "+1", "0##", "1#/a", "0/~2", "1a"]),
    "regex": (
        [
            *("", "a", "a|b", "^a$", "(a)+", "(?:a|(b(c)))*?", "[a-z0-9_-]", "[^]", "[]", r"\d{2,4}", "a{2}", "a{2,}?", r"\u{1F600}", r"\bx\B"),
            *("(?<n>a)", r"(?<n>a)\k<n>", r"\k<n>(?:b|(?<n>a))", r"(a)\1", r"\2()()", r"\p{Lu}", r"[\p{Script=Greek}\d]", r"\0[\0-\x7F]", "((((a))))"),
            *("[a-]", "[--a]", "[^^]", r"[\u{61}-\u{7A}é]", "[!-é]", "a{0,99999}", r"(?<=a)b(?<!c)"),
        ],
        [
            *("(", ")", "(a", "[a", "a**", "*", "a{3,2}", "a{", "}", "]", "[z-a]", r"\a", "(?i)a", "(?P<n>a)", "^*", r"\u{110000}", "\\"),
            *("(?<n>a)(?<n>b)", r"\k<n>", r"(?<n>a)\k<m>", r"(?<n>a)\k", r"()\2", r"\p{Xx}", r"\pL", r"[\d-a]", r"[\u{7A}-\u{61}]", r"\00", "(?=a)*"),
            *("(?<1>a)", "(?<n)", "[b-a]", r"\u12", "a{1,0}", "(?:a", r"[\k]", "a{,1}"),
        ],
    ),
}


def language(name: str) -> Language:
    found = format_language(name)
    assert found is not None
    return found


def walk(automaton: CharAutomaton, rng: random.Random, max_length: int, prefix: str = "") -> str | None:
    """A random word of the automaton that prefers ASCII; None if it did not end in time."""
    state, text = automaton.start, ""
    for char in prefix:
        text += char
        state = next(target for low, high, target in automaton.edges(state) if low <= ord(char) <= high)
    for _ in range(max_length):
        edges = automaton.edges(state)
        assert edges or automaton.accepting(state), f"dead end after {text!r}"
        if automaton.accepting(state) and (not edges or rng.random() < 0.15):
            return text
        low, high, state = rng.choice(edges)
        text += chr(rng.randint(low, high))
    return None


def walks(name: str, count: int, max_length: int = 300, prefix: str = "") -> list[str]:
    automaton, rng = language(name).automaton(Limits()), random.Random(name)
    return [text for text in (walk(automaton, rng, max_length, prefix) for _ in range(count)) if text is not None]


def test_every_format_has_a_table() -> None:
    assert set(TABLES) == set(FORMAT_NAMES)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, (valid, _) in TABLES.items() for text in valid])
def test_valid_values(name: str, text: str) -> None:
    assert language(name).matches(text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, (_, invalid) in TABLES.items() for text in invalid])
def test_invalid_values(name: str, text: str) -> None:
    assert not language(name).matches(text)


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_walks_never_die(name: str) -> None:
    assert all(language(name).matches(text) for text in walks(name, 20))


@pytest.mark.parametrize("name", ["color", "Date", "", "phone"])
def test_unknown_formats_are_annotations(name: str) -> None:
    assert format_language(name) is None


def test_languages_are_made_once() -> None:
    assert format_language("date") is format_language("date")


@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
def test_dates_follow_the_calendar(year: int, month: int, day: int) -> None:
    # The proleptic calendar repeats every 400 years, and `calendar` has no year 0.
    valid = 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year % 400 + 400, month)[1]
    assert language("date").matches(f"{year:04}-{month:02}-{day:02}") == valid


@given(st.integers(0, 23), st.integers(0, 59), st.sampled_from("+-"), st.integers(0, 23), st.integers(0, 59))
def test_leap_seconds_end_a_day_in_utc(hour: int, minute: int, sign: str, offset_hour: int, offset_minute: int) -> None:
    offset = (offset_hour * 60 + offset_minute) * (1 if sign == "+" else -1)
    ends_day = (hour * 60 + minute - offset) % 1440 == 1439
    assert language("time").matches(f"{hour:02}:{minute:02}:60{sign}{offset_hour:02}:{offset_minute:02}") == ends_day


@given(st.integers(0, 1439), st.integers(-1439, 1439))
def test_leap_seconds_are_possible_at_every_offset(fraction: int, offset: int) -> None:
    local = (1439 + offset) % 1440
    sign = "-" if offset < 0 else "+"
    text = f"{local // 60:02}:{local % 60:02}:60.{fraction}{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    assert language("time").matches(text)


@given(st.text("0123456789abF:.", max_size=20) | st.ip_addresses(v=6).map(str) | st.ip_addresses(v=6).map(lambda a: a.exploded))
def test_ipv6_agrees_with_the_standard_library(text: str) -> None:
    assert language("ipv6").matches(text) == _is_address(ipaddress.IPv6Address, text)


@given(st.lists(st.text("0123456789abF", max_size=5) | st.just("1.2.3.4"), max_size=9).map(":".join))
def test_ipv6_groups_agree_with_the_standard_library(text: str) -> None:
    assert language("ipv6").matches(text) == _is_address(ipaddress.IPv6Address, text)


@given(st.text("0123456789.", max_size=16) | st.ip_addresses(v=4).map(str))
def test_ipv4_agrees_with_the_standard_library(text: str) -> None:
    assert language("ipv4").matches(text) == _is_address(ipaddress.IPv4Address, text)


def _is_address(kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def test_idn_hostnames_are_valid_for_an_independent_encoder() -> None:
    for text in walks("idn-hostname", 60, max_length=80):
        assert len(idna.encode(text)) <= 253


def test_a_labels_are_those_of_an_independent_decoder() -> None:
    accepted = walks("hostname", 30, max_length=100, prefix="xn--")
    assert len(accepted) > 10
    for text in accepted:
        idna.decode(text, strict=True)


@given(st.lists(st.sampled_from("abאבا٠۰اבल·l一ー・한字ȩ́-1ß"), min_size=1, max_size=9).map("".join))
def test_a_labels_of_short_labels(text: str) -> None:
    form = "xn--" + text.encode("punycode").decode()
    try:
        expected = idna.ulabel(form) == text
    except (idna.IDNAError, UnicodeError):
        expected = False
    assert language("hostname").matches(form) == expected


@pytest.mark.parametrize("name", ["hostname", "idn-hostname", "idn-email", "regex"])
def test_complements_hold_nothing_that_may_be_valid(name: str) -> None:
    """Also of what a format leaves out."""
    rare = {
        "hostname": ["XN--4DBC5H", "xn--4dbc5h.a", "a-----b.xn--a-----b-zca"],
        "idn-hostname": ["παράδειγμα" * 5 + ".com", "a.xn--4dbc5h", "𐌀"],
        "idn-email": ["é" * 10 + "a" * 30 + "@b", "a@cafe\u0301.com"],
        "regex": ["(?<" + "n" * 40 + ">a)", "(?i:a)", "a{1000000}", "[а-я]", r"(?:(?<n>a)|(?<n>b))", "(" * 101 + ")" * 101],
    }
    others = ~language(name)
    assert not any(others.matches(text) for text in rare[name] + TABLES[name][0])
    assert sum(others.matches(text) for text in TABLES[name][1]) > len(TABLES[name][1]) // 2 or name == "idn-hostname"
    assert ~others == language(name)


def test_a_labels_can_be_bounded_and_excluded() -> None:
    short = language("hostname") & Language.length(0, 12)
    assert short.matches("xn--4dbc5h") and short.matches("xn--4dbc5h.a") and not short.matches("xn--4dbc5h.ab")
    assert all(walk(short.automaton(Limits()), random.Random(k), 13, "xn--") for k in range(20))
    lower = language("hostname") & Language.pattern("[a-z0-9.-]*")
    assert lower.matches("example.com") and not lower.matches("Example.com") and not lower.matches("xn--5db1e")
    assert (language("idn-hostname") & Language.pattern("[^]*[.]com")).matches("bücher.com")
    others = ~language("hostname")
    assert not others.matches("xn--4dbc5h") and others.matches("xn--4dbc5h.")


def test_characters_of_idn_hostnames_are_valid_for_an_independent_encoder() -> None:
    accepted = [char for char in map(chr, (*range(0xD800), *range(0xE000, 0x10000, 7))) if language("idn-hostname").matches(char)]
    assert len(accepted) > 45_000
    for char in accepted:
        idna.encode(char)


@given(st.lists(st.sampled_from("abאבا٠۰اबл·ー・한字ȩ́-1"), min_size=1, max_size=6).map("".join))
def test_short_labels_are_valid_for_an_independent_encoder(text: str) -> None:
    if language("idn-hostname").matches(text):
        idna.encode(text)


@given(
    st.text(st.characters(min_codepoint=0x80, max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1, max_size=11),
    st.text("ab", max_size=20),
)
def test_length_of_a_labels_is_never_underestimated(wide: str, narrow: str) -> None:
    for label in (wide + narrow, narrow + wide, narrow + wide[0] * len(wide)):
        assert len("xn--" + label.encode("punycode").decode()) <= max_a_label_octets(len(wide), len(narrow))


def test_walks_through_regex_compile() -> None:
    for text in walks("regex", 200, max_length=60):
        if not re.search(r"\(\?<|\[|\\[cukpP0-9/]|\$\{", text):
            re.compile(text)


@lru_cache(maxsize=1)
def _suite() -> list[tuple[str, str, bool]]:
    if not SUITE.exists():
        return []
    with gzip.open(SUITE, "rt") as lines:
        groups = [json.loads(line) for line in lines]
    return [
        (group["schema"]["format"], test["data"], test["valid"])
        for group in groups
        for test in group["tests"]
        if isinstance(test["data"], str) and group["schema"]["format"] in FORMAT_NAMES
    ]


@pytest.mark.conformance
def test_official_suite() -> None:
    rows = _suite()
    if not rows:
        pytest.skip(f"the format cases of the JSON Schema test suite are not at {SUITE}")
    verdicts = [(valid, language(name).matches(text), name, text) for name, text, valid in rows]
    assert [row for row in verdicts if row[1] and not row[0]] == []
    assert sum(valid == matched for valid, matched, _, _ in verdicts) >= 0.95 * len(verdicts)
