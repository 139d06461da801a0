"""Publishes a sequence to the events' topic, as fast as the broker takes it or at a pace.

The next batch is handed to the producer when the one before is acknowledged, and is built meanwhile. So whatever
ends a replay, the log holds an unbroken beginning of its sequence; the idempotent producer sees to it that a batch
which had to be sent again is there once. Batches are filled through aiokafka, whose record builder is compiled:
message by message, kafka-python's producer takes several times as long.
"""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import Future
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from adatkg_core.errors import AdatkgError
from replay.sequence import ReplaySequence
from streams.kafka import Connection, partition_of, unreachable

REPLAY_HEADER, NUMBER_HEADER = "replay", "seq"

PATIENCE = 600.0  # seconds without an acknowledgement before a broker counts as gone for good
_PATIENCE_AT_FIRST = 60.0  # the same before anything is published
_PATIENCE_WHEN_STOPPED = 10.0  # the same once somebody wants to stop and is waiting
_WORRY = 10.0  # seconds without an answer before that is told
_RETRY_MS = 300_000  # one request may take so long; it is also how long a partition may be without a leader
_BATCH_BYTES = 256 << 10
_SLICE = 64  # messages between two turns of the event loop, which sends the batch before meanwhile
_STEP = 0.05  # seconds until a wait looks whether to stop
_REPORT_EVERY = 0.1  # seconds

Report = Callable[[int, int], None]
Hold = Callable[[], bool]
log = structlog.get_logger()


@dataclass(frozen=True)
class Published:
    """What a replay did: the messages from `start` up to but not including `end` are in the log."""

    start: int
    end: int
    total: int
    facts: int
    queries: int
    seconds: float
    lag_seconds: float  # how far behind the schedule the last time went out
    last_time: int | None
    interrupted: bool

    @property
    def messages(self) -> int:
        """How many were published."""
        return self.end - self.start

    @property
    def messages_per_second(self) -> float:
        """The rate, acknowledgements included."""
        return self.messages / self.seconds if self.seconds else 0.0


def publish(
    sequence: ReplaySequence,
    connection: Connection,
    topic: str,
    *,
    start: int = 0,
    speed: float | None = None,
    stop: threading.Event | None = None,
    report: Report = lambda done, total: None,
    hold: Hold = lambda: False,
) -> Published:
    """Publish the messages from `start` on, `speed` ticks a second or all at once, until done or `stop` is set.

    With a speed, no further time begins while `hold` says so, and the schedule moves back by as much. Raises
    AdatkgError when a message cannot be delivered; all before it are in the log then, and none behind it.
    """
    return asyncio.run(_publish(sequence, connection, topic, start, speed, stop or threading.Event(), report, hold))


async def _publish(
    sequence: ReplaySequence,
    connection: Connection,
    topic: str,
    start: int,
    speed: float | None,
    stop: threading.Event,
    report: Report,
    hold: Hold,
) -> Published:
    total, lag, told = len(sequence), 0.0, 0.0

    def tell() -> None:
        nonlocal told
        if (clock := time.perf_counter()) - told > _REPORT_EVERY:
            told = clock
            report(outbox.number, total)

    async with _producer(connection, stop) as producer:
        try:
            partitions = await _patiently(asyncio.ensure_future(producer.partitions_for(topic)), stop)
        except (KafkaError, TimeoutError) as error:
            raise AdatkgError(f"topic {topic}: nothing can be learned of it ({error!r}); check the broker") from error
        partition = partition_of(sequence.graph, len(partitions))
        outbox = _Outbox(producer, topic, partition, sequence, start, stop)
        began = schedule = time.perf_counter()
        first = sequence.time_of(start) if start < total else 0
        for now, messages in sequence.blocks(start):
            if speed is not None:
                lag = await outbox.wait_until(schedule + (now - first) / speed)
                schedule += await outbox.wait_while(hold)
            for value in messages:
                if not outbox.put(value):
                    await outbox.send()
                    if stop.is_set():
                        break
                    outbox.put(value)
                if not outbox.number % _SLICE:
                    await asyncio.sleep(0)
                    if stop.is_set():
                        break
                    tell()
            if stop.is_set():
                break
            tell()
        else:
            await outbox.send()
        await outbox.land()
        seconds = time.perf_counter() - began
    end = outbox.landed
    report(end, total)
    facts, queries = sequence.counts(start, end)
    last_time = sequence.time_of(end - 1) if end > start else None
    return Published(start, end, total, facts, queries, seconds, lag, last_time, interrupted=end < total)


class _Outbox:
    """One batch that is being filled and at most one on its way."""

    def __init__(
        self, producer: Any, topic: str, partition: int, sequence: ReplaySequence, start: int, stop: threading.Event
    ) -> None:
        self.number = start  # of the message that is put next
        self.landed = start  # all messages before this one are in the log
        self._total = len(sequence)
        self._key = sequence.graph.encode()
        self._replay = (REPLAY_HEADER, sequence.digest.encode())
        self._producer, self._topic, self._partition, self._stop = producer, topic, partition, stop
        self._batch = producer.create_batch()
        self._flying: Future[Any] | None = None
        self._flying_end = start

    def put(self, value: bytes) -> bool:
        """Add the next message to the batch; False when it is full and must be sent first."""
        headers = [self._replay, (NUMBER_HEADER, b"%d" % self.number)]
        if self._batch.append(timestamp=None, key=self._key, value=value, headers=headers) is None:
            return False
        self.number += 1
        return True

    async def send(self) -> None:
        """Hand the batch to the producer as soon as the one before has landed, unless told to stop meanwhile."""
        await self.land()
        if self._batch.record_count() and not self._stop.is_set():
            batch, self._batch = self._batch, self._producer.create_batch()
            batch.close()
            try:
                self._flying = await self._producer.send_batch(batch, self._topic, partition=self._partition)
            except KafkaError as error:
                raise self._failure(error) from error
            self._flying_end = self.number

    async def land(self) -> None:
        """Wait until what is on its way is acknowledged."""
        if self._flying is not None:
            try:
                await _patiently(self._flying, self._stop, PATIENCE)
            except (KafkaError, TimeoutError) as error:
                raise self._failure(error) from error
            self._flying, self.landed = None, self._flying_end

    async def wait_until(self, due: float) -> float:
        """Wait for this moment of `perf_counter` and meanwhile send what there is; returns how late it is."""
        while (left := due - time.perf_counter()) > 0 and not self._stop.is_set():
            if self._flying is None or self._flying.done():
                await self.send()
            if self._flying is None:
                await asyncio.sleep(min(left, _STEP))
            else:
                await asyncio.wait((self._flying,), timeout=min(left, _STEP))
        return max(0.0, time.perf_counter() - due)

    async def wait_while(self, hold: Hold) -> float:
        """Wait while it says so and meanwhile send what there is; returns how many seconds that took."""
        began = time.perf_counter()
        while hold() and not self._stop.is_set():
            await self.wait_until(time.perf_counter() + _STEP)
        return time.perf_counter() - began

    def _failure(self, error: Exception) -> AdatkgError:
        why = str(error) if isinstance(error, TimeoutError) else type(error).__name__
        place = f"{self._topic}, partition {self._partition}"
        return AdatkgError(
            f"{place}: message {self.landed} of {self._total} could not be delivered ({why}); those before it are in "
            "the log. Mend the broker, then the same command with --resume goes on"
        )


async def _patiently(what: Future[Any], stop: threading.Event, patience: float = _PATIENCE_AT_FIRST) -> Any:
    """The result once it is there; raises TimeoutError after `patience` seconds, or sooner when told to stop."""
    began, worried = time.monotonic(), False
    while not what.done():
        await asyncio.wait((what,), timeout=_STEP)
        waited = time.monotonic() - began
        allowed = min(patience, _PATIENCE_WHEN_STOPPED) if stop.is_set() else patience
        if not what.done() and waited > allowed:
            what.cancel()
            raise TimeoutError(f"no answer for {allowed:.0f} s")
        if not worried and waited > _WORRY:
            worried = True
            log.warning("the broker does not answer, still trying", seconds=round(waited), patience=patience)
    return what.result()


@asynccontextmanager
async def _producer(connection: Connection, stop: threading.Event) -> AsyncIterator[Any]:
    producer = AIOKafkaProducer(
        **connection.producer(),
        client_id="adatkg-replay",
        enable_idempotence=True,
        acks="all",
        max_batch_size=_BATCH_BYTES,
        request_timeout_ms=_RETRY_MS,
    )
    try:
        try:
            await _patiently(asyncio.ensure_future(producer.start()), stop)
        except (KafkaError, OSError) as error:  # a TimeoutError is an OSError
            raise unreachable(connection, error) from error
        yield producer
    finally:
        # A batch that a lost broker never acknowledged would hold this up for ever.
        with suppress(TimeoutError, KafkaError):
            await asyncio.wait_for(producer.stop(), timeout=2.0)
