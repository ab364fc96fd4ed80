"""Read the sender of a message into a Pydantic object.

    python examples/extract.py [MODEL]
"""

from __future__ import annotations

import sys

from pydantic import BaseModel, Field

from formcast import LLM, SamplingParams

MESSAGE = "Hi, this is Grace Hopper from Harbor Robotics in Arlington. Please call me back at 555 0142."
QUESTION = f"Read the sender's name, company, city and phone from this message. Answer in JSON.\n\n{MESSAGE}"


class Sender(BaseModel, extra="forbid"):
    name: str = Field(max_length=40)
    company: str = Field(max_length=40)
    city: str = Field(max_length=40)
    phone: str = Field(pattern="^[0-9 ]{5,20}$")


def main(model: str = "smollm2-135m") -> None:
    with LLM(model=model) as llm:
        results = llm.chat([{"role": "user", "content": QUESTION}], SamplingParams(temperature=0, max_tokens=300), schema=Sender)
    answer = results[0].outputs[0]
    print(repr(answer.parsed) if answer.parsed else f"no sender: {answer.parse_error}\n{answer.text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
