"""One trainer at a time for a graph, on whatever machine: the brokers say who.

The announcements' topic has one partition, and a consumer group gives a partition to one member only. Trainers of a
graph are such a group, and whoever has the partition trains. Nothing is read from it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import structlog
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.errors import KafkaError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import Retry
from streams.kafka import BOOTSTRAP_MS, Connection, Topics, unreachable

SESSION = 6.0  # seconds until the brokers give up a trainer that is gone; they allow no less
PATIENCE = 2 * SESSION + 3.0  # seconds: a trainer that was killed is forgotten by then, one that lives is not
_POLL = 1.0  # seconds: kafka-python begins a join anew that ends between two polls, so most must end within one
_ASK = 0.2  # seconds
# Where a poll ends in the middle of a join, kafka-python may forget to bring the join to its end. One with others that
# live takes a moment, and beginning anew does no harm to a longer one, so waiting for it much longer is of no use.
_LONGEST_JOIN = SESSION / 2  # seconds
log = structlog.get_logger()


class Lease:
    """The right to train a graph; made by `lease`. Its thread alone touches the consumer."""

    def __init__(self, connection: Connection, topics: Topics, graph: str) -> None:
        self._connection, self._graph = connection, graph
        self._place, self._rule = TopicPartition(topics.models, 0), _FirstCome(topics.models)
        self._group = f"{topics.prefix}-trainer-{graph}"
        self._asked: queue.SimpleQueue[Future[bool]] = queue.SimpleQueue()
        self._retry = Retry("lease_interrupted", KafkaError, _ASK, level="warning")
        self._problem: KafkaError | None = None  # why this one is no member
        self._joins_since: float | None = None  # when a join that has not come to its end was first heard of
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def acquire(self) -> None:
        """Wait until the brokers give the graph to this trainer; raise if another one has it and lives."""
        if not self._confirmed(3 * _POLL):
            log.info("waiting_for_lease", graph=self._graph, group=self._group, at_most=PATIENCE)
            if not self._confirmed(PATIENCE):
                if self._problem is not None:
                    raise unreachable(self._connection, self._problem)
                raise InputError(
                    f"graph {self._graph}: another trainer has it, says the broker (consumer group {self._group}); "
                    "wait for it or stop it"
                )

    def require(self) -> None:
        """Raise unless the brokers confirm, now, that this trainer is the one."""
        if not self._confirmed(PATIENCE):
            raise AdatkgError(
                f"graph {self._graph}: the brokers at {self._connection.bootstrap} do not confirm that this trainer is "
                "its only one; what it has learned stays unused until they do"
            )

    def close(self) -> None:
        """Leave, so that another one need not wait."""
        self._retry.end()
        self._thread.join()

    # -- private ----------------------------------------------------------------------------------------------

    def _confirmed(self, within: float) -> bool:
        """Ask until the answer is yes, or the time is up."""
        end = time.monotonic() + within
        while (left := end - time.monotonic()) > 0:
            asked: Future[bool] = Future()
            self._asked.put(asked)
            try:
                if asked.result(left):
                    return True
            except TimeoutError:
                return False
            time.sleep(_ASK)
        return False

    def _run(self) -> None:
        """Be a member for as long as it lasts, whatever becomes of the brokers meanwhile."""
        with contextlib.suppress(KafkaError):  # of an attempt after which nobody waits any more
            while not self._retry.ended:
                self._retry.run(self._be_a_member, f"graph {self._graph}")

    def _be_a_member(self) -> None:
        try:
            self._join()
        except KafkaError as error:
            self._problem = error
            raise

    def _join(self) -> None:
        consumer = KafkaConsumer(
            self._place.topic,
            **self._connection.client(),
            group_id=self._group,
            client_id=f"adatkg-trainer-{socket.gethostname()}-{os.getpid()}",
            partition_assignment_strategy=[self._rule],
            session_timeout_ms=int(SESSION * 1000),
            heartbeat_interval_ms=int(SESSION * 1000 / 3),
            enable_auto_commit=False,
            bootstrap_timeout_ms=BOOTSTRAP_MS,
        )
        self._problem = self._joins_since = None
        try:
            while not self._retry.ended and not self._is_stuck():
                consumer.poll(int(_POLL * 1000))
                consumer.pause(*consumer.assignment())
                while not self._asked.empty():
                    self._asked.get().set_result(self._holds(consumer))
        finally:
            consumer.close(autocommit=False)

    def _holds(self, consumer: KafkaConsumer) -> bool:
        """A commit is taken from members of the present generation only, so it proves that this one is."""
        if self._place not in consumer.assignment():
            return False
        try:
            consumer.commit({self._place: OffsetAndMetadata(0, "", -1)}, timeout_ms=int(SESSION * 1000))
        except KafkaError as error:
            if isinstance(error, RebalanceInProgressError):
                self._joins_since = self._joins_since or time.monotonic()
            log.warning("lease_not_confirmed", graph=self._graph, problem=repr(error))
            return False
        self._joins_since = None
        return True

    def _is_stuck(self) -> bool:
        return self._joins_since is not None and time.monotonic() - self._joins_since > _LONGEST_JOIN


class _FirstCome(AbstractPartitionAssignor):  # type: ignore[misc]
    """Who has the partition keeps it; whoever comes later, or comes back, waits until it is free."""

    name = "adatkg-first-come"

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._had_in = 0  # the generation of the group in which this member last had it

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """What the group's leader is told about this member."""
        return ConsumerProtocolSubscription(0, list(topics), self._had_in.to_bytes(8, "big"))

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """The partition to the one that had it latest."""
        holder = max(members, key=lambda one: (one.metadata.user_data, one.member_id)).member_id
        return {
            one.member_id: ConsumerProtocolAssignment(0, [(self._topic, [0])] if one.member_id == holder else [], b"")
            for one in members
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember to have it, for the next time that the group is dealt out."""
        if assignment.partitions():
            self._had_in = generation


@contextmanager
def lease(connection: Connection, topics: Topics, graph: str) -> Iterator[Lease]:
    """Hold the right to train this graph; it ends with the process, however that ends."""
    held = Lease(connection, topics, graph)
    try:
        held.acquire()
        yield held
    finally:
        held.close()
