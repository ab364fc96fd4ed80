"""Beam search: what transformers' own finds, with and without a constraint, whatever room there is."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from engine_fakes import (
    EOS,
    NUM_TOKENS,
    SPECIAL,
    FakeCompiler,
    FakeModel,
    Poisoned,
    Script,
    drain,
    greedy,
    random_module,
    tiny_core,
    tiny_llama,
)
from scheduler_world import World

from formcast.engine.core import EngineCore
from formcast.engine.request import Beam, BeamSearchParams, DeadlineExceeded, GenerationError, InvalidRequest, Request
from formcast.fsm_cache import FsmCompiler, Vocabulary
from formcast.grammar import Grammar
from formcast.grammar.errors import LimitError

PROMPTS = [b"a", b"the quick brown fox jumps over the lazy dog", bytes(range(60, 93))]
NAMES = Grammar.choice(["one", "once", "only", "two", "twice", "twelve", "a"])
GRAMMARS = {
    "free": None,
    "digits": Grammar.regex("[0-9]{1,8}"),
    "object": Grammar.json_schema({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"enum": [1, 12, "x"]}}}),
    "choice": NAMES,
}
HUGE_PENALTY = -1e6
"""transformers fills up with continuations that are forbidden: their scores are below."""


def search(request_id: str, prompt: bytes | list[int], grammar: Any = None, **params: Any) -> Request:
    beams = BeamSearchParams(**{"beam_width": 4, "max_tokens": 12, **params})
    return Request(
        request_id=request_id, prompt_token_ids=list(prompt), params=beams.sampling_params(), beam_search=beams, grammar=grammar
    )


def vocabulary() -> Vocabulary:
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    return Vocabulary(tokens + [None] * (NUM_TOKENS - 256), {EOS}, NUM_TOKENS)


@cache
def compiler() -> FsmCompiler:
    return FsmCompiler(vocabulary())


@cache
def model() -> FakeModel:
    """A model for which the end token is likely enough to come early."""
    module = tiny_llama(seed=1)
    module.get_parameter("lm_head.weight")[EOS] *= 2
    return FakeModel(module=module)


def core(**config: Any) -> EngineCore:
    return tiny_core(compiler(), model(), **config)


@cache
def reference_module() -> Any:
    module = random_module(model().module.config, attention="eager")
    module.load_state_dict(model().module.state_dict())
    return module


@cache
def reference(prompt: bytes, grammar: str, **params: Any) -> list[tuple[tuple[int, ...], float]]:
    """Tokens and scores by `generate`, best first, with a constraint that follows a cursor of ours."""
    settings = {"beam_width": 4, "max_tokens": 12, "length_penalty": 1.0, "ignore_eos": False, **params}
    fsm = None if GRAMMARS[grammar] is None else compiler().submit(GRAMMARS[grammar]).result()

    def allowed(_: int, token_ids: torch.Tensor) -> list[int]:
        assert fsm is not None
        cursor = fsm.cursor()
        if not all(cursor.advance(token_id) for token_id in token_ids.tolist()[len(prompt) :]):
            return [0]  # what transformers goes on with although it was forbidden
        row = torch.zeros(-(-NUM_TOKENS // 32), dtype=torch.int32).numpy()
        cursor.fill_mask(row)
        return [token_id for token_id in range(NUM_TOKENS) if row[token_id >> 5] >> (token_id & 31) & 1] or [EOS]

    found = reference_module().generate(
        torch.tensor([list(prompt)]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        num_beams=settings["beam_width"],
        num_return_sequences=settings["beam_width"],
        do_sample=False,
        max_new_tokens=settings["max_tokens"],
        length_penalty=settings["length_penalty"],
        eos_token_id=None if settings["ignore_eos"] else EOS,
        pad_token_id=SPECIAL,
        prefix_allowed_tokens_fn=None if fsm is None else allowed,
        return_dict_in_generate=True,
        output_scores=True,
    )
    answers = []
    for token_ids, score in zip(found.sequences.tolist(), found.sequences_scores.tolist(), strict=True):
        answer = token_ids[len(prompt) :]
        answer = answer[: answer.index(EOS) + 1] if EOS in answer and not settings["ignore_eos"] else answer
        if score > HUGE_PENALTY:
            answers.append((tuple(answer), score))
    return answers


def check(beams: tuple[Beam, ...], expected: list[tuple[tuple[int, ...], float]]) -> None:
    assert [beam.token_ids for beam in beams] == [token_ids for token_ids, _ in expected]
    assert [beam.score for beam in beams] == pytest.approx([score for _, score in expected], rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("grammar", GRAMMARS)
@pytest.mark.parametrize(
    "params",
    [{}, {"beam_width": 7, "max_tokens": 16}, {"beam_width": 3, "length_penalty": -1.0}, {"beam_width": 2, "length_penalty": 2.5}],
    ids=str,
)
def test_answers_and_scores_are_those_of_transformers(params, grammar):
    requests = [search(str(index), prompt, GRAMMARS[grammar], **params) for index, prompt in enumerate(PROMPTS)]
    done = drain(core(), requests)
    for index, prompt in enumerate(PROMPTS):
        (output,) = done[str(index)].outputs
        check(output.beams, reference(prompt, grammar, **params))
        assert output.finish_reason == output.beams[0].finish_reason
        assert output.num_generated_tokens == sum(len(beam.token_ids) for beam in output.beams)


def test_some_answers_end_and_some_are_cut():
    reasons = {beam.finish_reason for prompt in PROMPTS for beam in drain(core(), [search("r", prompt)])["r"].last.beams}
    assert reasons == {"stop", "length"}


def test_end_tokens_are_tokens_like_others_where_they_are_ignored():
    beams = drain(core(), [search("r", PROMPTS[0], ignore_eos=True)])["r"].last.beams
    check(beams, reference(PROMPTS[0], "free", ignore_eos=True))
    assert all(beam.finish_reason == "length" and len(beam.token_ids) == 12 for beam in beams)


@pytest.mark.parametrize(
    "config",
    [
        {"async_scheduling": True},
        {"resident_masks": True},
        {"max_num_batched_tokens": 8},
        {"enable_prefix_caching": False},
        {"block_size": 4},
        {"max_num_seqs": 4},
        {"block_size": 4, "kv_cache_memory_bytes": 16 * 4 * 2 * 2 * 16 * 4, "max_model_len": 60},
        {"block_size": 4, "kv_cache_memory_bytes": 16 * 4 * 2 * 2 * 16 * 4, "max_model_len": 60, "enable_prefix_caching": False},
    ],
    ids=["overlapped", "resident", "small chunks", "no cache", "small blocks", "four places", "scarce", "scarce, no cache"],
)
def test_room_and_company_change_nothing(config):
    """Other requests run beside; where blocks are scarce, beams lose theirs and are computed again."""
    engine = core(**config)
    places = [(grammar, prompt) for grammar in ("free", "object") for prompt in PROMPTS[:2]]
    searches = [search(str(index), prompt, GRAMMARS[grammar]) for index, (grammar, prompt) in enumerate(places)]
    done = drain(engine, [request for index, beams in enumerate(searches) for request in (other(index), beams)])
    for index, (grammar, prompt) in enumerate(places):
        check(done[str(index)].last.beams, reference(prompt, grammar))
        assert done[f"other {index}"].token_ids == alone(index)
    assert (engine.stats.num_preemptions > 0) == (engine.limits.num_blocks < 20 or engine.limits.max_num_seqs < 8)


def other(index: int) -> Request:
    return greedy(f"other {index}", PROMPTS[index % 3])


@cache
def alone(index: int) -> tuple[int, ...]:
    return drain(core(), [other(index)])[f"other {index}"].token_ids


def test_the_prompt_is_computed_once_and_forks_copy_what_they_share():
    engine = core(enable_prefix_caching=False, block_size=4)
    sizes, copies, schedule = [], [], engine._scheduler.schedule

    def noted(propose=None):
        plan = schedule(propose)
        sizes.append(plan.num_tokens)
        copies.extend(plan.copies)
        return plan

    engine._scheduler.schedule = noted
    beams = drain(engine, [search("r", bytes(range(30)), ignore_eos=True)])["r"].last.beams
    assert sizes[:2] == [30, 4] and sum(sizes) == 30 + 4 * 11 and len(copies) >= 3
    assert len(beams) == 4


def test_every_answer_obeys_and_there_are_as_many_as_there_can_be():
    beams = drain(core(), [search("r", PROMPTS[1], NAMES, beam_width=8)])["r"].last.beams
    assert sorted(beam.text for beam in beams) == sorted(["one", "once", "only", "two", "twice", "twelve", "a"])
    assert all(beam.finish_reason == "stop" and beam.token_ids[-1] == EOS for beam in beams)
    assert [beam.score for beam in beams] == sorted((beam.score for beam in beams), reverse=True)


def test_scores_are_those_of_the_model_and_not_of_the_mask():
    """Text that is forced costs what the model thinks of it."""
    (beam,) = drain(core(), [search("r", b"x", Grammar.choice(["ab"]))])["r"].last.beams
    logits = reference_module()(torch.tensor([[*b"xab"]])).logits[0].log_softmax(-1)
    expected = sum(float(logits[place, token]) for place, token in enumerate([*b"ab", EOS]))
    assert (beam.logprob, beam.score) == pytest.approx((expected, expected / 3), abs=1e-4)


def test_a_temperature_flattens_the_distribution():
    hot, plain, one = (drain(core(), [search("r", b"x", temperature=t)])["r"].last.beams[0] for t in (3.0, 0.0, 1.0))
    assert plain == one and hot.logprob < plain.logprob


@pytest.mark.parametrize("width", [2, 5])
def test_a_seed_of_random_models(width):
    for seed in range(3):
        module = tiny_llama(seed=10 + seed)
        theirs: Any = random_module(module.config, attention="eager")
        theirs.load_state_dict(module.state_dict())
        found = theirs.generate(
            torch.tensor([[5, 6, 7]]), attention_mask=torch.ones(1, 3, dtype=torch.int64), num_beams=width, num_return_sequences=width,
            do_sample=False, max_new_tokens=15, eos_token_id=EOS, pad_token_id=SPECIAL,
        )  # fmt: skip
        beams = drain(tiny_core(model=FakeModel(module=module)), [search("r", [5, 6, 7], beam_width=width, max_tokens=15)])["r"].last.beams
        answers = [row[3:] for row in found.tolist()]
        assert [list(beam.token_ids) for beam in beams] == [a[: a.index(EOS) + 1] if EOS in a else a for a in answers]


@pytest.mark.parametrize("overlap", [False, True], ids=["plain", "overlapped"])
@pytest.mark.parametrize("at_step", range(1, 8, 2))
def test_an_abort_frees_all_beams(at_step, overlap):
    engine = core(async_scheduling=overlap)
    engine.add(search("r", PROMPTS[1]))
    for _ in range(at_step):
        engine.step()
    (output,) = engine.abort("r")
    assert (output.finish_reason, output.beams) == ("abort", ())
    drain(engine)
    assert not engine.has_work and engine.stats.kv.held == 0 and engine.stats.num_waiting == engine.stats.num_running == 0
    assert engine._sources == {}


def test_a_deadline_ends_a_search():
    engine = core()
    engine.add(replace(search("r", PROMPTS[1], timeout=1.0), arrival_time=0.0))
    (output,) = engine.step()
    assert isinstance(output.error, DeadlineExceeded) and engine.stats.kv.held == 0


@pytest.mark.parametrize("broken", [{"nan_after": 101}, {"raise_after": 101}], ids=["not numbers", "an exception"])
@pytest.mark.parametrize("overlap", [False, True], ids=["plain", "overlapped"])
def test_a_beam_that_cannot_be_computed_ends_its_search_only(broken, overlap, caplog):
    engine = tiny_core(model=FakeModel(module=Poisoned(**broken)), async_scheduling=overlap)
    grammar = Script((frozenset(b"cde"),) * 6)  # 101 is e
    done = drain(engine, [search("bad", b"x", grammar), greedy("good", b"y", grammar=Script((frozenset(b"abc"),) * 9))])
    assert done["bad"].num_terminal == 1 and isinstance(done["bad"].last.error, GenerationError) and done["bad"].last.beams == ()
    assert len(done["good"].token_ids) == 9 and engine._sources == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_forbidden_token_without_a_number_is_an_error_too(value):
    """Scores are those among all tokens, so one that no mask would look at counts."""

    class Broken(Poisoned):
        def forward(self, input_ids, logits_to_keep, **options):
            output = super().forward(input_ids, logits_to_keep, **options)
            output.logits[0, input_ids[0, logits_to_keep] == ord("b"), 7] = value
            return output

    engine = tiny_core(model=FakeModel(module=Broken()))
    done = drain(engine, [search("bad", b"x", Script((frozenset(b"ab"),) * 6)), search("good", b"x", Script((frozenset(b"ac"),) * 3))])
    assert isinstance(done["bad"].last.error, GenerationError) and "not numbers" in str(done["bad"].last.error)
    assert len(done["good"].last.beams) == 4


def test_a_budget_that_ends_on_the_way_is_an_error():
    error = LimitError("too many states")
    script = Script((frozenset(b"ab"),) * 6, error_at=3, error=error)
    done = drain(tiny_core(FakeCompiler()), [search("bad", b"x", script)])
    assert done["bad"].last.error is error and done["bad"].num_terminal == 1


@pytest.mark.parametrize(
    ("param", "settings"),
    [("beam_width", {"beam_width": 9}), ("beam_width", {"beam_width": 0}), ("beam_width", {"beam_width": 2.0}), ("length_penalty", {"length_penalty": float("nan")}),
     ("max_tokens", {"max_tokens": 0}), ("max_tokens", {"max_tokens": 1000}), ("temperature", {"temperature": -1.0})],
    ids=str,
)  # fmt: skip
def test_a_search_that_can_never_be_served_is_refused(param, settings):
    with pytest.raises(InvalidRequest) as caught:
        core().add(search("r", b"x", **settings))
    assert caught.value.param == param


@pytest.mark.parametrize("num_blocks", [11, 14, 60])
def test_forks_find_their_tokens_in_their_blocks(num_blocks):
    """Searches at random, three at a time, in a world that checks what is in each block that a plan reads."""
    rng = random.Random(num_blocks)
    world = World(num_blocks=num_blocks, max_num_seqs=12 if num_blocks == 60 else 6, enable_prefix_caching=num_blocks != 14)
    searches: dict[str, set[str]] = {}
    num_preempted = 0
    for number in range(600):
        if len(searches) < 3:
            root = str(number)
            world.add(root, [rng.randrange(2) for _ in range(rng.randrange(1, 14))], family=root)
            world.pausing.add(root)
            searches[root] = {root}
        num_preempted += world.step().num_preempted
        for root, beams in list(searches.items()):
            if not all(world.scheduler._sequences[beam].paused for beam in beams):
                continue
            parents = [] if len(world.tokens[min(beams)]) > 30 else rng.choices(sorted(beams), k=rng.randint(1, 4))
            for dropped in beams - set(parents):
                world.finish(dropped)
            children = {parent if parent not in parents[:index] else f"{root}/{rng.random()}": parent for index, parent in enumerate(parents)}
            for child, parent in children.items():
                if child != parent:
                    world.fork(parent, child)
            for child in children:
                world.extend(child, rng.randrange(2))
            searches[root] = set(children)
            if not children:
                del searches[root]
    assert len(world.pausing) > 100 and (num_preempted > 0) == (num_blocks < 60)
    for beam in set().union(*searches.values()):
        world.finish(beam)
    assert world.kv.usage.held == 0 and not world.scheduler.has_work


def test_one_beam_is_greedy_decoding():
    (beam,) = drain(core(), [search("r", PROMPTS[1], beam_width=1)])["r"].last.beams
    assert beam.token_ids == drain(core(), [greedy("r", PROMPTS[1], max_tokens=12, ignore_eos=False)])["r"].token_ids
