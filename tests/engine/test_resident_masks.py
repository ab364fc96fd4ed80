"""Decoding along resident states: the same tokens as by lookups, and no lookups for what is resident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from engine_fakes import EOS, NUM_TOKENS, SPECIAL, FakeModel, drain, greedy, tiny_core

from formcast import Grammar, Limits, Vocabulary
from formcast.engine.constraint import Constraint, ResidentConstraint
from formcast.engine.kernels.masked_sample import RowStatus
from formcast.engine.mask_meter import MaskMeter
from formcast.engine.request import SamplingParams
from formcast.engine.residency import Residency
from formcast.engine.row_edits import RowEdits
from formcast.engine.sampler import Sampler, SampleRow
from formcast.fsm_cache import FsmCompiler, TokenFSM
from formcast.fsm_cache.mask import Mask
from formcast.fsm_cache.mask_pool import MaskPool

VOCAB = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), None, None], [EOS], vocab_size=NUM_TOKENS, special_tokens={"<special>": SPECIAL}
)
GRAMMARS = (
    Grammar.json_schema({"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": ["x", "yz"]}}, "required": ["a", "b"]}),
    Grammar.json_schema({"type": "array", "items": {"type": "integer", "minimum": -20, "maximum": 2000}, "maxItems": 6}),
    None,
    Grammar.regex("(ab|c[^c]*c|é)*!"),
    Grammar.structural_tag({"type": "triggered_tags", "triggers": ["<"], "tags": [{"begin": "<a", "content": {"type": "regex", "pattern": "[x-z]{3}"}, "end": ">"}]}),
    None,
)
CPU = torch.device("cpu")


class CountingFSM(TokenFSM):
    """Counts what is asked of it."""

    num_lookups = 0

    def mask(self, state: int) -> Mask:
        self.num_lookups += 1
        return super().mask(state)

    def advance(self, state: int, token: int) -> int:
        self.num_lookups += 1
        return super().advance(state, token)

    def accepting(self, state: int) -> bool:
        self.num_lookups += 1
        return super().accepting(state)


def _automaton(grammar: Grammar) -> CountingFSM:
    return CountingFSM(grammar.compile(Limits(), VOCAB.special_tokens), VOCAB)


def _decode(
    constraints: Sequence[Constraint | None], sampler: Sampler, pool: MaskPool | None, num_steps: int, seed: int
) -> list[list[int]]:
    """The tokens of each row; a text starts again from its beginning where only the end is left."""
    logits = torch.Generator().manual_seed(seed)
    texts: list[list[int]] = [[] for _ in constraints]
    for position in range(num_steps):
        if pool is not None:
            pool.tick()
        rows = []
        for index, constraint in enumerate(constraints):
            mask, state = (None, None) if constraint is None else constraint.allowed(0)
            params = SamplingParams(temperature=float(index % 2), frequency_penalty=0.5)
            rows.append(SampleRow(params=params, seed=index, position=position, mask=mask, state=state))
        tokens = sampler.sample(torch.randn(len(rows), NUM_TOKENS, generator=logits), rows)
        for text, constraint, token in zip(texts, constraints, tokens, strict=True):
            assert token.status is RowStatus.SAMPLED
            text.append(token.token_id)
            if constraint is None:
                continue
            ended = constraint.take(token.token_id, token.target)
            if constraint.settle() if ended is None else ended:
                constraint.cursor.reset()
                constraint.settle()
    return texts


@pytest.mark.parametrize("shared", [True, False], ids=["in place", "mirrored"])
@pytest.mark.parametrize("min_rows", [12, 400], ids=["scarce", "ample"])
def test_a_mixed_batch_gets_the_tokens_that_lookups_give(shared: bool, min_rows: int) -> None:
    automata = [None if grammar is None else _automaton(grammar) for grammar in GRAMMARS]
    meter = MaskMeter()
    pool = MaskPool(VOCAB.row_words, max_bytes=0, min_rows=min_rows)
    sampler = Sampler(NUM_TOKENS, Residency(pool, CPU, shared=shared))
    for seed in (1, 2, 1):
        looked_up = [None if fsm is None else Constraint(fsm, meter) for fsm in automata]
        resident = [None if fsm is None else ResidentConstraint(fsm, meter, pool) for fsm in automata]
        expected = _decode(looked_up, Sampler(NUM_TOKENS), None, 120, seed)
        before = sum(fsm.num_lookups for fsm in automata if fsm is not None)
        assert _decode(resident, sampler, pool, 120, seed) == expected
        lookups = sum(fsm.num_lookups for fsm in automata if fsm is not None) - before
    if min_rows == 400:  # the third time, everything was met before
        assert lookups == 0


def test_rows_whose_mask_was_evicted_are_held_filled_and_sampled() -> None:
    """The row of one state is taken by others before it is sampled; a penalty shows that no row is edited twice."""
    fsm = _automaton(Grammar.choice(["abc", "b"]))
    pool = MaskPool(VOCAB.row_words, max_bytes=0, min_rows=8)
    residents = pool.residents(fsm)
    slot = pool.enter(residents, fsm.start)
    for token in range(20):
        pool.tick()
        pool.row(Mask.of(torch.zeros(0, dtype=torch.int32).numpy(), torch.tensor([token], dtype=torch.int32).numpy(), 0))
    assert pool.states[slot, 0] == -1
    pool.tick()
    logits = torch.zeros(2, NUM_TOKENS)
    logits[0, ord("b")] = logits[1, 7] = 1.0
    biased = SamplingParams(temperature=0.0, logit_bias={7: 2.0})
    edits = RowEdits(biased, []).along([])[0]
    rows = [
        SampleRow(params=SamplingParams(temperature=0.0), seed=0, position=0, state=slot),
        SampleRow(params=biased, seed=0, position=0, edits=edits),
    ]
    held, free = Sampler(NUM_TOKENS, Residency(pool, CPU, shared=False)).sample(logits, rows)
    assert (held.token_id, free.token_id) == (ord("b"), 7)
    assert logits[1, 7] == 3.0


@pytest.mark.parametrize("async_scheduling", [False, True])
@pytest.mark.parametrize("draft_from_grammar", [False, True])
def test_an_engine_answers_the_same_with_resident_masks(async_scheduling: bool, draft_from_grammar: bool) -> None:
    def answers(resident_masks: bool) -> dict[str, tuple[int, ...]]:
        compiler = FsmCompiler(VOCAB)
        core = tiny_core(
            compiler, FakeModel(), resident_masks=resident_masks, async_scheduling=async_scheduling, draft_from_grammar=draft_from_grammar
        )
        params: tuple[dict[str, Any], ...] = ({}, {"temperature": 1.0, "seed": 3}, {"min_tokens": 6}, {"logprobs": 2, "max_tokens": 40})
        requests = [
            greedy(f"{index} {number}", b"prompt %d" % index, grammar=grammar, **{"max_tokens": 30, **params[index % len(params)]})
            for number in range(2)
            for index, grammar in enumerate(GRAMMARS)
        ]
        found = drain(core, requests)
        compiler.close()
        return {request_id: answer.token_ids for request_id, answer in found.items()}

    assert answers(True) == answers(False)


def test_many_waiting_grammars_take_no_room_before_their_turn() -> None:
    pool = MaskPool(VOCAB.row_words, max_bytes=0, min_rows=12)
    constraints = [ResidentConstraint(_automaton(Grammar.choice([f"{number}a", "b"])), MaskMeter(), pool) for number in range(60)]
    assert pool.num_states == 0
    for constraint in constraints:
        pool.tick()
        assert constraint.allowed(0).state is not None
