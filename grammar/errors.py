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
        text: what `position` counts in, where it is known; the message then shows the line of it.
    """

    def __init__(
        self,
        reason: str,
        *,
        pointer: object = None,
        position: int | None = None,
        expected: tuple[str, ...] = (),
        text: str | None = None,
    ):
        self.reason = reason
        self.pointer = None if pointer is None else str(pointer)
        self.position = position
        self.expected = expected
        self.text = text
        super().__init__(self.summary if self.excerpt is None else f"{self.summary}\n{self.excerpt}")

    @property
    def summary(self) -> str:
        """The message without the excerpt."""
        message = self.reason
        if self.position is not None:
            message += f" (at {self._place(self.position)})"
        if self.pointer is not None:
            message += f" (at {self.pointer or 'the root of the schema'})"
        if self.expected:
            message += f"; expected {', '.join(self.expected)}"
        return message

    def _place(self, position: int) -> str:
        if self.text is None or "\n" not in self.text:
            return f"position {position}"
        before = self.text[:position]
        return f"position {position}, line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"

    @property
    def excerpt(self) -> str | None:
        """The line of the place, and below it a caret; None where there is no place in a text."""
        if self.text is None or self.position is None:
            return None
        start = self.text.rfind("\n", 0, self.position) + 1
        end = self.text.find("\n", self.position)
        first = max(start, self.position - _EXCERPT)
        last = min(len(self.text) if end < 0 else end, self.position + _EXCERPT)
        line = "".join(char if char.isprintable() else " " for char in self.text[first:last])
        return f"  {line}\n  {' ' * (self.position - first)}^"

    def at(self, pointer: object) -> GrammarError:
        """The same error placed at a JSON pointer, unless it already has one."""
        return self if self.pointer is not None else self._with(pointer=pointer)

    def within(self, text: str) -> GrammarError:
        """The same error with the text that its position counts in."""
        return self._with(text=text)

    def _with(self, **changed: object) -> GrammarError:
        own = {"pointer": self.pointer, "position": self.position, "expected": self.expected, "text": self.text}
        return type(self)(self.reason, **{**own, **changed})  # pyright: ignore[reportArgumentType]


_EXCERPT = 40  # characters shown on each side of a place


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
