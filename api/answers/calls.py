"""Calls as the tags of an answer tell them, see `tools.labels`."""

from __future__ import annotations

import json
import uuid
from typing import NamedTuple

from ...grammar.structural_tag import Event, TagBegin, TagDelta, TagEnd, TextDelta
from ...grammar.structural_tag.bare_values import BARE_STYLES
from ..tools.gemma import BareReader
from ..tools.labels import (
    ARGUMENT,
    ARGUMENTS,
    BARE_CALLS,
    CALL,
    CALL_ID,
    CONSTANT,
    HEADED_CALL,
    IDENTIFIED_CALL,
    NAMED_CALL,
    PADDED_ARGUMENT,
    TEXT_ARGUMENT,
)


class BegunCall(NamedTuple):
    name: str
    call_id: str


class CallReader:
    """Reads the calls of one answer, one after another."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._name = ""  # of a call whose head is being read
        self._id = ""
        self._has_own_id = False
        self._num_arguments = 0
        self._bare: BareReader | None = None
        self._is_fresh = False  # nothing of the argument was read yet
        self._held = ""  # may be the end of the argument, which is no part of it

    def begun_by(self, event: Event) -> BegunCall | None:
        """The call that is known to have begun, with its name and id."""
        if isinstance(event, TextDelta):
            return None
        kind, name = _kind_of(event.name)
        if kind in (HEADED_CALL, IDENTIFIED_CALL):
            self._read_head(kind, name, event)
            return None
        if kind == CALL_ID and isinstance(event, TagDelta):
            self._id += event.text
            return None
        if not isinstance(event, TagBegin) or kind not in (CALL, NAMED_CALL, ARGUMENTS, *BARE_CALLS):
            return None
        self._num_arguments = 0
        if kind in BARE_CALLS:
            self._bare = BareReader(str(BARE_STYLES[BARE_CALLS[kind]].quote.token))
        if kind == ARGUMENTS:
            return self._begun(self._name, self._id)
        return self._begun(name, "")

    def text_of(self, event: Event) -> str:
        """What an event adds to the JSON text of the arguments."""
        if isinstance(event, TextDelta):
            return ""
        kind, name = _kind_of(event.name)
        if kind in (CALL, ARGUMENTS):
            return event.text if isinstance(event, TagDelta) else ""
        if kind in BARE_CALLS:
            return self._bare.feed(event.text) if isinstance(event, TagDelta) and self._bare else ""
        if kind == NAMED_CALL:
            return ("}" if self._num_arguments else "{}") if isinstance(event, TagEnd) else ""
        if kind == CONSTANT:
            return name if isinstance(event, TagBegin) else ""
        return self._argument(kind, name, event) if kind in (ARGUMENT, TEXT_ARGUMENT, PADDED_ARGUMENT) else ""

    def _read_head(self, kind: str, name: str, event: Event) -> None:
        if isinstance(event, TagBegin):
            self._name, self._id, self._has_own_id = name, "", kind == IDENTIFIED_CALL
        if self._has_own_id and not isinstance(event, TagEnd):
            self._id += event.text

    def _begun(self, name: str, call_id: str) -> BegunCall:
        if not call_id or call_id in self._ids:
            call_id = f"call_{uuid.uuid4().hex[:24]}"
        self._ids.add(call_id)
        return BegunCall(name, call_id)

    def _argument(self, kind: str, name: str, event: Event) -> str:
        quote = "" if kind == ARGUMENT else '"'
        if isinstance(event, TagBegin):
            self._num_arguments += 1
            self._is_fresh, self._held = True, ""
            return f"{'{' if self._num_arguments == 1 else ', '}{json.dumps(name)}: {quote}"
        if isinstance(event, TagEnd):
            return quote
        return self._value(kind, event.text)

    def _value(self, kind: str, text: str) -> str:
        """A piece of a value; the space around JSON and the line breaks around a padded text are left out."""
        if kind == TEXT_ARGUMENT:
            return _escaped(text)
        if kind == PADDED_ARGUMENT:
            text = text.removeprefix("\n") if self._is_fresh else self._held + text
            shown = text.removesuffix("\n")
            self._is_fresh, self._held = False, text[len(shown) :]
            return _escaped(shown)
        text = text.lstrip() if self._is_fresh else self._held + text
        shown = text.rstrip()
        self._is_fresh, self._held = self._is_fresh and not shown, text[len(shown) :]
        return shown


def _kind_of(label: str) -> tuple[str, str]:
    kind, colon, name = label.partition(":")
    return kind + colon, name


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
