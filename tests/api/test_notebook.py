"""A real Jupyter kernel without ipywidgets. It needs `nbclient` and `ipykernel`, which are in no extra."""

from __future__ import annotations

from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are not installed")
nbformat = pytest.importorskip("nbformat")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # the warnings of a kernel's client are not ours

CELLS = {
    "construct": """
        import os, signal, threading
        from formcast import LLM, AsyncLLM, SamplingParams
        llm = LLM({model!r})
        few, many = SamplingParams(max_tokens=4), SamplingParams(max_tokens=7000, ignore_eos=True)
        interrupt = lambda: threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()""",
    "bar": "print(len(llm.generate(['a', 'b', 'c'], few, progress=True)))",
    "no prompts": "print(llm.generate([], few, progress=True))",
    "stream": "for delta in llm.stream('a', few, choice=['yes']): print(delta.text, end='')",
    "async": """
        model = AsyncLLM(llm.runtime)
        async for delta in model.generate('a', few, choice=['yes']):
            print(delta.text, end='')""",
    "interrupted": "interrupt(); llm.generate('a', many, progress=True)",
    "interrupted stream": "interrupt()\nfor delta in llm.stream('a', many): pass",
    "interrupted async": "interrupt()\nasync for delta in model.generate('a', many): pass",
    "after": "print(llm.generate('a', few, choice=['yes'])[0].outputs[0].text, llm.runtime.engine.stats().num_running)\nllm.close()",
}


@pytest.fixture(scope="module")
def outputs(model: str) -> dict[str, list[Any]]:
    """Name of a cell -> what it showed."""
    notebook = nbformat.v4.new_notebook()
    for source in CELLS.values():
        lines = source.replace("{model!r}", repr(model)).splitlines()
        notebook.cells.append(nbformat.v4.new_code_cell("\n".join(line.removeprefix(" " * 8) for line in lines)))
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=240, allow_errors=True).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def text(outputs: list[Any]) -> str:
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def test_a_notebook_is_quiet_and_shows_bars(outputs: dict[str, list[Any]]):
    assert outputs["construct"] == []
    bar, printed = outputs["bar"]
    assert "max='3' value='3'" in bar["data"]["text/html"] and bar["data"]["text/plain"].endswith("] 3/3")
    assert printed["text"] == "3\n"
    assert text(outputs["no prompts"]) == "[]\n"


def test_answers_stream_into_a_cell(outputs: dict[str, list[Any]]):
    assert text(outputs["stream"]) == text(outputs["async"]) == "yes"


def test_an_interrupted_cell_ends_its_answers_and_the_model_stays(outputs: dict[str, list[Any]]):
    for name in ("interrupted", "interrupted stream", "interrupted async"):
        assert outputs[name][-1]["ename"] in ("KeyboardInterrupt", "CancelledError"), name
        assert text(outputs[name]) == ""
    assert text(outputs["after"]) == "yes 0\n"
