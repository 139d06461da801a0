from __future__ import annotations

import orjson

from adatkg_core.clock import Clock
from adatkg_core.events import Source
from adatkg_core.messages import encode_query
from adatkg_core.storage import Bundle
from adatkg_core.text import load_encoder
from streams.settings import StreamSettings
from streams.worker import Arrival, LiveGraph, Replica
from tests.support.fake_worker import GRAPH, HERE, RELATION, SUBJECT, fact
from tests.support.small_graph import shared_model


def test_an_answer_says_the_tick_that_was_asked_about_and_both_times_in_the_calendar() -> None:
    bundle = Bundle(shared_model("default"), GRAPH.relations, (), "v1", clock=Clock("2014-01-01"))
    encoder = load_encoder(shared_model("default").config.model.encoder)
    graph = LiveGraph("g", bundle, encoder, StreamSettings(), Replica())
    asked: list[int | str] = ["next", 4, "2014-01-03T12:00", -(2**31) + 1]
    value = [encode_query(f"q{number}", RELATION, time, s=SUBJECT) for number, time in enumerate(asked)]
    queries = [Arrival(Source(HERE, 1 + number), 0.0, b"g", one) for number, one in enumerate(value)]
    once, again = (graph.apply([fact(9), *queries]).answered for _ in range(2))
    found = [orjson.loads(one.body) for one in once]
    keys = ("tick", "time", "as_of", "as_of_time", "late")
    assert [tuple(one[key] for key in keys) for one in found] == [
        (10, "2014-01-11", 10, "2014-01-11", False),
        (4, "2014-01-05", 9, "2014-01-10", True),
        (2, "2014-01-03", 9, "2014-01-10", True),
        (-(2**31) + 1, None, 9, "2014-01-10", True),  # long before the calendar begins
    ]
    assert [one["query"]["t"] for one in found] == asked
    assert [one.body for one in once[1:]] == [one.body for one in again[1:]]
