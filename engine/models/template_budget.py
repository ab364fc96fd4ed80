"""What one rendering of a chat template may cost.

A template comes with a model and is as untrusted as the messages it formats. Jinja's sandbox keeps it away from Python's
internals; a budget keeps it from running for ever or filling the memory. Work is counted where a template can cause
any: loop passes, calls, filters, operators, comparisons and output.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from jinja2.utils import Namespace

from ..errors import ChatTemplateError

_HUGE_FIELD = re.compile(r"\d{6,}|%[^a-zA-Z%]*\*|\{[^{}]*:[^{}]*\{")  # a wide field, or one whose width is an argument


_ITEM_WORK = 32  # an item of a list costs as much time as about so many characters


@dataclass(frozen=True, kw_only=True)
class TemplateLimits:
    """Ceilings of one rendering.

    Attributes:
        max_source_chars: length of the template.
        max_steps: loop passes, calls and operations.
        max_work_chars: characters of all intermediate results together, items of lists counted as 32 ...
        work_per_input_char: ... plus so many for each character of the messages and tools.
        max_number: largest magnitude of a number a template may compute or pass.
    """

    max_source_chars: int = 1_000_000
    max_steps: int = 1_000_000
    max_work_chars: int = 32_000_000
    work_per_input_char: int = 256
    max_number: int = 1 << 53


class Budget:
    """What is left for one rendering. Every method raises `ChatTemplateError` when it is used up."""

    def __init__(self, limits: TemplateLimits, input_chars: int):
        self._steps_left = limits.max_steps
        self._work_left = limits.max_work_chars + limits.work_per_input_char * input_chars
        self._max_number = limits.max_number

    def step(self, count: int = 1) -> None:
        self._steps_left -= count
        if self._steps_left < 0:
            raise ChatTemplateError("the chat template takes too many steps")

    def work(self, size: int) -> None:
        """Account for `size` characters or items that are about to exist, or that exist."""
        self._work_left -= size
        if self._work_left < 0:
            raise ChatTemplateError("the chat template produces too much text")

    def spend(self, value: Any) -> Any:
        """Account for a value, with everything in it, and give it back."""
        self.step()
        if isinstance(value, str):
            self.work(len(value))
        elif isinstance(value, (list, tuple, dict, KeysView, ValuesView, ItemsView)):
            self._spend_tree(value)
        elif isinstance(value, int) and abs(value) > self._max_number:
            raise ChatTemplateError("the chat template computes with numbers that are too large")
        return value

    def print(self, value: Any) -> Any:
        """Account for a value that is about to become text, and give it back."""
        if isinstance(value, Namespace):
            raise ChatTemplateError("the chat template prints a namespace")
        return self.spend(value)

    def _spend_tree(self, value: Any) -> None:
        """A list can hold another one many times over, so what counts is how large it is when written out."""
        pending = [value]
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                self.work(len(item) + 1)
            elif isinstance(item, (list, tuple, KeysView, ValuesView, ItemsView)):
                self.work(_ITEM_WORK * len(item))
                pending.extend(item)
            elif isinstance(item, dict):
                self.work(2 * _ITEM_WORK * len(item))
                pending.extend(item)
                pending.extend(item.values())
            elif isinstance(item, Namespace):
                raise ChatTemplateError("the chat template prints a namespace")

    def loop(self, iterable: Any) -> Any:
        """An iterable whose passes are accounted for: at once where the length is known, else one by one."""
        if isinstance(iterable, (str, list, tuple, dict, range)):
            self.step(len(iterable))
            return iterable
        return self._passes(iterable)

    def _passes(self, iterable: Iterable[Any]) -> Iterator[Any]:
        for item in iterable:
            self.step()
            yield item

    def widths(self, values: Iterable[Any], ceiling: int) -> None:
        """Refuse numbers above `ceiling`, where they state how wide or how often."""
        if any(isinstance(value, (int, float)) and abs(value) > ceiling for value in values):
            raise ChatTemplateError("the chat template asks for a width that is too large")

    def format(self, pattern: Any) -> None:
        """Refuse a format string with a field wider than 99,999, or one whose width is an argument."""
        if isinstance(pattern, str) and _HUGE_FIELD.search(pattern):
            raise ChatTemplateError("the chat template formats a field that is too wide")


_current: ContextVar[Budget] = ContextVar("template_budget")


def current_budget() -> Budget:
    """The budget of the rendering in progress in this context."""
    return _current.get()


def set_budget(budget: Budget) -> Any:
    """Start a rendering; give the result to `reset_budget` at its end."""
    return _current.set(budget)


def reset_budget(token: Any) -> None:
    _current.reset(token)


def count_chars(value: Any) -> int:
    """Characters of all strings in a JSON-like value; iterative, so that depth does not matter."""
    total = 0
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        else:
            total += 1
    return total
