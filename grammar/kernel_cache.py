"""Compiles numba kernels once per version of their sources.

numba's own cache notices a change of the file that a function is in, but not of functions and constants it uses from other
files. Kernels here use each other across files, so their cache folder is named by a digest of all of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core import config as numba_config

_SOURCES = ("grammar/kernels/*.py", "grammar/machine_layout.py", "fsm_cache/kernels/*.py", "fsm_cache/trie.py")

_config: Any = numba_config
_njit: Any = njit


@cache
def cache_folder() -> Path:
    """`$FORMCAST_HOME/kernels/<digest>`, by default below `~/.cache/formcast`."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _SOURCES for path in root.glob(pattern)):
        digest.update(path.read_bytes())
    home = os.environ.get("FORMCAST_HOME") or Path.home() / ".cache" / "formcast"
    return Path(home) / "kernels" / digest.hexdigest()[:16]


def kernel(signature: Any, *, far: bool = False) -> Callable[[Any], Any]:
    """Compiles a function for one signature, without the GIL, cached on disk (in numba's usual places if the folder is not writable).

    Args:
        signature: numba's types of the arguments and the answer.
        far: other kernels call it through its address.
    """

    inner = any(isinstance(argument, types.CPointer) for argument in signature.args)  # Python has no such thing

    def compile_function(function: Any) -> Any:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(cache_folder())
        try:
            return _njit(signature, cache=True, nogil=True, no_cfunc_wrapper=not far, no_cpython_wrapper=inner)(function)
        finally:
            _config.CACHE_DIR = before

    return compile_function
