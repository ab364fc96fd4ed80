"""Compiles numba kernels once per version of their sources.

numba's own cache notices a change of the file that a function is in, but not of functions and constants it uses from other
files. Kernels here use each other across files, so their cache folder is named by a digest of all of them.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import add_symbol
from numba import njit, types
from numba.core import config as numba_config
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode

from .kernel_helper import start_helper

_SOURCES = ("grammar/kernel_cache.py", "grammar/kernels/*.py", "grammar/machine_layout.py", "fsm_cache/kernels/*.py", "fsm_cache/trie.py")

_config: Any = numba_config
_njit: Any = njit


@cache
def cache_folder() -> Path:
    """`$FORMCAST_HOME/kernels/<digest>`, by default below `~/.cache/formcast`. A new one is filled with a helper."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    digest.update(f"{sys.version} {numba.__version__}".encode())
    for path in sorted(path for pattern in _SOURCES for path in root.glob(pattern)):
        digest.update(path.read_bytes())
    home = os.environ.get("FORMCAST_HOME") or Path.home() / ".cache" / "formcast"
    folder = Path(home) / "kernels" / digest.hexdigest()[:16]
    start_helper(folder)
    return folder


class KernelCompiler(CompilerBase):
    """numba's compiler without the passes that look for what kernels do not have: closures, array expressions, literal arguments."""

    def define_pipelines(self) -> list[Any]:
        passes: Any = PassManager("kernel")
        for step, what in (
            (TranslateByteCode, "analyzing bytecode"),
            (FixupArgs, "fix up args"),
            (IRProcessing, "processing IR"),
            (ReconstructSSA, "ssa"),
            (NopythonTypeInference, "nopython frontend"),
            (PreLowerStripPhis, "remove phis nodes"),
        ):
            passes.add_pass(step, what)
        passes.passes.extend(DefaultPassBuilder.define_nopython_lowering_pipeline(self.state).passes)
        passes.finalize()
        return [passes]


_called_by_symbol: list[Any] = []  # held, since what calls them holds no more than the symbol


def _by_symbol(compiled: Any, signature: Any) -> Any:
    """What kernels call instead of a compiled kernel."""
    symbol = f"formcast {compiled.__module__}.{compiled.__name__}"
    add_symbol(symbol, address_of(compiled))
    _called_by_symbol.append(compiled)
    return types.ExternalFunction(symbol, signature)


def address_of(compiled: Any) -> int:
    """Where the code of a compiled kernel is."""
    overload = next(iter(compiled.overloads.values()))
    return overload.library.get_pointer_to_function(overload.fndesc.llvm_cfunc_wrapper_name)


def kernel(signature: Any, *, far: bool = False, apart: bool = False) -> Callable[[Any], Any]:
    """Compiles a function for one signature, without the GIL, cached on disk (in numba's usual places if the folder is not writable).

    Args:
        signature: numba's types of the arguments and the answer.
        far: other kernels call it through its address.
        apart: other kernels call it by a symbol, so that none is compiled with a copy of it. For large ones with several callers.
    """

    inner = any(isinstance(argument, types.CPointer) for argument in signature.args)  # Python has no such thing

    def compile_function(function: Any) -> Any:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(cache_folder())
        try:
            wrappers = {"no_cfunc_wrapper": not (far or apart), "no_cpython_wrapper": inner}
            compiled = _njit(signature, cache=True, nogil=True, pipeline_class=KernelCompiler, **wrappers)(function)
            return _by_symbol(compiled, signature) if apart else compiled
        finally:
            _config.CACHE_DIR = before

    return compile_function
