"""Grammars through a vocabulary: masks are exact and never lead into a dead end."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from toy_vocabulary import brute_force, mask_of, vocabulary, walk

from formcast import Grammar, Limits, compile_grammar
from formcast.grammar.cfg import ContextFreeGrammar, compile_cfg, parse_ebnf, parse_gbnf, parse_lark
from formcast.grammar.grammar import Compiled

GRAMMARS = {
    "json": parse_gbnf(
        'root ::= value\nvalue ::= "{" ws (pair ("," ws pair)*)? "}" ws | "[" ws (value ("," ws value)*)? "]" ws | string | num'
        ' | ("true" | "false" | "null") ws\npair ::= string ":" ws value\nnum ::= "-"? [0-9]{1,4} ("." [0-9]{1,3})? ws\n'
        'string ::= "\\"" ([^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\nu]){0,9} "\\"" ws\nws ::= " "?'
    ),
    "ambiguous": parse_ebnf("root ::= e\ne ::= [0-9] | e ('-' | '+' | '') e | '(' e ')'"),
    "nullable": parse_ebnf("root ::= n root 'x' | 'ab' n\nn ::= 'n' | n n | ''"),
    "runs": parse_gbnf('root ::= "\\"" [^"]{0,6} "\\"" | [a-z]{3,7} [0-9.]{0,4} | ([^a-z"] | "00"){1,3} [^}]{2,5}'),
    "runs of lark": parse_lark('start: A (" " A)~0..2 | B\nA: /[^ 0]{1,4}/\nB: /"([^"\\\\]|\\\\.){0,4}"/'),
    "lines": parse_ebnf("root ::= line+\nline ::= word (' ' word)* '\\n' | 'if ' word '\\n'\nword ::= [a-zé日]{1,5}"),
    "arithmetic": parse_lark(
        'start: s\n?s: p | s "+" p\n?p: a | p "*" a\n?a: NUMBER | NAME | "-" a | "(" s ")"\n'
        "%import common.CNAME -> NAME\n%import common.NUMBER\n%import common.WS_INLINE\n%ignore WS_INLINE"
    ),
    "names": parse_lark('start: NAME+ ";"\nNAME: /(?!null\\b)[a-e]{1,4}/\n%ignore " "'),
    "strings": parse_lark('start: "[" [S ("," S)*] "]"\n%import common.ESCAPED_STRING -> S\n%import common.C_COMMENT\n%ignore C_COMMENT'),
    "prefix": parse_lark('start: t\nt: "+" t t | NAME | NUM\nNAME: /[a-e]+/\nNUM: /[0-9]+(\\.[0-9]+)?/\n%ignore /[ \\n]+/'),
}


class Compilable:
    """The part of `Grammar` that compiling against a vocabulary needs."""

    kind = "cfg"

    def __init__(self, grammar: ContextFreeGrammar, key: str):
        self.key = key
        self._grammar = grammar

    def compile(self, limits: Limits | None = None, special_tokens: Any = None) -> Compiled:
        return Compiled(*compile_cfg(self._grammar, limits))


def compilable(name: str) -> Grammar:
    return cast(Grammar, Compilable(GRAMMARS[name], name))


@pytest.mark.parametrize("name", GRAMMARS)
def test_random_walks_end_in_accepted_texts(name: str, acceptor):
    vocab = vocabulary()
    accepts = acceptor(GRAMMARS[name])
    finished = 0
    for seed in range(12):
        text = walk(compilable(name), vocab, random.Random(seed), max_tokens=60)
        if text is not None:
            finished += 1
            assert accepts(text.decode())
    assert finished


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_hold_exactly_the_tokens_that_can_be_taken(name: str):
    vocab, rng = vocabulary(), random.Random(7)
    cursor = compile_grammar(compilable(name), vocab).cursor()
    for _ in range(12):
        allowed = mask_of(cursor)
        assert allowed == brute_force(cursor)
        choices = sorted(allowed - {0})
        if not choices:
            break
        assert cursor.advance(rng.choice(choices))
