"""`AsyncLLM`: a model on asyncio, answers as they grow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from itertools import accumulate
from types import TracebackType
from typing import Any

from ..engine.request import BeamSearchParams, RequestOutput, SamplingParams
from . import async_session, constraints
from .answers.conversations import Conversations, Turn
from .answers.forms import AnswerForm, Asked
from .beams import beam_params, refuse_beams
from .deltas import Delta, delta_of
from .jobs import Job
from .on_thread import on_thread
from .prompts import check_length
from .results import RequestResult
from .runtime import Runtime, RuntimeOptions, open_runtime
from .tools.arguments import ChoiceArgument, ToolArgument, choice_from, tools_from


class AsyncLLM:
    """A model and its engine, for code that runs on an event loop.

        async with await AsyncLLM.load("smollm2-135m") as llm:
            async for delta in llm.generate("Once", schema={"type": "object"}):
                print(delta.text, end="")

    Any number of generations may run at the same time; they share the batch. Leaving an iteration early, or cancelling the
    task around it, aborts that generation.
    """

    def __init__(self, runtime: Runtime, *, tool_call_format: str | None = None, reasoning_parser: str | None = None):
        self.runtime = runtime
        self._conversations = Conversations(runtime, tool_call_format=tool_call_format, reasoning_parser=reasoning_parser)
        self._encoder = self._conversations.encoder
        self._num_live = 0

    @classmethod
    async def load(
        cls, model: str, *, tool_call_format: str | None = None, reasoning_parser: str | None = None, **options: Any
    ) -> AsyncLLM:
        """Load a model without blocking the loop. Options are those of `LLM`."""
        runtime = await asyncio.to_thread(open_runtime, RuntimeOptions(model=model, **options))
        return cls(runtime, tool_call_format=tool_call_format, reasoning_parser=reasoning_parser)

    @property
    def num_live(self) -> int:
        """Generations under way."""
        return self._num_live

    def generate(
        self,
        prompt: str | Sequence[int],
        sampling_params: SamplingParams | None = None,
        *,
        schema: Any = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Any = None,
        output_type: Any = None,
        structural_tag: Any = None,
    ) -> AsyncGenerator[Delta, None]:
        """Continue a text or token ids. Arguments and errors are those of `LLM.generate`."""
        read_constraint = partial(
            constraints.from_arguments,
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag,
        )  # fmt: skip

        def read() -> Turn:
            encoded = self._encoder.of_text(prompt) if isinstance(prompt, str) else self._encoder.of_token_ids(prompt)
            return Turn(encoded, AnswerForm(constraint=read_constraint()))

        return self._deltas(read, sampling_params)

    def chat(
        self,
        messages: Sequence[dict[str, Any]],
        sampling_params: SamplingParams | None = None,
        *,
        schema: Any = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Any = None,
        output_type: Any = None,
        structural_tag: Any = None,
        tools: Sequence[ToolArgument] | None = None,
        tool_choice: ChoiceArgument = None,
        parallel_tool_calls: bool = True,
        thinking_token_budget: int | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
    ) -> AsyncGenerator[Delta, None]:
        """The assistant's next turn. Arguments and errors are those of `LLM.chat`."""
        read_constraint = partial(
            constraints.from_arguments,
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag,
        )  # fmt: skip

        def read() -> Turn:
            use = choice_from(tool_choice, parallel=parallel_tool_calls)
            asked = Asked(tools=tools_from(tools, use), choice=use, constraint=read_constraint())
            return self._conversations.turn(messages, asked, thinking_token_budget=thinking_token_budget, variables=chat_template_kwargs)

        return self._deltas(read, sampling_params)

    async def beam_search(
        self,
        prompt: str | Sequence[int],
        params: BeamSearchParams,
        *,
        schema: Any = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Any = None,
        output_type: Any = None,
        structural_tag: Any = None,
    ) -> RequestResult:
        """The likeliest continuations of a text or token ids. Arguments, result and errors are those of `LLM.beam_search`."""
        read_constraint = partial(
            constraints.from_arguments,
            schema=schema, regex=regex, choice=choice, grammar=grammar, output_type=output_type, structural_tag=structural_tag,
        )  # fmt: skip

        def read() -> Turn:
            encoded = self._encoder.of_text(prompt) if isinstance(prompt, str) else self._encoder.of_token_ids(prompt)
            return Turn(encoded, AnswerForm(constraint=read_constraint()))

        turn = await on_thread(read)
        check_length(turn.prompt, max_tokens=params.max_tokens, max_model_len=self.runtime.max_model_len)
        job = turn.job(params=beam_params(params), beam_search=params)
        builders = job.builders()
        async with aclosing(self.stream([job])) as outputs:
            async for index, output in outputs:
                constraints.raise_refusal(output.error)
                builders[index].add(output)
        return await on_thread(partial(job.result, builders))

    async def stream(self, jobs: Sequence[Job]) -> AsyncGenerator[tuple[int, RequestOutput], None]:
        """The raw outputs of jobs, each with the index of its answer, counted through all jobs."""
        firsts = accumulate((job.params.n for job in jobs), initial=0)
        begun = zip(jobs, firsts, strict=False)
        tasks = [(request, job, first, index) for job, first in begun for index, request in enumerate(job.requests())]
        outputs = async_session.stream(self.runtime.engine, [request for request, *_ in tasks])
        self._num_live += 1
        try:
            async for number, output in outputs:
                _, job, first, index = tasks[number]
                for answer, own in job.outputs(index, output):
                    yield first + answer, own
        finally:
            self._num_live -= 1
            await outputs.aclose()

    async def _deltas(self, read: Callable[[], Turn], params: SamplingParams | None) -> AsyncGenerator[Delta, None]:
        """The answers to a turn, which is read, like the values of the answers, beside the loop: schemas can be heavy."""
        turn = await on_thread(read)
        refuse_beams(params)
        job = turn.job(params=params or SamplingParams())
        turn.check(job.params)
        check_length(turn.prompt, max_tokens=job.params.max_tokens, max_model_len=self.runtime.max_model_len)
        builders = job.builders()
        stream = self.stream([job])
        try:
            async for index, output in stream:
                make = partial(delta_of, output, builders[index])
                yield await on_thread(make) if output.finished else make()
        finally:
            await stream.aclose()

    def close(self) -> None:
        """End all generations and free the model. May be called twice."""
        self.runtime.close()

    async def __aenter__(self) -> AsyncLLM:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await asyncio.to_thread(self.close)
