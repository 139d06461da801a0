"""What the worker sends: gathered into batches, sent again until a broker has it, counted until it is durable."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from adatkg_core.errors import AdatkgError
from adatkg_core.events import Source
from adatkg_core.runtime import Retry
from streams.kafka.connection import Connection
from streams.kafka.partitions import partition_of
from streams.kafka.topics import LARGEST_MESSAGE

BATCH_BYTES = 256 << 10
IN_FLIGHT_BYTES = 32 << 20  # beyond this the worker waits for the brokers rather than fill its memory
REQUEST_MS = 120_000  # a partition may be without a leader for a while; what expires is sent again anyway
STOP_WITHIN = 5.0  # seconds for the producer to end; what it still holds is made again from the log
PAUSE = 1.0  # seconds before a batch that failed is sent again
Headers = list[tuple[str, bytes]]
Instead = Callable[[str, "Message", KafkaError], tuple[str, int, list["Message"]] | None]
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Message:
    """Something to send."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    source: Source | None = None  # the event of the log that it comes of

    @property
    def size(self) -> int:
        """About how many bytes it takes on the way."""
        return 64 + len(self.key or b"") + len(self.value or b"") + sum(len(n) + len(v) for n, v in self.headers)


class Producer:
    """A producer that never gives up: a message handed over is delivered at least once while the worker lives."""

    def __init__(self, connection: Connection, instead: Instead = lambda topic, message, error: None) -> None:
        """`instead` says what goes out in place of a message that brokers refuse: where to, and what, if anything."""
        self._connection, self._instead = connection, instead
        self._retry = Retry("send_failed", KafkaError, PAUSE, level="warning")
        self._producer: AIOKafkaProducer | None = None
        self._partitions: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._latest: dict[tuple[str, int], asyncio.Task[None]] = {}  # of what is sent in order, by partition
        self._bytes = 0
        self._failure: BaseException | None = None  # of a delivery, other than brokers being away
        self._room = asyncio.Event()
        self._room.set()

    async def start(self, topics: Iterable[str]) -> None:
        """Connect, and learn how many partitions the topics have."""
        self._producer = AIOKafkaProducer(
            **self._connection.producer(),
            # Not idempotent: repeats are recognised by their ids, and after a batch that a broker refuses for good
            # an idempotent producer could send nothing more.
            acks="all",
            request_timeout_ms=REQUEST_MS,
            max_batch_size=BATCH_BYTES,
            # A dead letter carries headers on top of the largest message.
            max_request_size=LARGEST_MESSAGE + (1 << 20),
        )
        await self._producer.start()
        for topic in topics:
            self._partitions[topic] = len(await self._producer.partitions_for(topic))

    async def stop(self) -> None:
        """Give up what is still on its way and disconnect."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._producer is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._producer.stop(), STOP_WITHIN)

    def send(self, topic: str, messages: Iterable[Message], *, in_order: bool = False) -> None:
        """Hand over messages; those of one key go to one partition, in this order unless one has to be sent again.

        With `in_order` even then: each part is sent when the one before is durable, so that at most what came last
        may come again.
        """
        groups: dict[int, list[Message]] = {}
        places: dict[bytes | None, int] = {}
        for message in messages:
            if message.key not in places:
                count = self._partitions[topic]
                places[message.key] = partition_of(message.key, count) if message.key else 0
            groups.setdefault(places[message.key], []).append(message)
        for partition, group in groups.items():
            for part in _cut(group):
                size = sum(message.size for message in part)
                self._bytes += size
                before = self._latest.get((topic, partition)) if in_order else None
                task = asyncio.create_task(self._deliver(topic, partition, part, size, before))
                if in_order:
                    self._latest[topic, partition] = task
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if self._bytes > IN_FLIGHT_BYTES:
            self._room.clear()

    async def room(self) -> None:
        """Wait while too much is on its way."""
        await self._room.wait()

    async def flush(self) -> None:
        """Wait until all that was handed over before is durable; being cancelled here cancels no delivery."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        if self._failure is not None:
            raise AdatkgError(f"a message could not be sent ({self._failure!r}); nothing after it may be acknowledged")

    async def _deliver(
        self, topic: str, partition: int, messages: list[Message], size: int, before: asyncio.Task[None] | None
    ) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
                if before.cancelled() or self._failure is not None:
                    raise AdatkgError("what had to be sent before could not be")
            await self._insist(topic, partition, messages)
        except Exception as error:
            self._failure = error
            log.error("send_failed_for_good", topic=topic, messages=len(messages), problem=repr(error))
        finally:
            self._bytes -= size
            if self._bytes <= IN_FLIGHT_BYTES:
                self._room.set()

    async def _insist(self, topic: str, partition: int, messages: list[Message]) -> None:
        what = f"{len(messages)} messages to {topic}"
        await self._retry.run_async(lambda: self._send_or_replace(topic, partition, messages), what)

    async def _send_or_replace(self, topic: str, partition: int, messages: list[Message]) -> None:
        """Send them; where they are too large together, one by one, and what is refused alone in another shape."""
        try:
            await self._send(topic, partition, messages)
        except MessageSizeTooLargeError as error:
            if len(messages) > 1:
                for message in messages:
                    await self._insist(topic, partition, [message])
                return
            # Trying again would not help, and the rest must go on.
            log.error("undeliverable", topic=topic, bytes=messages[0].size, problem=repr(error))
            if other := self._instead(topic, messages[0], error) if messages[0].value else None:
                await self._insist(*other)
        except KafkaError as error:
            others = [self._instead(topic, message, error) for message in messages]
            if not all(others):
                raise
            for other in filter(None, others):
                await self._insist(*other)

    async def _send(self, topic: str, partition: int, messages: list[Message]) -> None:
        assert self._producer is not None
        batch = self._producer.create_batch()
        now = int(time.time() * 1000)
        for message in messages:
            taken = batch.append(key=message.key, value=message.value, timestamp=now, headers=message.headers)
            assert taken is not None, "parts are cut so that they fit"
        await (await self._producer.send_batch(batch, topic, partition=partition))


def _cut(messages: list[Message]) -> Iterable[list[Message]]:
    """Into parts that fit into a batch; a message that is larger than one goes alone."""
    part: list[Message] = []
    size = 0
    for message in messages:
        if part and size + message.size > BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(message)
        size += message.size
    yield part
