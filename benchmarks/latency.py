"""How long a question takes from end to end while the stream lives: sent to Kafka, answered by a worker, read back.

100 facts and 100 questions a second arrive one by one, each question right behind a fact and about the next time.
Broker, worker and asker share the machine. The facts are ICEWS14's test period with its own times, so the state moves
on as it does in life.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from adatkg_core.messages import decode_prediction, encode_fact, encode_query
from streams.embedded_broker import Broker
from streams.kafka import Connection, Topics

from .results import tell
from .untrained import GRAPH, Place, icews14, untrained

RATE = 100  # facts a second, and as many questions
WARM, COUNTED = 10, 25  # seconds; until the text encoder is loaded beside, questions wait for a processor
PATIENCE = 120.0  # seconds for the first answer, and for the last


def main() -> None:
    """Bring the system up, ask, and see how late the answers were."""
    dataset = icews14()
    bundle, state = untrained(dataset, "untrained", seed=1)
    facts = dataset.facts[dataset.facts[:, 3] >= dataset.split_bounds[1]][: RATE * (WARM + COUNTED)].tolist()
    events = []
    for number, (s, r, o, t) in enumerate(facts):
        subject, relation = dataset.entities[s], dataset.relations[r]
        fact = encode_fact(subject, relation, dataset.entities[o], t)
        events.append((fact, encode_query(str(number), relation, t + 1, s=subject)))
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "broker", port=0) as broker:
        place = Place(Path(name), Connection(broker.bootstrap), Topics())
        place.store.put(GRAPH, bundle, state)
        place.store.make_present(GRAPH, bundle.version)
        with place.worker():
            seconds = asyncio.run(_asked(place, events))
    milliseconds = 1e3 * np.array(seconds[RATE * WARM :])
    tell("end_to_end_latency_p99_ms", float(np.quantile(milliseconds, 0.99)), p50_ms=float(np.median(milliseconds)))


async def _asked(place: Place, events: list[tuple[bytes, bytes]]) -> list[float]:
    """Seconds from sending each question to reading its answer."""
    producer = AIOKafkaProducer(**place.connection.producer())
    consumer = AIOKafkaConsumer(
        place.topics.predictions, **place.connection.client(), auto_offset_reset="earliest", fetch_max_wait_ms=1_000
    )
    await producer.start()
    await consumer.start()
    arrived: dict[str, float] = {}

    async def listen() -> None:
        async for record in consumer:
            arrived[decode_prediction(record.value).query["id"]] = time.perf_counter()

    async def answered(count: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(arrived) < count:
            assert time.monotonic() < deadline, place.worker_log.read_text()[-2000:]
            await asyncio.sleep(0.1)

    async def send(value: bytes) -> None:
        await producer.send(place.topics.events, value, key=GRAPH.encode())

    listening = asyncio.create_task(listen())
    try:
        await send(encode_query("first", "Consult", "next", s="Barack Obama"))
        await answered(1)
        sent, began = [], time.perf_counter()
        for number, (fact, question) in enumerate(events):
            await asyncio.sleep(max(0.0, began + number / RATE - time.perf_counter()))
            await send(fact)
            await asyncio.sleep(0.5 / RATE)
            sent.append(time.perf_counter())
            await send(question)
        await answered(1 + len(events))
    finally:
        listening.cancel()
        await producer.stop()
        await consumer.stop()
    return [arrived[str(number)] - then for number, then in enumerate(sent)]


if __name__ == "__main__":
    main()
