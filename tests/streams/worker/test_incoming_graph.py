"""An incoming graph takes in every event once, in order, never more than a batch at a time, and arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adatkg_core.events import Source
from streams.kafka import Record
from streams.worker import Arrival
from streams.worker.incoming_graph import IncomingGraph

MINE, OTHER = b"mine", b"another graph of the partition"


class Listener:
    """Stands in for a graph: remembers what it was given."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.largest = 0

    def apply(self, arrivals: Sequence[Arrival], *, silent: bool) -> None:
        assert silent, "others have answered"
        self.largest = max(self.largest, len(arrivals))
        self.offsets += [arrival.source.offset for arrival in arrivals]


@settings(max_examples=200)
@given(
    keys=st.lists(st.sampled_from([MINE, MINE, OTHER]), max_size=400),
    begin=st.integers(0, 400),
    live=st.integers(0, 400),
    batch=st.integers(1, 40),
    pace=st.lists(st.integers(0, 3), min_size=1, max_size=30),
)
def test_an_incoming_graph_arrives_with_the_whole_log_behind_it(
    keys: list[bytes], begin: int, live: int, batch: int, pace: list[int]
) -> None:
    begin, present = min(begin, len(keys)), min(live, len(keys))
    heard = Listener()
    graph: Any = heard
    incoming = IncomingGraph(graph, 0, begin, batch)
    offsets = incoming.next_range(present)
    for turn in range(2_000):
        # As many live batches as the pace says go by between two slices; the stream goes on, then it rests.
        for _ in range(max(pace[turn % len(pace)], turn > 1_000)):
            end = min(present + batch, len(keys))
            incoming.overhear([Arrival(Source(0, i), 0.0, MINE, b"") for i in range(present, end) if keys[i] == MINE])
            present = end
        records = [Record(0, i, 0, MINE, b"", ()) for i in range(offsets.start, offsets.end) if keys[i] == MINE]
        incoming.apply(offsets, records)
        if incoming.is_level(present):
            break
        offsets = incoming.next_range(present)
    else:
        raise AssertionError("it never arrived")
    assert heard.offsets == [i for i in range(begin, present) if keys[i] == MINE]
    assert heard.largest <= batch, "a prediction would have waited for more than a batch"
