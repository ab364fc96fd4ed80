"""When requests end at the latest. Plain numbers: whoever asks brings the time."""

from __future__ import annotations

import heapq


class Deadlines:
    """The deadlines of open requests, whatever they wait for. O(log n) for each."""

    def __init__(self) -> None:
        self._open: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._open)

    def add(self, request_id: str, deadline: float) -> None:
        """A request that has none yet is to end by then."""
        self._open[request_id] = deadline
        heapq.heappush(self._heap, (deadline, request_id))

    def discard(self, request_id: str) -> None:
        """The request has ended, or never had a deadline."""
        if self._open.pop(request_id, None) is not None and len(self._heap) > 2 * len(self._open) + 64:
            self._heap = [(deadline, request_id) for request_id, deadline in self._open.items()]
            heapq.heapify(self._heap)

    def expired(self, now: float) -> list[str]:
        """The requests whose time is over, the one that was due first before the others. They have no deadline any more."""
        over = []
        while self._heap and self._heap[0][0] <= now:
            deadline, request_id = heapq.heappop(self._heap)
            if self._open.get(request_id) == deadline:
                del self._open[request_id]
                over.append(request_id)
        return over

    def until_next(self, now: float) -> float | None:
        """Seconds until the next one is due, 0 if it is; None if nothing is due ever. May be too few where requests have ended."""
        return max(0.0, self._heap[0][0] - now) if self._heap else None
