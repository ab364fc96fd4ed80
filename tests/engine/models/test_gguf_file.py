"""The GGUF container: what the format's own writer writes is read back, and nothing else is believed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter
from gguf_samples import write_gguf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formcast.engine.errors import UnsupportedModel
from formcast.engine.models.gguf_file import GgufFile

VALUES: list[tuple[str, GGUFValueType, Any]] = [
    ("a.u8", GGUFValueType.UINT8, 200),
    ("a.i8", GGUFValueType.INT8, -100),
    ("a.u16", GGUFValueType.UINT16, 60_000),
    ("a.i16", GGUFValueType.INT16, -30_000),
    ("a.u32", GGUFValueType.UINT32, 4_000_000_000),
    ("a.i32", GGUFValueType.INT32, -2_000_000_000),
    ("a.u64", GGUFValueType.UINT64, 2**63 + 5),
    ("a.i64", GGUFValueType.INT64, -(2**62)),
    ("a.f32", GGUFValueType.FLOAT32, 0.5),
    ("a.f64", GGUFValueType.FLOAT64, 0.1),
    ("a.bool", GGUFValueType.BOOL, True),
    ("a.string", GGUFValueType.STRING, "ключ 🎉"),
]


def sample(tmp_path: Path, alignment: int | None = None) -> Path:
    path = tmp_path / "sample.gguf"
    writer = GGUFWriter(path, "llama")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, kind, value in VALUES:
        writer.add_key_value(key, value, kind)
    writer.add_array("a.strings", ["x", "", "ü"])
    writer.add_array("a.numbers", [1, 2, -3])
    writer.add_array("a.floats", [0.5, -1.5])
    writer.add_array("a.flags", [True, False])
    writer.add_tensor("matrix", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("half", np.arange(5, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def header(version: int = 3, num_tensors: int = 0, num_fields: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_fields)


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, _, value in VALUES])
def test_scalars(tmp_path: Path, key: str, value: Any):
    assert GgufFile(sample(tmp_path)).metadata[key] == value


def test_arrays(tmp_path: Path):
    metadata = GgufFile(sample(tmp_path)).metadata
    assert metadata["a.strings"] == ["x", "", "ü"]
    assert metadata["a.numbers"] == [1, 2, -3]
    assert metadata["a.floats"] == [0.5, -1.5]
    assert metadata["a.flags"] == [True, False]


@pytest.mark.parametrize("alignment", [None, 64, 256])
def test_tensors_lie_where_the_file_says(tmp_path: Path, alignment: int | None):
    file = GgufFile(sample(tmp_path, alignment))
    matrix, half = file.tensors["matrix"], file.tensors["half"]
    assert (matrix.type, matrix.shape, matrix.num_elements) == (GGMLQuantizationType.F32, (2, 3), 6)
    np.testing.assert_array_equal(file.raw(matrix).view(np.float32), np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(file.raw(half).view(np.float16), np.arange(5, dtype=np.float16))


def test_typed_access(tmp_path: Path):
    file = GgufFile(sample(tmp_path))
    assert file.architecture == "llama"
    assert file.get("a.u8", int) == 200
    assert file.get("absent", int) is None
    assert file.get("absent", int, 3) == 3
    with pytest.raises(UnsupportedModel, match=r"a\.string has an unexpected type"):
        file.get("a.string", int)
    with pytest.raises(UnsupportedModel, match="lacks the metadata absent"):
        file.require("absent", int)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"PK\x03\x04", "not a GGUF file"),
        (b"{}", "not a GGUF file"),
        (b"GGUF", "ends too early"),
        (header(version=1), "version 1"),
        (header(num_fields=2**62), "ends too early"),
        (header(num_tensors=2**62), "ends too early"),
        (header(num_fields=1) + struct.pack("<Q", 2**63), "ends too early"),
        (header(num_fields=1) + string(b"\xff"), "not UTF-8"),
        (header(num_fields=1) + string(b"k") + struct.pack("<I", 99), "unknown value type 99"),
        (header(num_fields=1) + string(b"k") + struct.pack("<IIQ", 9, 4, 2**60), "ends too early"),
        (header(num_fields=1) + string(b"k") + struct.pack("<IIQ", 9, 8, 2**60), "ends inside an array"),
        (header(num_fields=1) + string(b"k") + struct.pack("<IIQ", 9, 9, 1), "arrays of arrays"),
        (header(num_fields=2) + 2 * (string(b"k") + struct.pack("<IB", 0, 1)), "appears twice"),
        (header(num_tensors=1) + string(b"t") + struct.pack("<I", 2**31), "dimensions"),
        (header(num_tensors=1) + string(b"t") + struct.pack("<IQIQ", 1, 4, 777, 0), "unknown type 777"),
        (header(num_tensors=1) + string(b"t") + struct.pack("<IQIQ", 1, 33, 8, 0), "does not divide"),
        (header(num_tensors=1) + string(b"t") + struct.pack("<IQIQ", 1, 2**60, 0, 0), "outside the file"),
        (header(num_tensors=1) + string(b"t") + struct.pack("<IQIQ", 1, 1, 0, 2**63), "outside the file"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: bytes, reason: str):
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(UnsupportedModel, match=reason):
        GgufFile(path)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return sample(tmp_path_factory.mktemp("image")).read_bytes()


def opens_or_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        file = GgufFile(path)
    except UnsupportedModel:
        return
    for tensor in file.tensors.values():
        assert len(file.raw(tensor)) == tensor.num_bytes


any_function = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@any_function
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_refused(tmp_path: Path, image: bytes, share: float):
    opens_or_is_refused(tmp_path / "cut.gguf", image[: int(share * len(image))])


@any_function
@given(position=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_a_damaged_file_never_breaks_the_reader(tmp_path: Path, image: bytes, position: float, value: int):
    damaged = bytearray(image)
    damaged[int(position * len(image))] = value
    opens_or_is_refused(tmp_path / "damaged.gguf", bytes(damaged))


def test_a_missing_file_is_an_os_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        GgufFile(tmp_path / "absent.gguf")


def test_a_large_vocabulary_reads_back(tmp_path: Path):
    tokens = [f"token {index} é" for index in range(5000)]
    path = write_gguf(tmp_path / "v.gguf", "llama", {"tokens": tokens}, {})
    assert GgufFile(path).metadata["tokens"] == tokens
