"""An incoming graph takes in every event once, in order, never more than a slice at a time, and arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adatkg_core.events import Source
from streams.kafka import Record
from streams.worker import Arrival
from streams.worker.incoming_graph import SLICE, IncomingGraph

MINE, OTHER = b"mine", b"another graph of the partition"


class Listener:
    """Stands in for a graph: remembers what it was given."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.largest = 0

    def follow(self, arrivals: Sequence[Arrival]) -> None:
        self.largest = max(self.largest, len(arrivals))
        self.offsets += [arrival.source.offset for arrival in arrivals]


class Scene:
    """A log, a present graph that stands somewhere in it, and one that comes up beside it."""

    def __init__(self, keys: Sequence[bytes], begin: int, present: int, batch: int) -> None:
        self.keys, self.present, self.batch = keys, present, batch
        self.heard = Listener()
        graph: Any = self.heard
        self.incoming = IncomingGraph(graph, 0, begin, batch)

    def live_batch(self) -> None:
        end = min(self.present + self.batch, len(self.keys))
        mine = [i for i in range(self.present, end) if self.keys[i] == MINE]
        self.incoming.overhear([Arrival(Source(0, i), 0.0, MINE, b"") for i in mine])
        self.present = end

    def slices(self) -> int:
        """What is read at once goes in slice by slice; how many slices that were."""
        parts = list(self.incoming.next_range(self.present).cut(self.incoming.slice))
        for part in parts:
            mine = [i for i in range(part.start, part.end) if self.keys[i] == MINE]
            self.incoming.apply(part, [Record(0, i, 0, MINE, b"", ()) for i in mine])
        return len(parts)


@settings(max_examples=200)
@given(
    keys=st.lists(st.sampled_from([MINE, MINE, OTHER]), max_size=400),
    begin=st.integers(0, 400),
    live=st.integers(0, 400),
    batch=st.integers(1, 40),
    pace=st.lists(st.integers(0, 3), min_size=1, max_size=30),
)
def test_an_incoming_graph_follows_with_the_whole_log_behind_it(
    keys: list[bytes], begin: int, live: int, batch: int, pace: list[int]
) -> None:
    begin = min(begin, len(keys))
    scene = Scene(keys, begin, min(live, len(keys)), batch)
    turn = 0
    while not scene.incoming.follows:
        # As many live batches as the pace says go by between two slices.
        for _ in range(pace[turn % len(pace)]):
            scene.live_batch()
        scene.slices()
        turn += 1
        assert turn < 1_000, "it never arrived"
    for _ in range(len(keys)):
        scene.live_batch()
    assert scene.heard.offsets == [i for i in range(begin, len(keys)) if keys[i] == MINE]
    assert scene.heard.largest <= SLICE * batch, "a prediction would have waited for more than that"


def test_it_reaches_a_present_graph_that_never_rests() -> None:
    scene = Scene([MINE] * 10_000, 0, 1_000, 8)
    while not scene.incoming.follows:
        for _ in range(scene.slices()):
            scene.live_batch()
        assert scene.present < 10_000, "it came up only when the backlog ended"
    assert scene.heard.offsets == list(range(scene.present))
