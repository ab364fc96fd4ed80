"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
V = TypeVar("V")


class lazy(Generic[T, V]):  # a decorator, named like one
    """As `functools.cached_property`, but without the lock that it takes before Python 3.12, which costs more than most of what is
    asked for here. Two threads may compute a value twice, so only what is the same each time may be lazy."""

    def __init__(self, compute: Callable[[T], V]):
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: Any) -> lazy[T, V]: ...

    @overload
    def __get__(self, instance: T, owner: Any) -> V: ...

    def __get__(self, instance: T | None, owner: Any) -> lazy[T, V] | V:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
