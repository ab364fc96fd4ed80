from __future__ import annotations

import threading

import pytest
import torch
from engine_fakes import EOS, NUM_TOKENS, SPECIAL, FakeCompiler, FakeModel, Poisoned, Script, drain, greedy, tiny_core

from formcast.engine.config import SpeculativeConfig
from formcast.engine.request import EngineOverloaded, GenerationError, InvalidRequest, Request, SamplingParams
from formcast.grammar.errors import GrammarError, LimitError

PROMPTS = [b"a", b"the quick brown fox jumps over the lazy dog", bytes(range(60, 110)), b"0123456789abcdef", b"0123456789abcdefg"]


def requests(**params):
    return [greedy(str(index), prompt, **params) for index, prompt in enumerate(PROMPTS)]


def alone(**config) -> list[tuple[int, ...]]:
    return [drain(tiny_core(**config), [request])[request.request_id].token_ids for request in requests()]


WAYS = pytest.mark.parametrize(
    "settings",
    [{}, {"async_scheduling": True}, {"speculative": SpeculativeConfig(prompt_lookup_min=1)}],
    ids=["plain", "overlapped", "drafts"],
)
"""Ways to compute that must fail alike."""


EXPECTED = alone(max_num_batched_tokens=512)
"""Greedy answers of each prompt, computed alone and whole."""


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"max_num_batched_tokens": 8},
        {"max_num_batched_tokens": 17},
        {"max_num_seqs": 2},
        {"enable_prefix_caching": False},
        {"block_size": 4},
        {"block_size": 4, "kv_cache_memory_bytes": 24 * 4 * 2 * 2 * 16 * 4, "max_model_len": 90},
    ],
    ids=["batch", "chunks of 8", "chunks of 17", "two at a time", "no cache", "small blocks", "preemption"],
)
def test_greedy_answers_do_not_depend_on_the_batch(config):
    core = tiny_core(**config)
    answers = drain(core, requests())
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == EXPECTED
    assert all(answer.num_terminal == 1 and answer.last.finish_reason == "length" for answer in answers.values())
    if "max_model_len" in config:
        assert core.stats.num_preemptions > 0


def test_greedy_answers_do_not_depend_on_who_joins_and_leaves():
    core = tiny_core()
    waiting = requests()

    def join_and_leave(step: int) -> None:
        if step % 3 == 0 and waiting:
            core.add(waiting.pop())
            core.add(greedy(f"guest {step}", b"guest" * (step + 1)))
        if step == 7:
            core.abort("guest 3")

    core.add(greedy("host", b"host", max_tokens=40))
    answers = drain(core, before_step=join_and_leave)
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == EXPECTED


def test_greedy_answers_do_not_depend_on_the_prefix_cache():
    core = tiny_core()
    first = drain(core, requests())
    again = drain(core, requests())
    for index in range(len(PROMPTS)):
        assert again[str(index)].token_ids == first[str(index)].token_ids == EXPECTED[index]
    assert [again[str(index)].last.num_cached_tokens for index in range(len(PROMPTS))] == [0, 32, 48, 0, 16]
    assert core.stats.num_cached_tokens == 32 + 48 + 16 + sum(answer.last.num_cached_tokens for answer in first.values())


def test_seeded_answers_do_not_depend_on_the_batch():
    sampled = {"temperature": 1.5, "seed": 11, "top_p": 0.95}
    single = [drain(tiny_core(), [request])[request.request_id].token_ids for request in requests(**sampled)]
    answers = drain(tiny_core(max_num_batched_tokens=16), requests(**sampled))
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == single
    other = drain(tiny_core(), requests(**{**sampled, "seed": 12}))
    assert other["1"].token_ids != single[1]


def test_an_engine_seed_repeats_a_whole_run():
    runs = [drain(tiny_core(seed=5), requests(temperature=1.5)) for _ in range(2)]
    assert runs[0]["2"].token_ids == runs[1]["2"].token_ids
    assert drain(tiny_core(seed=6), requests(temperature=1.5))["2"].token_ids != runs[0]["2"].token_ids


def test_a_constrained_answer_stops_when_only_the_end_is_left():
    core = tiny_core()
    answers = drain(core, [greedy("c", b"x", grammar=Script.literal(b"hello")), *requests()])
    assert answers["c"].text == "hello"
    assert answers["c"].last.finish_reason == "stop"
    assert answers["c"].last.num_generated_tokens == 5
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == EXPECTED


def test_constrained_sampling_obeys_the_mask_at_any_temperature():
    allowed = (frozenset(b"abc"), frozenset(b"xy"), frozenset(b"0123456789"))
    for temperature in (0.0, 1.0, 5.0):
        (answer,) = drain(tiny_core(), [greedy("c", b"x", grammar=Script(allowed), temperature=temperature)]).values()
        assert all(token in choices for token, choices in zip(answer.token_ids, allowed, strict=True))


def test_a_request_waits_for_its_grammar_and_nobody_else_does():
    compiler = FakeCompiler()
    core = tiny_core(compiler)
    core.add(greedy("slow", b"x", grammar="slow grammar"))

    def compile_late(step: int) -> None:
        assert core.stats.num_waiting_for_grammar == (1 if step <= 6 else 0)
        if step == 6:
            compiler.futures["slow grammar"].set_result(Script.literal(b"ok"))

    answers = drain(core, [greedy("free", PROMPTS[1])], before_step=compile_late)
    assert answers["slow"].text == "ok"
    assert answers["free"].token_ids == EXPECTED[1]


def test_a_grammar_that_nobody_waits_for_any_more_is_cancelled():
    compiler = FakeCompiler()
    core = tiny_core(compiler)
    core.add(greedy("gone", b"x", grammar="slow grammar"))
    core.add(greedy("free", b"x"))
    core.abort("gone")
    assert [future.cancelled() for future in compiler.waiting["slow grammar"]] == [True]
    assert set(drain(core)) == {"free"}


def test_a_step_sleeps_while_only_grammars_are_awaited():
    compiler = FakeCompiler()
    core = tiny_core(compiler)
    core.add(greedy("slow", b"x", grammar="slow grammar"))
    stepped = threading.Event()
    thread = threading.Thread(target=lambda: (core.step(), stepped.set()))
    thread.start()
    assert not stepped.is_set()
    compiler.futures["slow grammar"].set_result(Script.literal(b"ok"))
    thread.join()
    assert drain(core)["slow"].text == "ok"


FAILURES = {
    "refused grammar": GrammarError("unsupported", pointer="/a"),
    "budget": LimitError("too many states"),
    "bug": ZeroDivisionError("a bug"),
}


@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("where", ["compiling", "first mask", "later mask"])
@WAYS
def test_one_failing_grammar_ends_its_request_only(settings, where, error, caplog):
    compiler = FakeCompiler()
    core = tiny_core(compiler, **settings)
    place = {"first mask": 0, "later mask": 2}.get(where)
    grammar = "broken" if place is None else Script((frozenset(b"ab"),) * 5, error_at=place, error=error)
    core.add(greedy("bad", b"x", grammar=grammar))
    if place is None:
        compiler.futures["broken"].set_exception(error)
    answers = drain(core, requests())
    assert answers["bad"].num_terminal == 1
    last = answers["bad"].last
    assert last.finish_reason == "error"
    assert last.error is error if isinstance(error, GrammarError) else isinstance(last.error, GenerationError)
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == EXPECTED


@pytest.mark.parametrize("script", [Script((frozenset(),)), Script((frozenset(b"a"),), refuse_at=0)], ids=["empty mask", "refused token"])
@WAYS
def test_a_dead_end_is_an_error_never_a_stop(settings, script):
    answers = drain(tiny_core(**settings), [greedy("bad", b"x", grammar=script), *requests()])
    assert answers["bad"].last.finish_reason == "error"
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == EXPECTED


@WAYS
@pytest.mark.parametrize("broken", [{"nan_after": SPECIAL}, {"raise_after": SPECIAL}], ids=["not numbers", "an exception"])
def test_a_row_that_cannot_be_computed_ends_its_request_only(settings, broken, caplog):
    core = tiny_core(model=FakeModel(module=Poisoned(**broken)), **settings)
    answers = drain(core, [greedy("bad", [1, 2, SPECIAL]), *requests()])
    assert [(output.finish_reason, output.new_token_ids) for output in answers["bad"].outputs] == [("error", ())]
    assert isinstance(answers["bad"].last.error, GenerationError) and "out of memory" not in str(answers["bad"].last.error)
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == EXPECTED
    assert core.stats.num_failed == 1


@pytest.mark.parametrize("broken", ["nan_after", "raise_after"])
def test_a_draft_that_cannot_be_computed_ends_its_request_only(broken, caplog):
    """The rows of the drafts are broken, in a batch of requests with drafts. What came before them was taken."""
    core = tiny_core(model=FakeModel(module=Poisoned(**{broken: SPECIAL})), speculative=SpeculativeConfig(prompt_lookup_min=1))
    script = Script((frozenset(b"a"), frozenset(b"b"), frozenset({SPECIAL}), frozenset(b"c"), frozenset(b"d")))
    answers = drain(core, [greedy("bad", b"xy", grammar=script), *requests()])
    assert answers["bad"].last.finish_reason == "error" and answers["bad"].num_terminal == 1
    assert answers["bad"].token_ids == (*b"ab", SPECIAL)
    assert [answers[str(index)].token_ids for index in range(len(PROMPTS))] == EXPECTED
    assert (core.stats.num_accepted_tokens > 0) == (broken == "nan_after")


def test_a_model_that_always_raises_ends_everyone_once(caplog):
    class Broken(Poisoned):
        def forward(self, input_ids, logits_to_keep, **options):
            if len(logits_to_keep) and input_ids.shape[1] > 1:
                raise RuntimeError("gone")
            return super().forward(input_ids, logits_to_keep, **options)

    core = tiny_core(model=FakeModel(module=Poisoned()))
    core._runner._module = Broken()
    answers = drain(core, requests()[1:])
    assert all(answer.num_terminal == 1 and answer.last.finish_reason == "error" for answer in answers.values())
    assert len(answers) == core.stats.num_failed == len(PROMPTS) - 1


@pytest.mark.parametrize(
    ("param", "request_"),
    [
        ("prompt", greedy("r", b"")),
        ("prompt", greedy("r", b"x" * 256, max_tokens=None)),
        ("prompt", greedy("r", [1, NUM_TOKENS])),
        ("prompt", greedy("r", [-1])),
        ("max_tokens", greedy("r", b"x" * 200, max_tokens=57)),
        ("min_tokens", greedy("r", b"x" * 200, max_tokens=None, min_tokens=57)),
        ("stop_token_ids", greedy("r", b"x", stop_token_ids=[NUM_TOKENS])),
        ("logit_bias", greedy("r", b"x", logit_bias={NUM_TOKENS: 1.0})),
        ("n", greedy("r", b"x", n=2)),
    ],
)
def test_a_request_that_can_never_be_served_is_refused(param, request_):
    core = tiny_core()
    with pytest.raises(InvalidRequest) as caught:
        core.add(request_)
    assert caught.value.param == param
    assert not core.has_work


def test_the_longest_possible_request_fills_the_context():
    (answer,) = drain(tiny_core(), [greedy("r", b"x" * 200, max_tokens=56)]).values()
    assert answer.last.num_generated_tokens == 56
    (answer,) = drain(tiny_core(), [greedy("r", b"x" * 200, max_tokens=None)]).values()
    assert (answer.last.num_generated_tokens, answer.last.finish_reason) == (56, "length")


def test_an_id_in_use_is_refused_and_free_again_afterwards():
    core = tiny_core()
    core.add(greedy("r", b"x"))
    with pytest.raises(InvalidRequest):
        core.add(greedy("r", b"y"))
    drain(core)
    core.add(greedy("r", b"y"))


def test_a_full_queue_refuses():
    core = tiny_core(max_waiting=2)
    core.add(greedy("a", b"x"))
    core.add(greedy("b", b"x", grammar="unknown yet"))
    with pytest.raises(EngineOverloaded):
        core.add(greedy("c", b"x"))


def test_abort_gives_the_last_output_once_and_frees_everything():
    core = tiny_core()
    core.add(greedy("running", b"x"))
    core.step()
    core.add(greedy("waiting", b"x"))
    core.add(greedy("compiling", b"x", grammar="unknown yet"))
    for request_id in ("running", "waiting", "compiling"):
        (output,) = core.abort(request_id)
        assert (output.request_id, output.finish_reason) == (request_id, "abort")
        assert core.abort(request_id) == []
    assert not core.has_work
    assert core.stats.kv.held == 0
    assert core.stats.num_aborted == 3


def test_logprobs_are_of_the_distribution_that_was_sampled():
    request = greedy("r", b"x", logprobs=3, grammar=Script((frozenset(b"ab"),)))
    (answer,) = drain(tiny_core(), [request]).values()
    assert answer.last.logprobs is not None
    (entry,) = answer.last.logprobs
    assert entry.token_id == answer.token_ids[0] == entry.top[0][0]
    assert {token for token, _ in entry.top} == set(b"ab")
    assert sum(torch.tensor([logprob for _, logprob in entry.top]).exp()) == pytest.approx(1, abs=1e-5)
    assert entry.logprob == pytest.approx(entry.top[0][1], abs=1e-5)


def test_penalties_and_biases_reach_the_logits():
    free = drain(tiny_core(), [greedy("r", b"x", logit_bias={65: 100.0}, max_tokens=4)])["r"]
    assert free.token_ids == (65,) * 4
    penalised = drain(tiny_core(), [greedy("r", b"x", frequency_penalty=2.0, repetition_penalty=1e6, max_tokens=20)])["r"]
    assert len(set(penalised.token_ids)) == 20


def test_end_tokens_end_free_answers():
    biased = {EOS: 100.0}
    (answer,) = drain(tiny_core(), [greedy("r", b"x", ignore_eos=False, logit_bias=biased)]).values()
    assert (answer.token_ids, answer.text, answer.last.finish_reason) == ((EOS,), "", "stop")
    (answer,) = drain(tiny_core(), [greedy("r", b"x", ignore_eos=False, min_tokens=3, logit_bias=biased)]).values()
    assert answer.token_ids[3:] == (EOS,) and EOS not in answer.token_ids[:3]


def test_priorities_run_first():
    core = tiny_core(max_num_seqs=1)
    answers = drain(core, [greedy("low", b"x", priority=1, max_tokens=1), greedy("high", b"x", max_tokens=1)])
    assert list(answers) == ["high", "low"]


def test_the_vocabulary_must_be_that_of_the_model():
    compiler = FakeCompiler()
    compiler.vocabulary.eos_token_ids = frozenset({5})
    with pytest.raises(ValueError, match="vocabulary"):
        tiny_core(compiler)


def test_requests_default_to_sampling_until_the_context_is_full():
    (answer,) = drain(
        tiny_core(max_model_len=20), [Request(request_id="r", prompt_token_ids=[1], params=SamplingParams(ignore_eos=True))]
    ).values()
    assert answer.last.num_generated_tokens == 19
