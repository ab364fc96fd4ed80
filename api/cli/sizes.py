"""Numbers as people read them."""

from __future__ import annotations

_STEP = 1000


def human_bytes(count: int) -> str:
    """`98.4 MB`."""
    return _human(count, ("B", "kB", "MB", "GB", "TB"), separator=" ")


def human_count(count: int) -> str:
    """`134.5M`."""
    return _human(count, ("", "K", "M", "B", "T"), separator="")


def _human(count: float, units: tuple[str, ...], *, separator: str) -> str:
    for unit in units[:-1]:
        if count < _STEP:
            return f"{count:.3g}{separator}{unit}"
        count /= _STEP
    return f"{count:.3g}{separator}{units[-1]}"
