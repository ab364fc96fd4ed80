"""The GGUF container: typed metadata, a tensor table, and the tensors' bytes.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little endian). The file is
mapped, so opening one costs the metadata only, and tensor bytes are read when they are used. A file is untrusted
input: every length is checked against the file's size before it is believed.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGUF_DEFAULT_ALIGNMENT, GGMLQuantizationType, GGUFValueType

from ..errors import UnsupportedModel

MAGIC = b"GGUF"
VERSIONS = (2, 3)

_SCALARS: dict[GGUFValueType, struct.Struct] = {
    GGUFValueType.UINT8: struct.Struct("<B"),
    GGUFValueType.INT8: struct.Struct("<b"),
    GGUFValueType.UINT16: struct.Struct("<H"),
    GGUFValueType.INT16: struct.Struct("<h"),
    GGUFValueType.UINT32: struct.Struct("<I"),
    GGUFValueType.INT32: struct.Struct("<i"),
    GGUFValueType.FLOAT32: struct.Struct("<f"),
    GGUFValueType.BOOL: struct.Struct("<?"),
    GGUFValueType.UINT64: struct.Struct("<Q"),
    GGUFValueType.INT64: struct.Struct("<q"),
    GGUFValueType.FLOAT64: struct.Struct("<d"),
}
_U32 = _SCALARS[GGUFValueType.UINT32]
_U64 = _SCALARS[GGUFValueType.UINT64]
_MAX_DIMS = 8


@dataclass(frozen=True, kw_only=True)
class GgufTensor:
    """One entry of the tensor table.

    Attributes:
        name: the tensor's GGUF name, for example `blk.0.attn_q.weight`.
        type: how its values are packed.
        shape: outermost dimension first, as numpy and torch count (GGUF stores the reverse).
        offset: of the first byte, from the start of the file.
        num_bytes: packed size.
    """

    name: str
    type: GGMLQuantizationType
    shape: tuple[int, ...]
    offset: int
    num_bytes: int

    @property
    def num_elements(self) -> int:
        return prod(self.shape)


class GgufFile:
    """An open GGUF file: `metadata`, `tensors` by name, and `raw(tensor)` for their bytes.

    Raises:
        UnsupportedModel: not a GGUF file, a version or value type that is not supported, or malformed.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path):
        self.path = path
        self._buffer = _map(path)
        if self._buffer[: len(MAGIC)] != MAGIC:
            raise UnsupportedModel(f"{path} is not a GGUF file")
        cursor = _Cursor(self._buffer, path)
        cursor.take(len(MAGIC))
        version = cursor.scalar(_U32)
        if version not in VERSIONS:
            raise UnsupportedModel(f"{path} is GGUF version {version}; versions 2 and 3 are supported")
        num_tensors, num_fields = cursor.scalar(_U64), cursor.scalar(_U64)
        self.metadata: dict[str, Any] = _read_metadata(cursor, num_fields)
        self.tensors: dict[str, GgufTensor] = _read_tensor_table(cursor, num_tensors, self.metadata)

    @property
    def architecture(self) -> str:
        """`general.architecture`, for example `llama`."""
        return self.require("general.architecture", str)

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """The metadata value of `key`, or `default`; raises `UnsupportedModel` if it is not of `kind`."""
        value = self.metadata.get(key, default)
        if value is default or isinstance(value, kind):
            return value
        raise UnsupportedModel(f"{self.path}: metadata {key} has an unexpected type")

    def require(self, key: str, kind: type | tuple[type, ...]) -> Any:
        """The metadata value of `key`; raises `UnsupportedModel` if it is missing or not of `kind`."""
        if key not in self.metadata:
            raise UnsupportedModel(f"{self.path} lacks the metadata {key}")
        return self.get(key, kind)

    @property
    def is_quantised(self) -> bool:
        """Whether most values take 8 bits (and their scales) or fewer."""
        tensors = self.tensors.values()
        few = sum(t.num_elements for t in tensors if GGML_QUANT_SIZES[t.type][0] > 1)
        return 2 * few > sum(t.num_elements for t in tensors)

    def raw(self, tensor: GgufTensor) -> np.ndarray:
        """The packed bytes of a tensor: read-only uint8 [num_bytes], a view of the mapped file."""
        return np.frombuffer(self._buffer, np.uint8, count=tensor.num_bytes, offset=tensor.offset)


class _Cursor:
    """Reads values one after the other and refuses to leave the file."""

    def __init__(self, buffer: mmap.mmap, path: Path):
        self.buffer = buffer
        self.path = path
        self.size = len(buffer)
        self.position = 0

    def fail(self, reason: str) -> UnsupportedModel:
        return UnsupportedModel(f"{self.path} is malformed at byte {self.position}: {reason}")

    def take(self, count: int) -> bytes:
        if count > self.size - self.position:
            raise self.fail("the file ends too early")
        start = self.position
        self.position += count
        return self.buffer[start : self.position]

    def scalar(self, layout: struct.Struct) -> Any:
        return layout.unpack(self.take(layout.size))[0]

    def string(self) -> str:
        return self.text(self.take(self.scalar(_U64)))

    def text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail("a string is not UTF-8") from error

    def strings(self, count: int) -> list[str]:
        """`count` strings; one loop without method calls, since vocabularies hold hundreds of thousands."""
        buffer, position, size = self.buffer, self.position, self.size
        read_length = _U64.unpack_from
        values = []
        for _ in range(count):
            if position + 8 > size:
                raise self.fail("the file ends inside an array")
            start = position + 8
            position = start + read_length(buffer, position)[0]
            if position > size:
                raise self.fail("the file ends inside an array")
            values.append(buffer[start:position])
        self.position = position
        try:
            return [raw.decode("utf-8") for raw in values]
        except UnicodeDecodeError as error:
            raise self.fail("an array holds a string that is not UTF-8") from error

    def value_type(self) -> GGUFValueType:
        code = self.scalar(_U32)
        try:
            return GGUFValueType(code)
        except ValueError as error:
            raise self.fail(f"unknown value type {code}") from error


def _map(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise UnsupportedModel(f"{path} is empty") from error


def _read_metadata(cursor: _Cursor, num_fields: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(num_fields):
        key = cursor.string()
        if key in metadata:
            raise cursor.fail(f"metadata {key!r} appears twice")
        metadata[key] = _read_value(cursor)
    return metadata


def _read_value(cursor: _Cursor) -> Any:
    kind = cursor.value_type()
    if kind is GGUFValueType.STRING:
        return cursor.string()
    if kind is GGUFValueType.ARRAY:
        return _read_array(cursor)
    return cursor.scalar(_SCALARS[kind])


def _read_array(cursor: _Cursor) -> list[Any]:
    kind, count = cursor.value_type(), cursor.scalar(_U64)
    if kind is GGUFValueType.ARRAY:
        raise cursor.fail("arrays of arrays are not supported")
    if kind is GGUFValueType.STRING:
        return cursor.strings(count)
    layout = _SCALARS[kind]
    return np.frombuffer(cursor.take(count * layout.size), np.dtype(layout.format)).tolist()


def _read_tensor_table(cursor: _Cursor, num_tensors: int, metadata: dict[str, Any]) -> dict[str, GgufTensor]:
    entries = [_read_tensor_entry(cursor) for _ in range(num_tensors)]
    data_start = _align(cursor, metadata.get("general.alignment", GGUF_DEFAULT_ALIGNMENT))
    tensors: dict[str, GgufTensor] = {}
    for name, type_code, shape, relative_offset in entries:
        if name in tensors:
            raise cursor.fail(f"tensor {name!r} appears twice")
        tensors[name] = _place(cursor, name, type_code, shape, data_start + relative_offset)
    return tensors


def _read_tensor_entry(cursor: _Cursor) -> tuple[str, int, tuple[int, ...], int]:
    name = cursor.string()
    num_dims = cursor.scalar(_U32)
    if num_dims > _MAX_DIMS:
        raise cursor.fail(f"tensor {name!r} has {num_dims} dimensions")
    shape = tuple(cursor.scalar(_U64) for _ in range(num_dims))[::-1]
    return name, cursor.scalar(_U32), shape, cursor.scalar(_U64)


def _align(cursor: _Cursor, alignment: Any) -> int:
    if not isinstance(alignment, int) or alignment <= 0:
        raise cursor.fail("general.alignment is not a positive integer")
    return -(-cursor.position // alignment) * alignment


def _place(cursor: _Cursor, name: str, type_code: int, shape: tuple[int, ...], offset: int) -> GgufTensor:
    try:
        kind = GGMLQuantizationType(type_code)
    except ValueError as error:
        raise UnsupportedModel(f"{cursor.path}: tensor {name!r} has the unknown type {type_code}") from error
    block_size, block_bytes = GGML_QUANT_SIZES[kind]
    if not shape or shape[-1] % block_size:
        raise cursor.fail(f"tensor {name!r} of shape {shape} does not divide into {kind.name} blocks of {block_size}")
    num_bytes = prod(shape) // block_size * block_bytes
    if offset + num_bytes > cursor.size:
        raise cursor.fail(f"tensor {name!r} lies outside the file")
    return GgufTensor(name=name, type=kind, shape=shape, offset=offset, num_bytes=num_bytes)
