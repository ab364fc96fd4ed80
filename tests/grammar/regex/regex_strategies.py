"""Hypothesis strategies for patterns of the Python dialect and for texts that reach into their corners."""

from __future__ import annotations

from hypothesis import strategies as st

TEXT_ALPHABET = "ab1_ \nKk\u017fsé-"

texts = st.text(TEXT_ALPHABET, max_size=7)

_LITERALS = st.sampled_from(["a", "b", "ab", "1", "_", "k", "s", "-", " ", "é"])
_CLASSES = st.sampled_from(
    [".", r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", "[ab]", "[^a]", "[a-k]", r"[^\w]", r"[\d_]", r"[\W1]", "[]a]", "[^-a]"]
)
_ANCHORS = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
_COMMON_QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "+?", "??", "{1,2}?"])
_QUANTIFIERS = _COMMON_QUANTIFIERS | st.just("{,2}")
_LOOKBEHINDS = st.sampled_from(["a", "b", "ab", "^", r"\s", r"\w", "[ab]b", "(?<!a)b", "(?<=a)b", "^a"])

_plain_atoms = _LITERALS | _CLASSES


def _joined(parts: list[str]) -> str:
    return "".join(parts)


def _alternatives(atom: st.SearchStrategy[str], quantifiers: st.SearchStrategy[str] = _QUANTIFIERS) -> st.SearchStrategy[str]:
    repeated = st.one_of(atom, st.builds("(?:{}){}".format, atom, quantifiers))
    sequence = st.lists(repeated, max_size=4).map(_joined)
    return st.lists(sequence, min_size=1, max_size=3).map("|".join)


# No assertions, nothing that depends on a dialect: the subset that automata libraries agree on.
plain_patterns = st.recursive(
    st.sampled_from(["a", "b", "ab", "[ab]", "[^a]", "c", "[a-c]"]),
    lambda inner: _alternatives(inner, _COMMON_QUANTIFIERS).map("(?:{})".format),
    max_leaves=6,
)

_grouped = st.recursive(
    _plain_atoms | _ANCHORS,
    lambda inner: st.one_of(
        _alternatives(inner).map("(?:{})".format),
        _alternatives(inner).map("({})".format),
        _alternatives(inner).map("(?={})".format),
        _alternatives(inner).map("(?!{})".format),
        _LOOKBEHINDS.map("(?<={})".format),
        _LOOKBEHINDS.map("(?<!{})".format),
        st.builds("(?{}:{})".format, st.sampled_from(["i", "s", "m", "i-s", "ai"]), _alternatives(inner)),
    ),
    max_leaves=10,
)

python_patterns = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "", "(?i)", "(?m)", "(?s)", "(?im)"]),
    st.lists(_grouped, min_size=1, max_size=4).map(_joined),
)
