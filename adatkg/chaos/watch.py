"""Looks at answers and dead letters as they come, to know when there is nothing to wait for."""

from __future__ import annotations

from collections.abc import Collection

from adatkg.chaos.checker import answers_of
from adatkg.chaos.eras import Mark
from adatkg.chaos.evidence import letters_of
from adatkg.chaos.topics import Follower
from streams.kafka import Topics

Awaited = tuple[tuple[int, int], Mark]  # an event by its place and its mark


class Watch:
    """Reads the topics of answers and dead letters from their beginning."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._letters = topics.deadletter
        self._follower = Follower(bootstrap, topics.predictions, topics.deadletter)
        self._came: set[Awaited] = set()

    def missing(self, wanted: Collection[Awaited]) -> set[Awaited]:
        """Those of these events to which nothing came so far."""
        for topic, record in self._follower.new():
            found = letters_of([record]) if topic == self._letters else answers_of([record.value or b""])
            self._came |= found.keys()
        return set(wanted) - self._came

    def close(self) -> None:
        """Look no more."""
        self._follower.close()
