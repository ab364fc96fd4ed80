"""What several automata hold together, found and weighed for as long as any of them does."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Entry(weakref.ref[V]):
    """A value that is held elsewhere."""

    __slots__ = ("key", "num_bytes")

    key: Hashable
    num_bytes: int


class Alive(Generic[K, V]):
    """Values by key, while others hold them. Thread-safe."""

    def __init__(self) -> None:
        self._entries: dict[K, _Entry[V]] = {}
        self._dead: deque[_Entry[V]] = deque()  # a value ends anywhere, also where the lock is held: its entry is dealt with later
        self._num_bytes = 0
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """Memory of all values that are alive, each counted once."""
        with self._lock:
            self._bury()
            return self._num_bytes

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def put(self, key: K, value: V, num_bytes: int) -> V:
        """The value of `key`: this one, unless another thread was faster."""
        with self._lock:
            self._bury()
            entry = self._entries.get(key)
            known = None if entry is None else entry()
            if known is not None:
                return known
            entry = self._entries[key] = _Entry(value, self._dead.append)
            entry.key, entry.num_bytes = key, num_bytes
            self._num_bytes += num_bytes
            return value

    def _bury(self) -> None:
        while self._dead:
            entry = self._dead.popleft()
            self._num_bytes -= entry.num_bytes
            if self._entries.get(entry.key) is entry:  # type: ignore[call-overload]
                del self._entries[entry.key]  # type: ignore[arg-type]
