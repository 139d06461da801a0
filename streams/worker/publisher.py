"""What goes out: predictions and dead letters to their topics, numbers to the metrics, results to those who watch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, TopicAuthorizationFailedError

from adatkg_core.messages import Reason
from streams.dead_letters import dead_letter_headers
from streams.kafka import Message, Producer, Topics, with_origin
from streams.worker.arrival import Arrival
from streams.worker.batch import BatchResult, Rejected
from streams.worker.metrics import Metrics

Observer = Callable[[Sequence[BatchResult]], None]  # hears what came of each batch; it must be quick
log = structlog.get_logger()


def undeliverable(
    topics: Topics, topic: str, message: Message, error: KafkaError
) -> tuple[str, int, list[Message]] | None:
    """What goes out instead of a message that brokers refuse for good: a dead letter, and where; None for any other.

    What is too large for its topic goes without its bytes. It is what a `Producer` asks for.
    """
    graph = (message.key or b"").decode(errors="replace")
    at = (-1, -1) if message.source is None else (message.source.partition, message.source.offset)
    if isinstance(error, MessageSizeTooLargeError):
        detail = f"{topic} takes no message of {message.size} bytes: raise its max.message.bytes"
        headers = dead_letter_headers(Reason.UNDELIVERABLE, detail, topics.events, *at, graph)
        return topics.deadletter, 0, [Message(message.key, b"", headers, message.source)]
    if isinstance(error, TopicAuthorizationFailedError) and topic == topics.events:
        detail = f"it belongs to another partition, and this worker has no right to write to {topic}: grant it"
        headers = dead_letter_headers(Reason.WRONG_PARTITION, detail, topics.events, *at, graph)
        return topics.deadletter, 0, [Message(message.key, message.value, headers, message.source)]
    return None


def _moved(arrival: Arrival) -> Message:
    return Message(arrival.key, arrival.value, with_origin(arrival.headers, arrival.source), arrival.source)


class Publisher:
    """Hands on what came of each batch, in log order."""

    def __init__(
        self, topics: Topics, producer: Producer, metrics: Metrics, observers: Sequence[Observer] = ()
    ) -> None:
        self._topics, self._producer, self._metrics, self._observers = topics, producer, metrics, observers

    async def start(self) -> None:
        """Connect to the brokers."""
        await self._producer.start((self._topics.events, self._topics.predictions, self._topics.deadletter))

    def publish(self, results: Sequence[BatchResult], seconds: float) -> int:
        """Send what came of a batch that took so long; says how many events that were, before it is durable."""
        answers = [
            Message(one.arrival.key, one.body, [], one.arrival.source) for result in results for one in result.answered
        ]
        if answers:
            self._producer.send(self._topics.predictions, answers)
        letters = [self._dead_letter(result.graph, one) for result in results for one in result.rejected]
        if letters:
            self._producer.send(self._topics.deadletter, letters)
        moved = [_moved(one) for result in results for one in result.moved]
        if moved:
            self._producer.send(self._topics.events, moved, in_order=True)
        events = sum(sum(result.counts.values()) + len(result.rejected) for result in results)
        self._metrics.batch.observe(events)
        self._metrics.apply.observe(seconds)
        for result in results:
            result.keep_score()  # now that the answers are on their way
            self._metrics.count(result)
        for observe in self._observers:
            observe(results)
        return events

    async def room(self) -> None:
        """Wait while too much is on its way."""
        await self._producer.room()

    async def flush(self) -> None:
        """Wait until all that was published before is durable at the brokers."""
        await self._producer.flush()

    async def stop(self) -> None:
        """Give up what is still on its way; it is made again from the log."""
        await self._producer.stop()

    def _dead_letter(self, graph: str, rejected: Rejected) -> Message:
        code, detail, source = rejected.code, rejected.detail, rejected.arrival.source
        partition, offset = source.partition, source.offset
        log.warning("dead_letter", graph=graph, reason=code, detail=detail, partition=partition, offset=offset)
        headers = dead_letter_headers(code, detail, self._topics.events, partition, offset, graph)
        return Message(rejected.arrival.key, rejected.arrival.value, headers, source)
