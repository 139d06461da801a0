"""An event as the log has it, before anybody has looked into it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from adatkg_core.events import Source
from streams.dead_letters import UNCHANGED
from streams.kafka import Record


@dataclass(frozen=True, slots=True)
class Arrival:
    """Key and value as they came, where they stand, and when they came here."""

    source: Source
    arrived: float  # at this worker, by time.monotonic
    key: bytes | None
    value: bytes | None
    again: str | None = None  # put back unchanged: the reason for which it was refused before


def arrival_of(record: Record) -> Arrival:
    """A record of the log as an event that comes just now."""
    source = Source(record.partition, record.offset)
    return Arrival(source, time.monotonic(), record.key, record.value, record.header(UNCHANGED))
