from __future__ import annotations

import numpy as np
import pytest

from formcast.engine.mask_meter import MaskMeter


@pytest.mark.parametrize(
    ("bits", "forced"),
    [((), 0), ((0,), 1), ((31,), 1), ((40,), 1), ((31, 63), 0), ((4, 5), 0)],
)
def test_a_mask_of_one_token_is_forced(bits: tuple[int, ...], forced: int):
    meter = MaskMeter()
    mask = np.zeros(2, np.uint32)
    with meter.measure(mask.view(np.int32)):
        for bit in bits:
            mask[bit // 32] |= np.uint32(1 << (bit % 32))
    assert (meter.num_masks, meter.num_forced_tokens) == (1, forced)
    assert meter.mask_seconds > 0
