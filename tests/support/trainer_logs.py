"""A log in memory with the reader's interface, which counts what is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adatkg_core.clock import Clock
from adatkg_core.datasets import Dataset
from adatkg_core.messages import encode_fact
from streams.kafka import LogReader, Record

GRAPH = "world"


class MemoryLog(LogReader):
    """One partition; `first` is what retention has left."""

    def __init__(self, values: Iterable[bytes] = (), key: str = GRAPH) -> None:
        self.records: list[Record] = []
        self.first, self.seen = 0, list[int]()
        self.append(values, key)

    def append(self, values: Iterable[bytes], key: str = GRAPH) -> None:
        for value in values:
            offset = len(self.records)
            self.records.append(Record(0, offset, 1_000 + offset, key.encode(), value, ()))

    def partitions(self) -> list[int]:
        return [0]

    def bounds(self, partition: int) -> tuple[int, int]:
        return self.first, len(self.records)

    def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
        for record in self.records[max(start, self.first) : end]:
            self.seen.append(record.offset)
            yield record


def messages(graph: Dataset, first: int = 0, last: int | None = None) -> list[bytes]:
    """The facts of a data set as they stand in the log."""
    rows = graph.facts[first:last].tolist()
    return [encode_fact(graph.entities[s], graph.relations[r], graph.entities[o], t) for s, r, o, t in rows]


def named(graph: Dataset) -> list[tuple[str, str, str, int]]:
    """The facts of a data set by name, in order."""
    return [(graph.entities[s], graph.relations[r], graph.entities[o], t) for s, r, o, t in graph.facts.tolist()]


DAYS = Clock()
