"""An event as the log has it, before anybody has looked into it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from adatkg_core.events import Source
from adatkg_core.storage import LastEvent
from streams.dead_letters import UNCHANGED
from streams.kafka import Record, header, origin_of


@dataclass(frozen=True, slots=True)
class Arrival:
    """Key and value as they came, where they stand, and when they came here."""

    source: Source
    arrived: float  # at this worker, by time.monotonic
    key: bytes | None
    value: bytes | None
    again: str | None = None  # put back unchanged: the reason for which it was refused before
    origin: Source | None = None  # moved here from another partition: where it stood
    headers: tuple[tuple[str, bytes], ...] = ()
    follows: int | None = None  # from this offset to its own the log has no event; None: from its own
    timestamp: int = 0  # milliseconds, as the log has it
    answered: int = 0  # below this offset of its partition all was answered before it was assigned to us

    @property
    def begins(self) -> int:
        """From this offset up to its own nothing is missing."""
        return self.source.offset if self.follows is None else self.follows

    def as_last(self) -> LastEvent:
        """By what it is known again as the last event in a state: another one at its place was sent at another time."""
        content = b"%d " % self.timestamp + (self.value or b"")
        return LastEvent(self.source.offset, hashlib.blake2b(content, digest_size=8).hexdigest())


def arrival_of(record: Record) -> Arrival:
    """A record of the log as an event that comes just now."""
    source = Source(record.partition, record.offset)
    return arrival_from(
        source, record.key, record.value, record.headers, time.monotonic(), timestamp=record.timestamp or 0
    )


def arrival_from(
    source: Source,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes]],
    arrived: float,
    follows: int | None = None,
    timestamp: int = 0,
    answered: int = 0,
) -> Arrival:
    """An event with what its headers say."""
    if not headers:
        return Arrival(source, arrived, key, value, follows=follows, timestamp=timestamp, answered=answered)
    again, origin = header(headers, UNCHANGED) or None, origin_of(headers)
    return Arrival(source, arrived, key, value, again, origin, tuple(headers), follows, timestamp, answered)
