"""The meter of masks."""

from __future__ import annotations

from formcast.engine.mask_meter import MaskMeter


def test_counts_masks_and_their_time():
    meter = MaskMeter()
    for _ in range(3):
        with meter.measure():
            pass
    assert meter.num_masks == 3
    assert meter.mask_seconds > 0
