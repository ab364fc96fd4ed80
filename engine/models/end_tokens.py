"""Which tokens end a model's answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Models often declare only one of the tokens they end with: a chat model the end of its turn, a base model the end of
# the text. These spellings mean nothing else.
_END_SPELLINGS = frozenset(
    {
        "<end_of_turn>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|end_of_turn|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|im_end|>",
    }
)


def end_token_ids(declared: Iterable[int | None], special: Mapping[str, int], *, vocab_size: int) -> frozenset[int]:
    """The ids of all tokens that end an answer.

    Args:
        declared: ids that the model's files name; absent ones are None.
        special: control tokens by text; those spelt as an end token count too. (Not the tokens that are plain text to the
            model: in some vocabularies `</s>` is HTML.)
        vocab_size: ids outside of it are dropped, as they can never be sampled.
    """
    named = [token_id for text, token_id in special.items() if text in _END_SPELLINGS]
    return frozenset(token_id for token_id in (*declared, *named) if token_id is not None and 0 <= token_id < vocab_size)
