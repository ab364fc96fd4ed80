"""Free text of a bounded number of characters."""

from __future__ import annotations

from collections.abc import Iterable

from ..regex import Language

_ANYTHING = Language.anything()
_SOMETHING = Language.length(1, None)


def text_without(words: Iterable[str]) -> Language:
    """All texts that hold none of some words."""
    listed = list(words)
    return _ANYTHING - _ANYTHING.concat(Language.literals(listed), _ANYTHING) if listed else _ANYTHING


def text_and_end(end: str, watched: Iterable[str], max_chars: int) -> Language:
    """Texts of at most `max_chars` characters, each with the end after it.

    Args:
        end: one of the watched words.
        watched: words of which the first that is complete ends the text, the longest where several are.
    """
    words = list(watched)
    whole = Language.length(0, max_chars).concat(Language.literal(end))
    early = _ANYTHING.concat(Language.literals(words), _SOMETHING)
    longer = [word for word in words if word != end and word.endswith(end)]
    return whole - early - (_ANYTHING.concat(Language.literals(longer)) if longer else Language.nothing())
