"""A conversation over `/v1/responses`, which keeps nothing: each request brings what was said so far.

    pip install openai
    formcast serve smollm2-135m
    python examples/responses_client.py [BASE_URL]
"""

from __future__ import annotations

import sys
from typing import Any, Literal

from openai import OpenAI
from pydantic import BaseModel

BASE_URL = "http://127.0.0.1:8000/v1"


class Verdict(BaseModel):
    kind: Literal["animal", "plant", "mineral"]


def main(base_url: str) -> None:
    with OpenAI(base_url=base_url, api_key="unused") as client:
        model = client.models.list().data[0].id
        talk: list[Any] = [{"role": "user", "content": "Name one thing you find in a forest."}]
        said = ""
        for event in client.responses.create(model=model, input=talk, max_output_tokens=24, store=False, stream=True):
            if event.type == "response.output_text.delta":
                said += event.delta
                print(event.delta, end="", flush=True)
        print()
        talk += [{"role": "assistant", "content": said}, {"role": "user", "content": "What kind of thing is it?"}]
        second = client.responses.parse(model=model, input=talk, text_format=Verdict, max_output_tokens=40)
        print(repr(second.output_parsed))


if __name__ == "__main__":
    main(*sys.argv[1:] or [BASE_URL])
