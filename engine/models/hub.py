"""Models on the Hugging Face hub, through `huggingface_hub`: its tokens, mirrors, offline mode and resumption hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

OnBytes = Callable[[int], None]


class HubError(Exception):
    """The hub could not be reached or refused; the message says why in one line."""


class HubNotFound(HubError):
    """There is no such repository or file, or the user's token does not open it."""


@dataclass(frozen=True, kw_only=True)
class HubListing:
    """What a repository holds at one moment.

    Attributes:
        revision: the commit, so that all files come from the same one.
        files: size in bytes by path.
        licence: as the model card states it, or None.
    """

    revision: str
    files: Mapping[str, int]
    licence: str | None


class Hub(Protocol):
    """A place with repositories of models."""

    def listing(self, repo_id: str) -> HubListing:
        """What a repository holds now. Raises `HubError`."""
        ...

    def fetch(self, repo_id: str, revision: str, filename: str, folder: Path, on_bytes: OnBytes) -> None:
        """Bring one file into `folder`, continuing what an earlier call left there. Raises `HubError`."""
        ...


class HuggingFaceHub:
    """The hub that `huggingface_hub` is set up for."""

    def listing(self, repo_id: str) -> HubListing:
        from huggingface_hub import HfApi

        info = _asked(lambda: HfApi().model_info(repo_id, files_metadata=True))
        licence = info.card_data.get("license") if info.card_data is not None else None
        return HubListing(
            revision=info.sha or "main",
            files={entry.rfilename: entry.size or 0 for entry in info.siblings or ()},
            licence=licence if isinstance(licence, str) else None,
        )

    def fetch(self, repo_id: str, revision: str, filename: str, folder: Path, on_bytes: OnBytes) -> None:
        from huggingface_hub import hf_hub_download

        _asked(lambda: hf_hub_download(repo_id, filename, revision=revision, local_dir=folder, tqdm_class=_reporting_to(on_bytes)))


def _asked(question: Callable[[], Any]) -> Any:
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        return question()
    except GatedRepoError as error:
        raise HubNotFound("its terms must be accepted on the hub first, with a token that is set up here") from error
    except LocalEntryNotFoundError as error:
        raise HubError("the hub cannot be reached") from error
    except (RepositoryNotFoundError, EntryNotFoundError, HFValidationError) as error:
        raise HubNotFound("the hub has no such model, or the token set up here does not open it") from error
    except Exception as error:  # the HTTP client below differs between versions, and so do its errors
        raise HubError(f"the hub cannot be reached or refused: {' '.join(str(error).split()) or type(error).__name__}") from error


def _reporting_to(on_bytes: OnBytes) -> type:
    """A stand-in for tqdm's class that passes on how many bytes more are here."""

    class Reporter:
        def __init__(self, *args: Any, initial: int = 0, **kwargs: Any):
            self.total = kwargs.get("total")
            if initial:
                on_bytes(initial)

        def update(self, n: float | None = 1) -> None:
            on_bytes(int(n or 0))

        def __enter__(self) -> Reporter:
            return self

        def __exit__(self, *exception: object) -> None:
            pass

        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *args, **kwargs: None

    return Reporter
