"""What is sent: a generated graph as events with questions in between, and what no worker can use."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from adatkg_core.datasets import Dataset
from adatkg_core.messages import encode_fact, encode_query, encode_tick

LARGE = (1 << 20) + 1  # bytes: one more than an event may have


@dataclass(frozen=True)
class Message:
    """An event, and how we call it."""

    graph: str
    id: str
    kind: str  # fact, query, tick, or garbage, which must become a dead letter
    value: bytes
    has_key: bool = True


class Messages:
    """The messages of one graph, a pure function of data set and seed: `past`, then `live` without an end."""

    def __init__(self, graph: str, dataset: Dataset, first: int, seed: int) -> None:
        """Ticks before `first` are the past, which first models know."""
        self.graph, self._dataset, self._first = graph, dataset, first
        self._chance = random.Random(f"stream {seed} {graph}")
        self._count = itertools.count()
        self._facts: dict[int, list[tuple[str, str, str]]] = {}
        for s, r, o, t in dataset.facts.tolist():
            self._facts.setdefault(t, []).append((dataset.entities[s], dataset.relations[r], dataset.entities[o]))

    def past(self) -> Iterator[Message]:
        """Facts that came before the first question."""
        for tick in sorted(tick for tick in self._facts if tick < self._first):
            for s, r, o in self._facts[tick]:
                yield self._message("fact", encode_fact(s, r, o, tick))

    def live(self) -> Iterator[Message]:
        """Facts of a tick in a mixed order, a few a tick late, with questions in between about their tick, the one
        after, and whatever is next; after its last tick the data set begins again, later."""
        ticks, chance = sorted(tick for tick in self._facts if tick >= self._first), self._chance
        for lap in itertools.count():
            for tick in ticks:
                now = tick + lap * (ticks[-1] + 1 - self._first)
                for s, r, o in chance.sample(self._facts[tick], len(self._facts[tick])):
                    if chance.random() < 0.4:
                        yield self._question(r, now, s=s)
                    yield self._message("fact", encode_fact(s, r, o, now - (chance.random() < 0.05)))
                    if chance.random() < 0.2:
                        yield self._question(r, now, o=o)
                    if chance.random() < 0.1:
                        when: tuple[int | str, ...] = (now + 1, "next", now - 1)
                        yield self._question(r, chance.choice(when), s=s)
                if chance.random() < 0.2:
                    yield self._message("tick", encode_tick(now))

    def _message(self, kind: str, value: bytes) -> Message:
        return Message(self.graph, f"{self.graph}-{next(self._count)}", kind, value)

    def _question(self, relation: str, t: int | str, *, s: str | None = None, o: str | None = None) -> Message:
        id, chance = f"{self.graph}-{next(self._count)}", self._chance
        rank_of = [chance.choice(self._dataset.entities)] if chance.random() < 0.3 else []
        return Message(self.graph, id, "query", encode_query(id, relation, t, s=s, o=o, k=5, rank_of=rank_of))


def garbage(graph: str, mark: str) -> list[Message]:
    """One of each sort of message that nobody can use, under ids with this mark."""
    values = [
        b"",
        b"\xff\xfe\x00",
        b"{",
        b"[]",
        b'{"v":1}',
        b'{"v":9,"kind":"tick","t":1}',
        b'{"v":1,"kind":"rumour","t":1}',
        b'{"v":1,"kind":"fact","s":"a","r":"b","t":1}',
        b'{"v":1,"kind":"fact","s":"a\\u0000b","r":"b","o":"c","t":1}',
        b'{"v":1,"kind":"query","id":"both","s":"a","o":"b","r":"c","t":1}',
        b'{"v":1,"kind":"query","id":"many","s":"a","r":"c","t":1,"k":-5}',
        b'{"v":1,"kind":"tick","t":"the day before yesterday"}',
        b'{"v":1,"kind":"tick","t":1e99}',
        b"x" * LARGE,
    ]
    made = [Message(graph, f"{mark}-{i}", "garbage", value) for i, value in enumerate(values)]
    return [*made, Message(graph, f"{mark}-keyless", "garbage", encode_tick(1), has_key=False)]
