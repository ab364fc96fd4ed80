"""Byte rows of special tokens."""

from __future__ import annotations

from collections.abc import Iterable

from .lowering import PUBLISH
from .machine_layout import F_BOUNDARY, F_EXPANDED, FINAL_ROW, FLAGS
from .row_store import STORE
from .structural_tag.symbols import token_spelling


class TokenRows:
    """Rows of a leaf that is one of some special tokens. Made at once.

    Args:
        token_ids: at least one.
    """

    def __init__(self, token_ids: Iterable[int]):
        spellings = sorted({token_spelling(token_id) for token_id in token_ids})
        prefixes = dict.fromkeys(spelling[:length] for spelling in spellings for length in range(len(spelling)))
        rows = STORE.allocate_many(STORE.own(self), len(prefixes))
        row_of = dict(zip(prefixes, rows.tolist(), strict=True))
        for text in [*prefixes, *spellings]:
            if text:
                STORE.rows[row_of[text[:-1]], text[-1]] = row_of.get(text, FINAL_ROW)
        self.num_rows = len(prefixes)
        self._start = row_of[b""]
        with PUBLISH:
            STORE.rows[rows, FLAGS] = F_EXPANDED
            STORE.rows[self._start, FLAGS] |= F_BOUNDARY

    def start_row(self) -> int:
        return self._start
