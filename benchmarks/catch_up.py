"""How much faster a graph takes in a log silently, as after a restart or for a swap, than when it answers.

The same facts and queries of ICEWS14's test period with `live`, from their bytes in memory: what reading Kafka costs is
not in it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import sys
import time
from itertools import count

import orjson

from adatkg_core.events import Source
from adatkg_core.runtime import keep_freed_memory
from adatkg_core.text import load_encoder
from replay import Choice, ReplaySequence
from streams.settings import StreamSettings
from streams.worker import AT_ONCE, Arrival, LiveGraph, Replica

from .results import tell
from .untrained import GRAPH, icews14, untrained

DAYS, WARM_DAYS = 6, 2  # of the test period, one after the other: those that do not count come first


def main() -> None:
    """Answer, then follow silently from the same state."""
    keep_freed_memory()
    dataset = icews14()
    first, offset = dataset.split_bounds[1], count()
    sequence = ReplaySequence(dataset, Choice(GRAPH, first=first, last=first + WARM_DAYS + DAYS - 1, queries=True))
    arrivals: list[Arrival] = []
    warm = 0
    for day, messages in sequence.blocks():
        warm = len(arrivals) if day <= first + WARM_DAYS else warm
        arrivals += [Arrival(Source(0, next(offset)), 0.0, GRAPH.encode(), one) for one in messages]
    rates = {}
    for silent, size in ((False, StreamSettings().batch_events), (True, AT_ONCE)):
        bundle, saved = untrained(dataset, "untrained", seed=1)  # anew: a graph takes the tensors of a state over
        encoder = load_encoder(bundle.model.config.model.encoder)
        graph = LiveGraph(GRAPH, bundle, encoder, StreamSettings(), Replica(), saved)
        for start in range(0, warm, size):
            graph.apply(arrivals[start : min(start + size, warm)], silent=silent)
        began = time.perf_counter()
        for start in range(warm, len(arrivals), size):
            graph.apply(arrivals[start : start + size], silent=silent)
        rates[silent] = (len(arrivals) - warm) / (time.perf_counter() - began)
    told = {"events_per_second_answering": round(rates[False], 1), "events_per_second_silent": round(rates[True], 1)}
    print(orjson.dumps(told).decode(), file=sys.stderr)
    tell("catch_up_to_answering", rates[True] / rates[False])


if __name__ == "__main__":
    main()
