"""Errors of models: finding, fetching, reading and prompting them.

FormcastError                 (grammar/errors.py)
  ModelError                  a model cannot be used as asked
    ModelNotFound             no model of that name
    DownloadError             a model could not be fetched, or what came is not what was expected
    UnsupportedModel          the files are malformed, or of a kind that cannot be loaded exactly
    ChatTemplateError         a chat template is malformed, refused the messages, or exceeded its budget
"""

from __future__ import annotations

from ..grammar.errors import FormcastError


class ModelError(FormcastError):
    """A model cannot be used as asked. The message is one line and names the model."""


class ModelNotFound(ModelError):
    """No model of that name.

    Attributes:
        name: the name as given.
        near: known names that resemble it, best first.
    """

    def __init__(self, name: str, reason: str, *, near: tuple[str, ...] = ()):
        self.name = name
        self.near = near
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"model {_shown(name)} not found: {reason}{hint}")


class DownloadError(ModelError):
    """A model could not be fetched, or what came is not what was expected.

    Attributes:
        name: the model that was asked for.
    """

    def __init__(self, name: str, reason: str):
        self.name = name
        super().__init__(f"cannot fetch {_shown(name)}: {reason}")


class UnsupportedModel(ModelError):
    """The files of a model are malformed, or of a kind that cannot be loaded exactly."""


class ChatTemplateError(ModelError):
    """A chat template is malformed, refused the messages, or exceeded its budget."""


_MAX_SHOWN_CHARS = 200


def _shown(name: str) -> str:
    """A name as it can stand in a one-line message, whatever the user typed."""
    return repr(name if len(name) <= _MAX_SHOWN_CHARS else name[:_MAX_SHOWN_CHARS] + "…")
