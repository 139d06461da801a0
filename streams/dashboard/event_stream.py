"""Server-sent events to any number of readers up to a limit; one that does not keep up is dropped, never waited for."""

from __future__ import annotations

import asyncio
from collections import deque

READERS = 32  # at once
BACKLOG = 256  # messages that may wait for a reader
HEARTBEAT = b": still here\n\n"


class Reader:
    """One who listens; everybody holds the same bytes, so what waits for many costs as much as for one."""

    def __init__(self, backlog: int) -> None:
        self._waiting: deque[bytes] = deque()
        self._backlog = backlog
        self._news = asyncio.Event()
        self.ended = False

    def give(self, message: bytes) -> None:
        """Hand over a message; a reader for whom too many wait is at its end."""
        if len(self._waiting) >= self._backlog:
            self.end()
        elif not self.ended:
            self._waiting.append(message)
            self._news.set()

    def end(self) -> None:
        """No more comes; what waits is given up."""
        self.ended = True
        self._waiting.clear()
        self._news.set()

    async def take(self, patience: float) -> bytes | None:
        """All that waits, or a heartbeat when nothing came for so many seconds; None at the end."""
        if not self._waiting and not self.ended:
            self._news.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._news.wait()
            except TimeoutError:
                return HEARTBEAT
        if self.ended:
            return None
        taken = b"".join(self._waiting)
        self._waiting.clear()
        return taken


class EventStream:
    """Gives every message to all who listen, and waits for nobody."""

    def __init__(self, readers: int = READERS, backlog: int = BACKLOG) -> None:
        self._limit, self._backlog = readers, backlog
        self._readers: set[Reader] = set()
        self._closed = False

    @property
    def readers(self) -> int:
        """How many listen."""
        return len(self._readers)

    def join(self) -> Reader | None:
        """Listen from now on; None when there are enough already, or nothing will come any more."""
        if self._closed or len(self._readers) >= self._limit:
            return None
        reader = Reader(self._backlog)
        self._readers.add(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """Listen no more."""
        reader.end()
        self._readers.discard(reader)

    def send(self, event: str, data: bytes) -> None:
        """An event with its JSON, which has no line breaks."""
        message = b"event: %b\ndata: %b\n\n" % (event.encode(), data)
        for reader in tuple(self._readers):
            reader.give(message)
            if reader.ended:
                self._readers.discard(reader)

    def close(self) -> None:
        """Everybody's end has come."""
        self._closed = True
        for reader in tuple(self._readers):
            self.leave(reader)
