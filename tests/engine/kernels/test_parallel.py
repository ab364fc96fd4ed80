from __future__ import annotations

import numba
import numpy as np
import pytest
import torch

from formcast.engine.kernels.parallel import KERNEL, bits_of, claim, float_of, pointer, run


@numba.cfunc(KERNEL)
def _mark(words):
    """Adds a float to the place of each task it claims."""
    marks = numba.carray(pointer(words[2]), (words[1],), np.float32)  # pyright: ignore[reportCallIssue, reportPrivateImportUsage]
    while True:
        task = claim(words)
        if task >= words[1]:
            return
        marks[task] += float_of(words[3])


@pytest.mark.parametrize("num_tasks", [0, 1, 2, 1000])
@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("parallel", [False, True])
def test_every_task_is_done_exactly_once(num_tasks, num_threads, parallel):
    marks = np.zeros(num_tasks, np.float32)
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        run(_mark, num_tasks, (marks.ctypes.data, bits_of(1.5)), parallel=parallel)
    finally:
        torch.set_num_threads(before)
    assert (marks == 1.5).all()
