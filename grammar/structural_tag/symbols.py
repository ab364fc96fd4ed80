"""Symbols: what boundaries are made of. A code point stands for itself; a special token is one symbol beyond Unicode.

To the byte automaton a special token is four bytes: one that no UTF-8 text contains (RFC 3629), and the id. A vocabulary spells its
special tokens in the same way, so that a mask holds such a token exactly where a boundary names it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import GrammarError
from ..languages import MAX_CODE_POINT
from .spec import Boundary, Piece, Token, pieces

Symbols = tuple[int, ...]

TOKEN_LEAD = 0xFF
TOKEN_BYTES = 4
_FIRST_TOKEN = MAX_CODE_POINT + 1
_MAX_TOKEN_ID = (1 << 21) - 1


def token_spelling(token_id: int) -> bytes:
    """The bytes that stand for a special token."""
    assert 0 <= token_id <= _MAX_TOKEN_ID
    return bytes((TOKEN_LEAD, token_id >> 14, (token_id >> 7) & 0x7F, token_id & 0x7F))


def token_id_of(spelling: bytes) -> int:
    """The id in the bytes of a special token."""
    return spelling[1] << 14 | spelling[2] << 7 | spelling[3]


def token_of(symbol: int) -> int | None:
    """The id of a special token, None for a code point."""
    return symbol - _FIRST_TOKEN if symbol >= _FIRST_TOKEN else None


def as_text(symbols: Symbols) -> str | None:
    """Symbols as a text; None if a special token is among them."""
    return None if any(token_of(symbol) is not None for symbol in symbols) else "".join(map(chr, symbols))


def num_bytes(symbol: int) -> int:
    """Length of a symbol in the byte automaton."""
    if symbol >= _FIRST_TOKEN:
        return TOKEN_BYTES
    return 1 + (symbol >= 0x80) + (symbol >= 0x800) + (symbol >= 0x10000)


class SymbolTable:
    """Boundaries as symbols, for one vocabulary.

    Args:
        special_tokens: ids of special tokens by name, None for those that end the text, which no text holds: a boundary is where the
            text ends. None as a whole where no vocabulary is known; then names are plain text.
        lenient: take any id, for checks that no vocabulary is needed for.
    """

    def __init__(self, special_tokens: Mapping[str, int | None] | None, *, lenient: bool = False):
        self._ids = special_tokens or {}
        self._names = {token_id: name for name, token_id in self._ids.items() if token_id is not None}
        self.knows_vocabulary = special_tokens is not None
        self.is_lenient = lenient
        self.uses_tokens = False
        self._made: dict[tuple[Piece, ...], Symbols] = {}

    def of(self, boundary: Boundary) -> Symbols:
        """The symbols of a boundary.

        Raises:
            GrammarError: an id that is no special token.
        """
        if not isinstance(boundary, tuple):
            return self._of(boundary)
        found = self._made.get(boundary)
        if found is None:
            found = self._made[boundary] = tuple(symbol for piece in boundary for symbol in self._of(piece))
        return found

    def _of(self, piece: Piece) -> Symbols:
        if isinstance(piece, str):
            return tuple(map(ord, piece))
        if isinstance(piece.token, str):
            if piece.token not in self._ids:
                return tuple(map(ord, piece.token))
            token_id = self._ids[piece.token]
            if token_id is None:
                return ()
        else:
            token_id = piece.token
            if token_id not in self._names and not self.is_lenient:
                what = f"{token_id} is no special token of the vocabulary" if self.knows_vocabulary else "a token id needs a vocabulary"
                raise GrammarError(what, pointer=piece.pointer)
        self.uses_tokens = True
        return (_FIRST_TOKEN + token_id,)

    def name(self, token_id: int) -> str:
        """The name of a special token."""
        return self._names[token_id]


def text_of(boundary: Boundary) -> str | None:
    """A boundary as plain text; None where a token of it is given by its id."""
    texts = [piece.token if isinstance(piece, Token) else piece for piece in pieces(boundary)]
    return None if any(isinstance(text, int) for text in texts) else "".join(map(str, texts))
