"""What is remembered within a budget of bytes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Values by key, in two generations: what was not used while the younger one filled up is forgotten. A hit costs one
    dictionary lookup, with no bookkeeping.

    Args:
        max_bytes: budget; a value of its own may exceed it.
    """

    def __init__(self, max_bytes: int):
        self._half = max_bytes // 2
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._young_bytes = self._old_bytes = 0
        self._sizes: dict[K, int] = {}

    @property
    def num_bytes(self) -> int:
        return self._young_bytes + self._old_bytes

    def __len__(self) -> int:
        return len(self._sizes)

    def get(self, key: K) -> V | None:
        value = self._young.get(key)
        if value is None and self._old:
            value = self._old.pop(key, None)
            if value is not None:
                size = self._sizes[key]
                self._old_bytes -= size
                self._keep(key, value, size)
        return value

    def put(self, key: K, value: V, num_bytes: int) -> None:
        """Remembers a value under a key that `get` just did not find."""
        self._sizes[key] = num_bytes
        self._keep(key, value, num_bytes)

    def _keep(self, key: K, value: V, num_bytes: int) -> None:
        if self._young and self._young_bytes + num_bytes > self._half:
            for forgotten in self._old:
                del self._sizes[forgotten]
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0
        self._young[key] = value
        self._young_bytes += num_bytes
