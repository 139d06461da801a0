"""How fast ICEWS14 with all its queries is published into a broker on the same machine, until all is acknowledged."""

from __future__ import annotations

import tempfile
from pathlib import Path

from adatkg_core.datasets import load_dataset
from replay import Choice, ReplaySequence, publish
from streams.embedded_broker import Broker
from streams.kafka import Connection, Topics, ensure_topics

from .results import tell

RUNS = 3  # the middle one counts; a new broker takes the first more slowly


def main() -> None:
    """Replay as several graphs, one after the other."""
    dataset, topics = load_dataset("icews14"), Topics()
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "broker", port=0) as broker:
        connection = Connection(broker.bootstrap)
        ensure_topics(connection, topics)
        rates = []
        for run in range(RUNS):
            sequence = ReplaySequence(dataset, Choice(f"icews14-{run}", queries=True))
            rates.append(publish(sequence, connection, topics.events).messages_per_second)
    tell("replay_messages_per_second", sorted(rates)[RUNS // 2])


if __name__ == "__main__":
    main()
