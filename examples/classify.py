"""Sort messages into one of a few labels: the answer can be nothing else. All messages run in one batch.

    python examples/classify.py [MODEL]
"""

from __future__ import annotations

import sys

from formcast import LLM, SamplingParams

LABELS = ["billing", "shipping", "technical", "other"]
MESSAGES = [
    "My card was charged twice for the same order.",
    "The parcel has been at the depot for a week.",
    "The app closes as soon as I open the settings.",
]


def main(model: str = "smollm2-135m") -> None:
    prompts = [f"Labels: {', '.join(LABELS)}.\nMessage: {message}\nLabel: " for message in MESSAGES]
    with LLM(model=model) as llm:
        answers = llm.generate(prompts, SamplingParams(temperature=0), choice=LABELS)
    for message, answer in zip(MESSAGES, answers, strict=True):
        print(f"{answer.outputs[0].text:10} {message}")


if __name__ == "__main__":
    main(*sys.argv[1:])
