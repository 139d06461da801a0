"""Where a replay that was stopped or killed goes on: the log itself knows."""

from __future__ import annotations

import time
from collections.abc import Iterable

from adatkg_core.errors import AdatkgError
from replay.publisher import NUMBER_HEADER, REPLAY_HEADER
from replay.sequence import ReplaySequence
from streams.kafka import Connection, LogReader, Record, open_log, partition_of

STILL = 1.0  # seconds in which nothing of the replay may come: the last request of a killed one may still be landing
_BUSY = 30.0  # seconds after which what keeps coming is no last request but another replay
_FIRST_RANGE = 1_000  # offsets read first, from the end; each further range is longer
_GROWTH = 4


def resume_position(sequence: ReplaySequence, connection: Connection, topic: str) -> int:
    """The number of the first message that is not in the log; 0 when none is."""
    with open_log(connection, topic) as log:
        partition = partition_of(sequence.graph, len(log.partitions()))
        first, end = log.bounds(partition)
        found = _from_the_end(log, partition, first, end, sequence)
        deadline = time.monotonic() + _BUSY
        while True:
            time.sleep(STILL)
            _, new_end = log.bounds(partition)
            later = _last(log.read(partition, end, new_end), sequence)
            if later is None:
                return 0 if found is None else found + 1
            if time.monotonic() > deadline:
                raise AdatkgError(
                    f"{topic}, partition {partition}: another program is publishing this replay of {sequence.graph}; "
                    "stop it or wait for its end"
                )
            found, end = later, new_end


def _from_the_end(log: LogReader, partition: int, first: int, end: int, sequence: ReplaySequence) -> int | None:
    size = _FIRST_RANGE
    while end > first:
        begin = max(first, end - size)
        found = _last(log.read(partition, begin, end), sequence)
        if found is not None:
            return found
        end, size = begin, size * _GROWTH
    return None


def _last(records: Iterable[Record], sequence: ReplaySequence) -> int | None:
    """The number of the replay's last message among these; other graphs and replays share the partition."""
    key, found = sequence.graph.encode(), None
    for record in records:
        if record.key == key and record.header(REPLAY_HEADER) == sequence.digest:
            number = record.header(NUMBER_HEADER)
            if number is not None and number.isdecimal():
                found = int(number)
    return found
