"""Errors of a constraint.

    FormcastError                 anything a user can cause
      GrammarError                a constraint that cannot be enforced exactly, and where
        LimitError                a budget of `Limits` was reached
      OutputError                 a text that its structural tag does not admit
"""

from __future__ import annotations


class FormcastError(Exception):
    """Root of every error that a user's input can cause."""


class GrammarError(FormcastError):
    """A constraint is malformed, contradictory or not supported.

    Attributes:
        reason: what is wrong, one sentence without the place.
        pointer: RFC 6901 JSON pointer of the place in a schema, or None.
        position: offset in code points into a pattern or grammar text, or None.
        expected: what could have stood at the position.
    """

    def __init__(self, reason: str, *, pointer: object = None, position: int | None = None, expected: tuple[str, ...] = ()):
        self.reason = reason
        self.pointer = None if pointer is None else str(pointer)
        self.position = position
        self.expected = expected
        super().__init__(self._message())

    def _message(self) -> str:
        text = self.reason
        if self.position is not None:
            text += f" (at position {self.position})"
        if self.pointer is not None:
            text += f" (at {self.pointer or 'the root of the schema'})"
        if self.expected:
            text += f"; expected {', '.join(self.expected)}"
        return text

    def at(self, pointer: object) -> GrammarError:
        """The same error placed at a JSON pointer, unless it already has one."""
        if self.pointer is not None:
            return self
        return type(self)(self.reason, pointer=pointer, position=self.position, expected=self.expected)


class LimitError(GrammarError):
    """A budget of `Limits` was reached before the constraint was built."""


class OutputError(FormcastError):
    """A text is not what its structural tag admits.

    Attributes:
        position: offset of the place in bytes.
    """

    def __init__(self, reason: str, *, position: int):
        self.position = position
        super().__init__(f"{reason} (at byte {position})")
