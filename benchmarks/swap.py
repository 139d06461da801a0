"""What a swap under load costs: the longest that it has the device at a time, against one batch of the live stream.

A worker has a backlog, so every batch is full; while it works, another bundle with its state is made present. It
catches up with the log beside the present one, both get the device in turn, and the log names it behind the
backlog. So this step is what a query waits for a swap at most.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import orjson
from prometheus_client.parser import text_string_to_metric_families

from adatkg_core.messages import Announcement
from streams.embedded_broker import Broker
from streams.kafka import Connection, Topics, announce

from .results import tell
from .untrained import GRAPH, Place, icews14, untrained

DAYS = 60  # of the test period: some minutes of work
FIRST, SECOND = "untrained-0", "untrained-1"
WARM = 10  # batches that do not count
BATCHES = 20  # whose mean time is that of a batch


def main() -> None:
    """Swap once; the longest step counts."""
    dataset = icews14()
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker", port=0) as broker:
        place, port = Place(Path(name), Connection(broker.bootstrap), Topics()), _free_port()
        for seed, version in enumerate((FIRST, SECOND)):
            place.store.put(GRAPH, *untrained(dataset, version, seed))
        place.store.make_present(GRAPH, FIRST)
        place.publish_test(dataset, DAYS)
        with place.worker(port):
            began = _batches(port, WARM)
            ended = _batches(port, int(began[0]) + BATCHES)
            batch = (ended[1] - began[1]) / (ended[0] - began[0])
            assert ended[2] > 0, "the backlog is done before the swap begins: the figure would not be one under load"
            swap = _swap(place, SECOND)
    said: dict[str, Any] = {"batch_seconds": round(batch, 4), "backlog": ended[2], "swap": swap}
    print(orjson.dumps(said).decode(), file=sys.stderr)
    tell("swap_pause_to_batch", swap["longest_step"] / batch)


def _swap(place: Place, version: str) -> dict[str, float]:
    """Make a bundle present; what the worker says once it stands ready, behind which the backlog still is."""
    place.store.make_present(GRAPH, version)
    announce(
        place.connection,
        place.topics,
        Announcement(GRAPH, version, "present", "a benchmark", forced=False, verdict=None),
    )
    while True:
        for line in place.worker_log.read_bytes().splitlines():
            if b'"model_event_written"' in line and version.encode() in line:
                said = orjson.loads(line)
                return {name: said[name] for name in ("seconds", "longest_step")}
        time.sleep(0.2)


def _batches(port: int, at_least: int) -> tuple[float, float, float]:
    """Batches so far, the seconds that they took, and the events that still wait; once there are `at_least` so many."""
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
                text = page.read().decode()
        except urllib.error.URLError:
            text = ""  # it has not come up yet
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        count, seconds, lag = (
            sum(one.value for one in samples if one.name == name)
            for name in ("adatkg_apply_seconds_count", "adatkg_apply_seconds_sum", "adatkg_lag_events")
        )
        if samples and count >= at_least:
            return count, seconds, lag
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    main()
