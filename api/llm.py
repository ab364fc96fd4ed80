"""`LLM`: a model in this process, for batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..engine.config import DType, Quantization
from ..engine.request import BeamSearchParams, SamplingParams
from ..grammar.limits import Limits
from . import constraints
from .answers.conversations import Conversations, Turn
from .answers.forms import AnswerForm, Asked
from .batch import run_jobs
from .beams import beam_params, refuse_beams
from .deltas import Delta, delta_of
from .jobs import Job
from .progress import Progress, batch_progress
from .prompts import Prompt, check_length
from .results import RequestResult
from .runtime import Runtime, RuntimeOptions, open_runtime
from .session import Session
from .tools.arguments import ChoiceArgument, ToolArgument, choice_from, tools_from

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ..grammar.grammar import Grammar

Conversation = Sequence[dict[str, Any]]


class LLM:
    """A model and its engine.

        with LLM("smollm2-135m") as llm:
            out = llm.generate("Name a fruit:", schema={"type": "object", "properties": {"fruit": {"type": "string"}}})
            print(out[0].outputs[0].parsed)

    Args:
        model: alias, folder, `.gguf` file or Hugging Face id; fetched on first use.
        dtype: of weights and activations; "auto" is what suits the device.
        quantization: "int8" is faster on a CPU, with slightly other results; "none" computes with the weights as they are. None is
            "int8" for weights that are stored in 8 bits or fewer, unless `dtype` names a type.
        max_model_len: most tokens of prompt and answer together; None is what the model allows and memory holds.
        max_num_seqs: most requests that run at the same time.
        gpu_memory_utilization: share of a GPU's memory that may be used.
        tensor_parallel_size: only 1 is built; any other number is refused.
        enable_prefix_caching: reuse the KV blocks of equal prompt beginnings.
        async_scheduling: start a step before the text of the last one is made; None does on a GPU.
        resident_masks: keep masks and transitions of grammars beside the logits; None does on a GPU.
        draft_from_grammar: draft what a grammar forces or has led to before. Answers are the same as without, in fewer steps.
        speculative_config: draft by prompt lookup, with the settings of `SpeculativeConfig`, such as
            `{"method": "ngram", "num_speculative_tokens": 5}`.
        seed: base of the seeds of requests that bring none.
        limits: budgets of each constraint.
        grammar_cache_memory_bytes: memory of the grammars that are kept for other requests, 512 MiB if None; those used longest ago
            go first.
        fsm_cache_dir: folder in which tables of vocabularies are kept for the next start; None keeps none.
        tool_call_format: how the model writes tool calls; None is what its chat template uses.
        reasoning_parser: how the model sets its thoughts off, "none" if it has none; None is what its chat template uses.

    Raises:
        ModelNotFound, DownloadError, UnsupportedModel: no such model, not to be had, or not to be read.
        InvalidRequest: options that contradict each other.
    """

    def __init__(
        self,
        model: str,
        *,
        dtype: DType = "auto",
        quantization: Quantization | None = None,
        max_model_len: int | None = None,
        max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float = 0.9,
        kv_cache_memory_bytes: int | None = None,
        tensor_parallel_size: int = 1,
        enable_prefix_caching: bool = True,
        async_scheduling: bool | None = None,
        resident_masks: bool | None = None,
        draft_from_grammar: bool = True,
        speculative_config: Mapping[str, Any] | None = None,
        seed: int | None = None,
        device: str | None = None,
        limits: Limits | None = None,
        grammar_cache_memory_bytes: int | None = None,
        fsm_cache_dir: str | None = None,
        tool_call_format: str | None = None,
        reasoning_parser: str | None = None,
    ):
        options = RuntimeOptions(
            model=model,
            dtype=dtype,
            quantization=quantization,
            max_model_len=max_model_len,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            gpu_memory_utilization=gpu_memory_utilization,
            kv_cache_memory_bytes=kv_cache_memory_bytes,
            tensor_parallel_size=tensor_parallel_size,
            enable_prefix_caching=enable_prefix_caching,
            async_scheduling=async_scheduling,
            resident_masks=resident_masks,
            draft_from_grammar=draft_from_grammar,
            speculative_config=speculative_config,
            seed=seed,
            device=device,
            limits=limits or Limits(),
            grammar_cache_memory_bytes=grammar_cache_memory_bytes,
            fsm_cache_dir=fsm_cache_dir,
        )
        self._use(open_runtime(options), tool_call_format=tool_call_format, reasoning_parser=reasoning_parser)

    @classmethod
    def over(cls, runtime: Runtime, **formats: str | None) -> LLM:
        """An `LLM` over a runtime that exists already; closing the one closes the other. `formats` are those of `Conversations`."""
        llm = cls.__new__(cls)
        llm._use(runtime, **formats)
        return llm

    def _use(self, runtime: Runtime, **formats: str | None) -> None:
        self.runtime = runtime
        self._conversations = Conversations(runtime, **formats)
        self._encoder = self._conversations.encoder

    def generate(
        self,
        prompts: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        schema: dict[str, Any] | str | bool | type[BaseModel] | None = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Grammar | str | None = None,
        output_type: Any = None,
        structural_tag: Any = None,
        progress: bool | Progress = False,
    ) -> list[RequestResult]:
        """Continue prompts as they stand, all in one batch.

        Args:
            prompts: a text, token ids, or a list of either.
            sampling_params: for all prompts, or one for each.
            schema: a JSON Schema, or a Pydantic class whose instances `.parsed` then holds.
            regex: the whole answer matches it.
            choice: the answer is one of these texts.
            grammar: any `Grammar`; the text is the answer, `.parsed` stays None.
            output_type: a Python type; the answer is JSON and `.parsed` is of that type.
            structural_tag: free text and tags with a grammar inside, see `Grammar.structural_tag`.
            progress: True shows a bar on stderr; a function is called with (finished, total).

        Returns:
            One result a prompt, in the order of the prompts. A request that failed while it ran has finish_reason "error".

        Raises:
            ConstraintError: more than one constraint (a ValueError; it names them).
            GrammarError: the constraint cannot be enforced.
            InvalidRequest: a prompt or a parameter that can never be served; nothing was run.
        """
        constraint = constraints.from_arguments(
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag
        )
        form = AnswerForm(constraint=constraint)
        return self._run([Turn(self._encode(prompt), form) for prompt in _each_prompt(prompts)], sampling_params, progress)

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | BeamSearchParams | Sequence[SamplingParams] | None = None,
        *,
        schema: dict[str, Any] | str | bool | type[BaseModel] | None = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Grammar | str | None = None,
        output_type: Any = None,
        structural_tag: Any = None,
        tools: Sequence[ToolArgument] | None = None,
        tool_choice: ChoiceArgument = None,
        parallel_tool_calls: bool = True,
        thinking_token_budget: int | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        progress: bool | Progress = False,
    ) -> list[RequestResult]:
        """The assistant's next turn of a conversation, or of each in a list of conversations.

        Args:
            messages: `{"role": ..., "content": ...}` dicts.
            sampling_params: for all conversations, or one for each; `BeamSearchParams` search as `beam_search` does.
            tools: functions that may be called, as dicts of OpenAI's form; `.tool_calls` of an output then holds the calls. Arguments
                obey the schema unless the function has `"strict": False`. With a constraint, an answer is calls or obeys it.
            tool_choice: "auto", "required", "none" or the name of a tool.
            parallel_tool_calls: several calls in one answer are allowed.
            thinking_token_budget: most tokens of the thought of a model that thinks.
            chat_template_kwargs: further variables of the model's chat template.

        The other arguments, the result and the errors are those of `generate`; also ChatTemplateError if the template refuses, and
        ToolError (a ValueError) for tools that cannot be served.
        """
        constraint = constraints.from_arguments(
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag
        )
        use = choice_from(tool_choice, parallel=parallel_tool_calls)
        asked = Asked(tools=tools_from(tools, use), choice=use, constraint=constraint)
        turns = [
            self._conversations.turn(each, asked, thinking_token_budget=thinking_token_budget, variables=chat_template_kwargs)
            for each in _each_conversation(messages)
        ]
        if isinstance(sampling_params, BeamSearchParams):
            return self._search(turns, sampling_params, progress)
        return self._run(turns, sampling_params, progress)

    def beam_search(
        self,
        prompts: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]],
        params: BeamSearchParams,
        *,
        schema: dict[str, Any] | str | bool | type[BaseModel] | None = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Grammar | str | None = None,
        output_type: Any = None,
        structural_tag: Any = None,
        progress: bool | Progress = False,
    ) -> list[RequestResult]:
        """The likeliest continuations of prompts that a search with beams finds, `beam_width` for each, best first.

        Each beam follows the constraint by itself, and each answer has its `cumulative_logprob` and `score`. Arguments, results and errors
        are those of `generate`; a prompt has fewer answers where the constraint allows fewer.
        """
        constraint = constraints.from_arguments(
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag
        )
        form = AnswerForm(constraint=constraint)
        return self._search([Turn(self._encode(prompt), form) for prompt in _each_prompt(prompts)], params, progress)

    def stream(
        self,
        prompt: str | Sequence[int],
        sampling_params: SamplingParams | None = None,
        *,
        schema: dict[str, Any] | str | bool | type[BaseModel] | None = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Grammar | None = None,
        output_type: Any = None,
        structural_tag: Any = None,
    ) -> Iterator[Delta]:
        """Continue one text or token ids, piece by piece. Arguments and errors are those of `generate`.

            for delta in llm.stream("Once upon a time"):
                print(delta.text, end="", flush=True)

        The `result` of the last delta of an answer is the whole answer. Leaving the loop early ends what is still running.
        """
        constraint = constraints.from_arguments(
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag
        )
        return self._deltas(self._job(Turn(self._encode(prompt), AnswerForm(constraint=constraint)), sampling_params or SamplingParams()))

    def stream_chat(
        self,
        messages: Conversation,
        sampling_params: SamplingParams | None = None,
        *,
        schema: dict[str, Any] | str | bool | type[BaseModel] | None = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Grammar | None = None,
        output_type: Any = None,
        structural_tag: Any = None,
        tools: Sequence[ToolArgument] | None = None,
        tool_choice: ChoiceArgument = None,
        parallel_tool_calls: bool = True,
        thinking_token_budget: int | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
    ) -> Iterator[Delta]:
        """The assistant's next turn of one conversation, piece by piece. Arguments and errors are those of `chat`; see `stream`."""
        constraint = constraints.from_arguments(
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag
        )
        use = choice_from(tool_choice, parallel=parallel_tool_calls)
        asked = Asked(tools=tools_from(tools, use), choice=use, constraint=constraint)
        turn = self._conversations.turn(messages, asked, thinking_token_budget=thinking_token_budget, variables=chat_template_kwargs)
        return self._deltas(self._job(turn, sampling_params or SamplingParams()))

    def _deltas(self, job: Job) -> Iterator[Delta]:
        builders = job.builders()
        with Session[int](self.runtime.engine) as session:
            for index, request in enumerate(job.requests()):
                session.submit(request, index)
            while session.num_live:
                index, output = session.next()
                yield delta_of(output, builders[index])

    def _job(self, turn: Turn, params: SamplingParams, *, beam_search: BeamSearchParams | None = None) -> Job:
        refuse_beams(params)
        turn.check(params)
        check_length(turn.prompt, max_tokens=params.max_tokens, max_model_len=self.runtime.max_model_len)
        return turn.job(params=params, beam_search=beam_search)

    def _encode(self, prompt: str | Sequence[int]) -> Prompt:
        return self._encoder.of_text(prompt) if isinstance(prompt, str) else self._encoder.of_token_ids(prompt)

    def _run(
        self,
        turns: Sequence[Turn],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None,
        progress: bool | Progress,
    ) -> list[RequestResult]:
        params = _each_params(sampling_params, len(turns))
        return self._run_jobs([self._job(turn, own) for turn, own in zip(turns, params, strict=True)], progress)

    def _search(self, turns: Sequence[Turn], params: BeamSearchParams, progress: bool | Progress) -> list[RequestResult]:
        return self._run_jobs([self._job(turn, beam_params(params), beam_search=params) for turn in turns], progress)

    def _run_jobs(self, jobs: Sequence[Job], progress: bool | Progress) -> list[RequestResult]:
        with batch_progress(progress, total=len(jobs)) as report:
            return run_jobs(self.runtime.engine, jobs, max_in_flight=self.runtime.max_waiting, report=report)

    def close(self) -> None:
        """End all requests and free the model. May be called twice."""
        self.runtime.close()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _each_prompt(prompts: Any) -> list[str | Sequence[int]]:
    if isinstance(prompts, str) or (prompts and all(isinstance(token, int) for token in prompts)):
        return [prompts]
    return list(prompts)


def _each_conversation(messages: Any) -> list[Conversation]:
    return [messages] if messages and isinstance(messages[0], dict) else list(messages)


def _each_params(given: SamplingParams | Sequence[SamplingParams] | None, count: int) -> list[SamplingParams]:
    if not isinstance(given, Sequence):
        return [given or SamplingParams()] * count
    if len(given) != count:
        raise ValueError(f"{count} prompts, but {len(given)} sampling_params")
    return list(given)
