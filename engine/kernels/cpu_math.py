"""Functions that compiled CPU kernels share."""

from __future__ import annotations

import numba
import numpy as np
from numba import float32

_LOWEST = np.float32(-87.0)
_LOG2_E = np.float32(1.4426950408889634)
_LN_2_HIGH = np.float32(0.693359375)
_LN_2_LOW = np.float32(-2.12194440e-4)


@numba.njit(float32(float32), inline="always", fastmath={"contract", "nsz"})
def exp_negative(x):
    """exp(x) for x <= 0 within 2 units in the last place; 0 below -87. Branch-free, so that loops over it vectorise.

    Range reduction by Cody and Waite and the polynomial of the Cephes library (S. Moshier), degree 6.
    """
    clamped = max(x, _LOWEST)
    whole = np.float32(np.floor(clamped * _LOG2_E + np.float32(0.5)))
    r = clamped - whole * _LN_2_HIGH - whole * _LN_2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    power = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return p * power if x > _LOWEST else np.float32(0.0)
