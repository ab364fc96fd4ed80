"""The official `openai` client against a formcast server: a streamed answer and a parsed one.

    formcast serve smollm2-135m &
    python examples/openai_client.py [BASE_URL]
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from openai import OpenAI
from pydantic import BaseModel, Field

MESSAGE = "The new kettle boils fast but the lid broke after two days."


class Review(BaseModel, extra="forbid"):
    product: str = Field(max_length=30)
    sentiment: Literal["positive", "negative", "mixed"]
    defects: list[Annotated[str, Field(max_length=40)]] = Field(max_length=3)


def main(base_url: str = "http://127.0.0.1:8000/v1") -> None:
    client = OpenAI(base_url=base_url, api_key="unused")
    model = client.models.list().data[0].id

    stream = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": f"Reply in one sentence: {MESSAGE}"}], max_tokens=40, stream=True
    )
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()

    completion = client.chat.completions.parse(
        model=model,
        messages=[{"role": "user", "content": f"Summarise this review as JSON: {MESSAGE}"}],
        response_format=Review,
        temperature=0,
        max_tokens=200,
    )
    print(repr(completion.choices[0].message.parsed))


if __name__ == "__main__":
    main(*sys.argv[1:])
