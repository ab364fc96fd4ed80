"""Forced text: the bytes that must follow a state, in numba."""

from __future__ import annotations

import numpy as np

from ..grammar.kernel_cache import kernel
from ..grammar.kernels.far import step
from ..grammar.kernels.memory import MEMORY, addresses, i4, i4_1, pointer
from ..grammar.machine_layout import DEAD

# answers of only_byte beside the codes of step
CHOICE = -10


@kernel(i4(MEMORY, i4, i4, i4_1, i4_1))
def only_byte(memory, state, text, out, target):
    """The one byte that may follow `state`, with the state behind it in `target[0]`; CHOICE where none or several may. `text` is what
    is recorded before it.

    A code to serve when the step needs something: ask again afterwards.
    """
    nodes, buckets, rows, table, values, frames, transitions, header = addresses(memory)
    members = pointer(out)
    found = np.int32(CHOICE)
    for byte in range(256):
        after = step(nodes, buckets, rows, table, values, frames, transitions, header, state, np.int32(byte), np.int32(0), text, members)
        if after == DEAD:
            continue
        if after < 0:
            return after
        if found != CHOICE:
            return np.int32(CHOICE)
        found = np.int32(byte)
        target[0] = after
    return found
