"""Cases of `formcast bench mask`: constraints, and token sequences to replay under each."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ... import schemas
from ...fsm_cache import Vocabulary, compile_grammar
from ...grammar.grammar import Grammar
from .errors import UsageError

KINDS = ("schema", "regex", "lark", "ebnf", "gbnf")
_OWN_TEXTS = 3  # for each shipped constraint
_MAX_TOKENS = 300
_SAMPLE = 48  # tokens drawn where very many are allowed
_CLOSE = 0.4  # how often a walk takes a token that closes something, so that texts end


@dataclass(frozen=True)
class Text:
    """Attributes:
    token_ids: one text.
    valid: whether the constraint admits it.
    """

    token_ids: tuple[int, ...]
    valid: bool


@dataclass(frozen=True)
class Case:
    """Attributes:
    name: for people.
    kind: one of KINDS.
    source: schema (a JSON value) or text of the constraint.
    texts: to be replayed.
    """

    name: str
    kind: str
    source: Any
    texts: tuple[Text, ...]


def read_cases(path: str, vocabulary: Vocabulary) -> list[Case]:
    """Cases of a file with a JSON object a line (`.gz` or not): a KIND, `id`, and `tests` with `valid` and `data` or `text`.

    Raises:
        UsageError: a line has another form.
        OSError: the file can't be read.
    """
    encode = _encoder(vocabulary)
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else Path(path).open(encoding="utf-8") as lines:
        return [_case(f"{path}:{number}", line, encode) for number, line in enumerate(lines, 1) if line.strip()]


def _text_of(test: dict[str, Any]) -> str:
    return test["text"] if "text" in test else json.dumps(test["data"], ensure_ascii=False)


def _case(place: str, line: str, encode: Any) -> Case:
    try:
        data = json.loads(line)
        kind = next(kind for kind in KINDS if kind in data)
        texts = [(_text_of(test), test["valid"]) for test in data["tests"]]
        return Case(str(data.get("id", place)), kind, data[kind], tuple(Text(tuple(encode(text)), bool(valid)) for text, valid in texts))
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise UsageError(f"{place} is no case: {type(error).__name__}: {error}") from error


def own_cases(vocabulary: Vocabulary) -> Iterator[Case]:
    """The shipped schemas and grammars, with texts from seeded random walks through their own masks."""
    for name in schemas.names():
        yield _walked(name, "schema", schemas.load(name), vocabulary)
    for name in schemas.grammar_names():
        grammar = schemas.load_grammar(name)
        yield _walked(name, grammar.kind, grammar.text, vocabulary)


def grammar_of(kind: str, source: Any) -> Grammar:
    """The constraint of a case. Raises GrammarError."""
    return Grammar.json_schema(source) if kind == "schema" else getattr(Grammar, kind)(source)


def _walked(name: str, kind: str, source: Any, vocabulary: Vocabulary) -> Case:
    fsm = compile_grammar(grammar_of(kind, source), vocabulary)
    rng, row = random.Random(name), np.zeros(vocabulary.row_words, np.int32)
    texts: list[Text] = []
    for _ in range(_OWN_TEXTS):
        cursor, tokens = fsm.cursor(), []
        while len(tokens) < _MAX_TOKENS and not (cursor.accepting and rng.random() < _CLOSE):
            cursor.fill_mask(row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            allowed = [t for t in allowed if t not in vocabulary.eos_token_ids]
            if not allowed:
                break
            tokens.append(_choose(allowed, vocabulary, rng))
            cursor.advance(tokens[-1])
        if cursor.accepting:
            texts.append(Text(tuple(tokens), True))
    return Case(f"formcast:{name}", kind, source, tuple(texts))


def _choose(allowed: list[int], vocabulary: Vocabulary, rng: random.Random) -> int:
    closing = [t for t in allowed if (vocabulary.token_bytes[t] or b"").strip(b' \n"}],') == b""]
    if closing and rng.random() < _CLOSE:
        return rng.choice(closing)
    return rng.choice(rng.sample(allowed, min(len(allowed), _SAMPLE)))


def _encoder(vocabulary: Vocabulary) -> Any:
    if vocabulary.encode is None:
        raise UsageError("the tokenizer has no encoder for the texts of a cases file")
    return vocabulary.encode
