"""The producer: sends on and on at a modest rate, and knows exactly what the broker has."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from kafka import KafkaProducer

from adatkg.chaos.eras import Mark, mark_of
from adatkg.chaos.journal import Journal
from adatkg.chaos.messages import LARGE, Message
from streams.kafka import Connection, partition_of

ID, KIND = "chaos-id", "chaos-kind"  # headers by which an event in the log is known again
PAUSE = 0.5  # seconds between two handfuls
_PATIENCE = 90.0  # seconds until what is not acknowledged is sent again
log = structlog.get_logger()


class Stream:
    """Sends handfuls from a thread of its own, each once the one before is acknowledged, and again until it is."""

    def __init__(self, connection: Connection, topic: str, partitions: int, journal: Journal) -> None:
        self._connection, self._topic, self._partitions, self._journal = connection, topic, partitions, journal
        self.asked: set[tuple[tuple[int, int], Mark]] = set()  # where the broker has put each query
        self.garbage: set[tuple[tuple[int, int], Mark]] = set()  # and what must become a dead letter
        self.count = 0  # events that the broker has
        self._producer: KafkaProducer | None = None
        self._thrown: deque[Message] = deque()
        self._ends = threading.Event()
        self._holds, self._rests = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.problem: BaseException | None = None

    def send(self, messages: Iterable[Message]) -> None:
        """Send these and return when the broker has them."""
        waiting = list(messages)
        while waiting and not self._ends.is_set():
            waiting = self._deliver(waiting)

    def start(self, live: Sequence[Iterator[Message]], rate: float) -> None:
        """Send so many messages of each graph in a second, until stopped."""
        self._thread = threading.Thread(target=self._run, args=(live, max(1, round(rate * PAUSE))), name="stream")
        self._thread.start()

    def throw(self, messages: Iterable[Message]) -> None:
        """Send these too, soon."""
        self._thrown.extend(messages)

    @contextmanager
    def held(self, within: float) -> Iterator[bool]:
        """Nothing is sent meanwhile; whether all that was sent is acknowledged, after at most so many seconds."""
        self._holds.set()
        try:
            yield self._rests.wait(within)
        finally:
            self._holds.clear()

    def stop(self) -> None:
        """Send no more; everything that was handed over is in the log afterwards."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, live: Sequence[Iterator[Message]], handful: int) -> None:
        try:
            waiting: list[Message] = []
            while waiting or self._thrown or not self._ends.wait(PAUSE):
                if not waiting:
                    self._rest()
                    waiting = [self._thrown.popleft() for _ in range(len(self._thrown))]
                    if not self._ends.is_set():
                        # In turn, so that graphs which share a partition are mixed in it.
                        some = [list(itertools.islice(one, handful)) for one in live]
                        waiting += [message for row in zip(*some, strict=True) for message in row]
                waiting = self._deliver(waiting)
            self._forget_producer()
        except BaseException as error:
            self.problem = error
            raise

    def _rest(self) -> None:
        """Between two handfuls, for as long as someone holds the stream; what it goes on with knows no topic yet."""
        if self._holds.is_set():
            self._forget_producer()
            self._rests.set()
            while self._holds.is_set() and not self._ends.wait(0.1):
                pass
            self._rests.clear()

    def _deliver(self, messages: Sequence[Message]) -> list[Message]:
        """Send a handful; returns those that the broker may not have, for which there is a new producer then."""
        try:
            sent = [(message, self._hand_over(message)) for message in messages]
            self._open_producer().flush(timeout=_PATIENCE)
        except Exception as error:  # whatever a client that has lost its broker may raise
            log.info("not_sent", problem=repr(error))
            self._forget_producer()
            self._ends.wait(PAUSE)
            return list(messages)
        left = []
        for message, future in sent:
            try:
                where = future.get(timeout=_PATIENCE)
            except Exception as error:
                log.info("sent_again", id=message.id, problem=repr(error))
                left.append(message)
            else:
                self._note(message, where.partition, where.offset)
        if left:
            self._forget_producer()
        return left

    def _hand_over(self, message: Message) -> Any:
        """The future that holds where the broker has put it."""
        self._journal.sends(message.graph, message.id, message.kind)
        return self._open_producer().send(
            self._topic,
            message.value,
            key=message.graph.encode() if message.has_key else None,
            headers=[(ID, message.id.encode()), (KIND, message.kind.encode())],
            partition=partition_of(message.graph, self._partitions),
        )

    def _note(self, message: Message, partition: int, offset: int) -> None:
        self._journal.sent(message.graph, message.id, partition, offset)
        self.count += 1
        if message.kind == "query":
            self.asked.add(((partition, offset), mark_of(message.value)))
        elif message.kind == "garbage":
            self.garbage.add(((partition, offset), mark_of(message.value)))

    def _open_producer(self) -> KafkaProducer:
        if self._producer is None:
            # One request at a time keeps the order of what is tried again.
            self._producer = KafkaProducer(
                **self._connection.producer(),
                acks="all",
                enable_idempotence=True,
                max_in_flight_requests_per_connection=1,
                delivery_timeout_ms=int(_PATIENCE * 1000),
                request_timeout_ms=10_000,
                max_request_size=LARGE * 2,
                max_block_ms=int(_PATIENCE * 1000),
                client_id="adatkg-chaos",
            )
        return self._producer

    def _forget_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(Exception):
                producer.close(timeout=1)
