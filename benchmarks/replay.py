"""How fast ICEWS14 with all its queries is published into a broker on the same machine, until all is acknowledged.

Beside it the same client sends the same messages, made beforehand: message by message, as its manual does it, and told
beside that in batches filled by hand, as the replay fills them while it makes the messages.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from adatkg_core.datasets import load_dataset
from replay import Choice, ReplaySequence, publish
from replay.publisher import NUMBER_HEADER, REPLAY_HEADER
from streams.embedded_broker import Broker
from streams.kafka import Connection, Topics, ensure_topics, partition_of

from .results import tell

BATCH_BYTES = 256 << 10  # as a replay's
RUNS = 3  # of each, in turn; the middle one counts: a new broker takes the first more slowly
ONE_BY_ONE = 60_000  # messages that are sent one by one
Messages = list[tuple[bytes, list[tuple[str, bytes]]]]
Send = Callable[[Any, str, bytes, int, Messages], Awaitable[None]]


def main() -> None:
    """Replay as several graphs, one after the other, each beside a bare producer."""
    dataset, topics = load_dataset("icews14"), Topics()
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "broker", port=0) as broker:
        connection = Connection(broker.bootstrap)
        ensure_topics(connection, topics)
        rates: dict[str, list[float]] = {"replay": [], "one by one": [], "in batches": []}
        for run in range(RUNS):
            sequence = ReplaySequence(dataset, Choice(f"icews14-{run}", queries=True))
            rates["replay"].append(publish(sequence, connection, topics.events).messages_per_second)
            made = _made(sequence)
            rates["one by one"].append(asyncio.run(_rate(connection, _one_by_one, made[:ONE_BY_ONE])))
            rates["in batches"].append(asyncio.run(_rate(connection, _in_batches, made)))
    replay, bare, batches = (sorted(some)[RUNS // 2] for some in rates.values())
    tell("replay_messages_per_second", replay)
    tell("replay_to_bare_producer", replay / bare, bare_per_second=bare, batches_by_hand_per_second=batches)


def _made(sequence: ReplaySequence) -> Messages:
    digest = (REPLAY_HEADER, sequence.digest.encode())
    values = (value for _, messages in sequence.blocks(0) for value in messages)
    return [(value, [digest, (NUMBER_HEADER, b"%d" % number)]) for number, value in enumerate(values)]


async def _rate(connection: Connection, send: Send, made: Messages) -> float:
    """Messages a second, until all is acknowledged."""
    topic, key = Topics().events, b"bare"
    options = connection.producer() | {"acks": "all", "enable_idempotence": True, "max_batch_size": BATCH_BYTES}
    async with AIOKafkaProducer(**options) as producer:
        partition = partition_of(key.decode(), len(await producer.partitions_for(topic)))
        began = time.perf_counter()
        await send(producer, topic, key, partition, made)
        return len(made) / (time.perf_counter() - began)


async def _one_by_one(producer: Any, topic: str, key: bytes, partition: int, made: Messages) -> None:
    for value, headers in made:
        await producer.send(topic, value, key, partition, headers=headers)
    await producer.flush()


async def _in_batches(producer: Any, topic: str, key: bytes, partition: int, made: Messages) -> None:
    """One batch on its way, and one that is being filled."""
    flying, batch = None, producer.create_batch()
    for value, headers in made:
        if batch.append(timestamp=None, key=key, value=value, headers=headers) is None:
            if flying is not None:
                await flying
            flying = await producer.send_batch(batch, topic, partition=partition)
            batch = producer.create_batch()
            batch.append(timestamp=None, key=key, value=value, headers=headers)
    await (await producer.send_batch(batch, topic, partition=partition))


if __name__ == "__main__":
    main()
