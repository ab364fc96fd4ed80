"""Downloads: complete and checked, or not there; interruptions cost only what is missing."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import FileServer, running

from formcast.engine.models.download import TransferError, download, file_sha256

CONTENT = random.Random(0).randbytes(1_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[FileServer]:
    with running(FileServer(files={"/file": CONTENT, "/empty": b""})) as server:
        yield server


class Received:
    """Adds up what the progress callback is told."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, num_bytes: int) -> None:
        self.total += num_bytes


def part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def test_a_whole_file(server: FileServer, tmp_path: Path):
    target, received = tmp_path / "file", Received()
    download(server.url("/file"), target, sha256=SHA256, on_bytes=received)
    assert target.read_bytes() == CONTENT
    assert received.total == len(CONTENT)
    assert not part_of(target).exists()


def test_what_is_there_is_not_fetched_again(server: FileServer, tmp_path: Path):
    target, received = tmp_path / "file", Received()
    target.write_bytes(CONTENT)
    download(server.url("/file"), target, sha256=SHA256, on_bytes=received)
    assert server.requests == []
    assert received.total == len(CONTENT)


def test_an_earlier_part_is_continued(server: FileServer, tmp_path: Path):
    target, received = tmp_path / "file", Received()
    part_of(target).write_bytes(CONTENT[:300_000])
    download(server.url("/file"), target, sha256=SHA256, on_bytes=received)
    assert server.requests == [("/file", "bytes=300000-")]
    assert target.read_bytes() == CONTENT
    assert received.total == len(CONTENT)


def test_without_range_support_it_starts_over(server: FileServer, tmp_path: Path):
    server.supports_ranges = False
    target, received = tmp_path / "file", Received()
    part_of(target).write_bytes(CONTENT[:300_000])
    download(server.url("/file"), target, sha256=SHA256, on_bytes=received)
    assert len(server.requests) == 1
    assert target.read_bytes() == CONTENT
    assert received.total == len(CONTENT)


@pytest.mark.parametrize("wrong", [b"x" * 300_000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_a_part_of_another_file_is_dropped(server: FileServer, tmp_path: Path, wrong: bytes):
    target, received = tmp_path / "file", Received()
    part_of(target).write_bytes(wrong)
    download(server.url("/file"), target, sha256=SHA256, on_bytes=received)
    assert target.read_bytes() == CONTENT
    assert received.total == len(CONTENT)


def test_a_broken_connection_is_taken_up_again(server: FileServer, tmp_path: Path):
    server.cut_after = [400_000, 100_000]
    target, received = tmp_path / "file", Received()
    download(server.url("/file"), target, sha256=SHA256, on_bytes=received)
    assert [wanted for _, wanted in server.requests] == [None, "bytes=400000-", "bytes=500000-"]
    assert target.read_bytes() == CONTENT
    assert received.total == len(CONTENT)


def test_a_connection_that_keeps_breaking(server: FileServer, tmp_path: Path):
    server.cut_after = [10] * 20
    target = tmp_path / "file"
    with pytest.raises(TransferError, match=r"127\.0\.0\.1 keeps breaking"):
        download(server.url("/file"), target, sha256=SHA256, on_bytes=Received())
    assert not target.exists()
    assert part_of(target).read_bytes() == CONTENT[:40]
    server.cut_after.clear()
    download(server.url("/file"), target, sha256=SHA256, on_bytes=Received())
    assert target.read_bytes() == CONTENT


def test_a_wrong_checksum(server: FileServer, tmp_path: Path):
    target, received = tmp_path / "file", Received()
    with pytest.raises(TransferError, match="wrong checksum"):
        download(server.url("/file"), target, sha256="0" * 64, on_bytes=received)
    assert list(tmp_path.iterdir()) == []
    assert received.total == 0


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusal(server: FileServer, tmp_path: Path, status: int):
    server.statuses = [status]
    with pytest.raises(TransferError, match=f"answered {status}"):
        download(server.url("/file"), tmp_path / "file", sha256=SHA256, on_bytes=Received())


def test_without_a_checksum_what_comes_is_taken(server: FileServer, tmp_path: Path):
    download(server.url("/file"), tmp_path / "file", sha256=None, on_bytes=Received())
    assert file_sha256(tmp_path / "file") == SHA256
    download(server.url("/empty"), tmp_path / "empty", sha256=None, on_bytes=Received())
    assert (tmp_path / "empty").read_bytes() == b""


def test_a_file_url(tmp_path: Path):
    source, target, received = tmp_path / "source", tmp_path / "target", Received()
    source.write_bytes(CONTENT)
    part_of(target).write_bytes(CONTENT[:10])
    download(source.as_uri(), target, sha256=SHA256, on_bytes=received)
    assert target.read_bytes() == CONTENT
    assert received.total == len(CONTENT)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://127.0.0.1/x", "neither an http nor a file URL"),
        ("data:text/plain,x", "neither an http nor a file URL"),
        ("http://127.0.0.1:9/x", r"cannot reach 127\.0\.0\.1"),
        ("file:///absent/file", "cannot reach"),
    ],
)
def test_what_cannot_be_fetched(tmp_path: Path, url: str, reason: str):
    with pytest.raises(TransferError, match=reason) as caught:
        download(url, tmp_path / "file", sha256=None, on_bytes=Received())
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
