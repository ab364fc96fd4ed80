"""Kernels that are called through their addresses, which lie in the header: `either` calls itself, and `step` is given to many."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.extending import intrinsic

from ..machine_layout import H_EITHER, H_STEP
from .memory import P, i4

STEP = i4(P, P, P, P, P, P, P, P, i4, i4, i4, i4, P)
EITHER = i4(P, P, P, i4, i4)


def _through(place: int, header: int) -> Any:
    """Code of a call of the kernel whose address is at `place` of the header, which is the argument number `header`."""

    def codegen(context, builder, signature, arguments):
        word = ir.IntType(64)
        function = ir.FunctionType(context.get_value_type(signature.return_type), [argument.type for argument in arguments])
        at = builder.gep(arguments[header], [ir.Constant(word, place)])
        address = builder.load(builder.bitcast(at, word.as_pointer()), align=4)
        return builder.call(builder.inttoptr(address, function.as_pointer()), arguments)

    return codegen


def _step(_typing, nodes, buckets, rows, table, values, frames, transitions, header, state, byte, masking, text, out):
    """See `step.step`."""
    return STEP, _through(H_STEP, 7)


def _either(_typing, nodes, buckets, header, x, y):
    """See `unions.either`."""
    return EITHER, _through(H_EITHER, 2)


step: Any = intrinsic(_step)
either: Any = intrinsic(_either)
