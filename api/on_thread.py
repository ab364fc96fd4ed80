"""Work that costs more than an event loop may wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ..grammar.cancellation import Cancellation, cancellable

Result = TypeVar("Result")


async def on_thread(work: Callable[[], Result]) -> Result:
    """Call `work` on a thread, and wait for it without holding up the loop. Raises what it raises.

    It is told to stop (`grammar.cancellation`) where nobody waits for it any more.
    """
    cancellation = Cancellation()
    try:
        return await asyncio.to_thread(cancellable(cancellation)(work))
    finally:
        cancellation.cancel()
