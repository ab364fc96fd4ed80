"""A review, parsed by a model behind Ollama's protocol.

    pip install ollama
    formcast serve smollm2-135m
    python examples/ollama_client.py [URL]
"""

from __future__ import annotations

import sys

import ollama
from pydantic import BaseModel, ConfigDict, Field

URL = "http://127.0.0.1:8000"


class Review(BaseModel):
    model_config = ConfigDict(extra="forbid")

    product: str = Field(min_length=1, max_length=40)
    stars: int = Field(ge=1, le=5)


def main(url: str) -> None:
    with ollama.Client(host=url) as client:
        answer = client.chat(
            client.list().models[0].model or "",
            [{"role": "user", "content": "Review: the kettle boils fast but its lid is loose. As JSON."}],
            format=Review.model_json_schema(),
            options={"temperature": 0, "num_predict": 100},
        )
    print(repr(Review.model_validate_json(answer.message.content or "")))


if __name__ == "__main__":
    main(*sys.argv[1:] or [URL])
