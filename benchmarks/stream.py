"""What Kafka and Faust cost: events per second through a worker, against the same engine called directly.

Both take in the same facts and queries of ICEWS14's test period, in batches of the same size, one after the other.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

import orjson

from adatkg_core.events import Fact, Tick
from adatkg_core.messages import Question, decode_event
from adatkg_core.storage import Bundle, Saved
from streams.embedded_broker import Broker
from streams.kafka import Connection, Record, Topics
from streams.settings import StreamSettings

from .results import tell
from .untrained import GRAPH, Place, icews14, untrained

DAYS = 110  # the whole test period: what comes with a start, as loading the text encoder, counts for little
WARM = 0.2  # share of the events that counts for neither: caches fill, the graph is loaded


def main() -> None:
    """Both ways, and their ratio."""
    dataset = icews14()
    bundle, state = untrained(dataset, "untrained", seed=1)
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker", port=0) as broker:
        place = Place(Path(name), Connection(broker.bootstrap), Topics())
        place.store.put(GRAPH, bundle, state)
        place.store.make_present(GRAPH, bundle.version)
        place.publish_test(dataset, DAYS)
        events = place.records(place.topics.events)
        alone = _alone(bundle, state, events)
        streamed = _streamed(place, events)
    print(
        orjson.dumps({"engine_alone": round(alone, 1), "through_kafka": round(streamed, 1)}).decode(), file=sys.stderr
    )
    tell("stream_to_engine_rate", streamed / alone)


def _alone(bundle: Bundle, state: Saved, records: list[Record]) -> float:
    """Events per second of the engine: decoded events in, predictions out, nothing else."""
    engine = bundle.engine()
    engine.restore(state.snapshot)
    events = [decode_event(record.value, None) for record in records]
    size, warm = StreamSettings().batch_events, int(WARM * len(events))
    began = 0.0
    for start in range(0, len(events), size):
        if began == 0.0 and start >= warm:
            began, first = time.perf_counter(), start
        for kind, run in groupby(events[start : start + size], type):
            assert kind is not Tick
            some = list(run)
            engine.observe([event for event in some if isinstance(event, Fact)])
            engine.predict([event.query for event in some if isinstance(event, Question)])
    return (len(events) - first) / (time.perf_counter() - began)


def _streamed(place: Place, events: list[Record]) -> float:
    """Events per second of a worker that finds the whole stream in the log, by the times of its predictions."""
    queries = sum(b'"kind":"query"' in (record.value or b"") for record in events)
    with place.worker() as worker:
        while place.count(place.topics.predictions) < queries:
            assert worker.poll() is None, place.worker_log.read_text()
            time.sleep(2.0)
    predictions = place.records(place.topics.predictions)
    made = [(orjson.loads(record.value or b"")["source"]["offset"], record.timestamp) for record in predictions]
    counted = sorted(one for one in made if one[0] >= WARM * len(events))
    (first, began), (last, ended) = counted[0], counted[-1]
    return float((last - first) * 1000 / (ended - began))


if __name__ == "__main__":
    main()
