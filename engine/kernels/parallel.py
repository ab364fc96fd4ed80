"""The lock of compiled CPU kernels that use several threads."""

from __future__ import annotations

import threading

parallel_lock = threading.Lock()
"""Numba's portable threading layer runs one parallel kernel at a time in a process and aborts on a second."""
