"""The stream for Python programs: follow predictions, ask, publish facts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ParamSpec, Self
from uuid import uuid4

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Fact, Source
from adatkg_core.messages import (
    NEXT,
    Prediction,
    Unusable,
    check_event,
    decode_prediction,
    encode_fact,
    encode_query,
    require_graph,
)
from streams.client.predictions import Seen
from streams.kafka import (
    LARGEST_MESSAGE,
    Connection,
    Topics,
    connection_from,
    ensure_topics,
    header,
    partition_of,
    topics_from,
    try_entry,
    unreachable,
)

AT_ONCE = 1_000  # facts on their way before their receipts are looked at; so many is what memory holds

P = ParamSpec("P")
_log = structlog.get_logger()


class NoAnswer(AdatkgError):
    """A query was sent, and no answer came in time."""


class Client:
    """A connection to the stream, open inside `async with`. It belongs to no consumer group and commits nothing.

    `connection` is host:port or a Connection, `topics` a prefix or Topics; what is left out comes from `ADATKG_*`
    variables. A client lives on one event loop; several tasks may share it.
    """

    def __init__(self, connection: str | Connection | None = None, topics: str | Topics | None = None) -> None:
        self.connection = connection if isinstance(connection, Connection) else connection_from(bootstrap=connection)
        self.topics = topics if isinstance(topics, Topics) else topics_from(topics)
        self._producer: AIOKafkaProducer | None = None
        self._consumers: set[AIOKafkaConsumer] = set()

    async def __aenter__(self) -> Self:
        # Idempotence keeps facts in the order of their publishing, and each there once, when a broker goes and comes.
        self._producer = AIOKafkaProducer(
            **self.connection.producer(),
            client_id="adatkg-client",
            enable_idempotence=True,
            max_request_size=LARGEST_MESSAGE,
        )
        try:
            try:
                await self._producer.start()
                there = (await self._producer.client.fetch_all_metadata()).topics()
            except KafkaError as error:
                raise (await try_entry(self.connection)).problem or unreachable(self.connection, error) from error
            if not {self.topics.events, self.topics.predictions, self.topics.deadletter} <= there:
                await asyncio.to_thread(ensure_topics, self.connection, self.topics)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End what is being followed and wait until what was published is in the log."""
        for consumer in list(self._consumers):
            await self._release(consumer)
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    def predictions(self, graph: str | None = None, *, from_beginning: bool = False) -> Predictions:
        """Follow the predictions of a graph, or of all, for ever; each comes once, however often it was delivered."""
        return Predictions(self, graph, from_beginning)

    async def ask(
        self,
        graph: str,
        *,
        relation: str,
        subject: str | None = None,
        object: str | None = None,
        time: int | str = NEXT,
        k: int = 10,
        timeout: float = 30.0,
    ) -> Prediction:
        """Send a query and wait for its answer; give `subject` or `object`, the other is what is asked for.

        Raises InputError when the query is refused, here or by the worker, and NoAnswer when no answer comes.
        """
        id = f"ask-{uuid4().hex}"
        query = _checked(graph, encode_query, id, relation, time, s=subject, o=object, k=k)
        sent = False
        try:
            async with asyncio.timeout(timeout):
                places = [
                    *await self._places(self.topics.predictions, graph),
                    *await self._places(self.topics.deadletter),
                ]
                # The answer may be there before we hear that the query is: look at where it will stand first.
                consumer = await self._follow(places, from_beginning=False)
                try:
                    await self._send(graph, query)
                    sent = True
                    return await self._answer(consumer, graph, id, query)
                finally:
                    await self._release(consumer)
        except TimeoutError as error:
            if not sent:
                raise unreachable(self.connection, error) from error
            raise NoAnswer(
                f"{graph}: no answer within {timeout:g} s; is a worker running? Start one with "
                f"`adatkg worker --bootstrap {self.connection.bootstrap}`, or wait longer"
            ) from error
        except KafkaError as error:
            raise self._failed(error) from error

    async def publish_fact(self, graph: str, s: str, r: str, o: str, t: int | str) -> Source:
        """Append a fact to a graph's log; when this returns it is there to stay, at this place."""
        data = _checked(graph, encode_fact, s, r, o, t)
        try:
            place = await self._send(graph, data)
        except KafkaError as error:
            raise self._failed(error) from error
        return Source(place.partition, place.offset)

    async def publish_facts(self, graph: str, facts: Iterable[Fact | tuple[str, str, str, int | str]]) -> int:
        """Append facts in their order and say how many; at one that is unusable it stops, those before it stay."""
        return await self._append(graph, facts, 0)

    # -- private, also for Predictions and SyncClient ---------------------------------------------------------

    async def _append(self, graph: str, facts: Iterable[Fact | tuple[str, str, str, int | str]], first: int) -> int:
        """The same for facts of which `first` went before; errors count them."""
        producer, count = self._running(), 0
        underway: list[asyncio.Future[Any]] = []
        try:
            for fact in facts:
                s, r, o, t = (fact.s, fact.r, fact.o, fact.t) if isinstance(fact, Fact) else fact
                try:
                    data = _checked(f"{graph}, fact {first + count}", encode_fact, s, r, o, t)
                except InputError:
                    await asyncio.gather(*underway)
                    raise
                underway.append(await producer.send(self.topics.events, data, key=_key(graph)))
                count += 1
                if len(underway) == AT_ONCE:
                    await asyncio.gather(*underway)
                    underway.clear()
            await asyncio.gather(*underway)
        except KafkaError as error:
            raise self._failed(error) from error
        return count

    def _running(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise RuntimeError("the client is not open: use `async with Client(...) as client`")
        return self._producer

    async def _send(self, graph: str, data: bytes) -> Any:
        return await self._running().send_and_wait(self.topics.events, data, key=_key(graph))

    async def _places(self, topic: str, graph: str | None = None) -> list[TopicPartition]:
        """The partitions of a topic, or the one in which a graph's messages are."""
        numbers = await self._running().partitions_for(topic)
        return [
            TopicPartition(topic, n) for n in sorted(numbers) if graph is None or n == partition_of(graph, len(numbers))
        ]

    async def _follow(self, places: Sequence[TopicPartition], from_beginning: bool) -> AIOKafkaConsumer:
        """A consumer that stands at the beginning or the end of these partitions."""
        consumer = AIOKafkaConsumer(
            **self.connection.client(),
            client_id="adatkg-client",
            enable_auto_commit=False,
            # Where records were deleted before they were read, it goes on with what there is.
            auto_offset_reset="earliest",
        )
        self._consumers.add(consumer)
        try:
            await consumer.start()
            consumer.assign(places)
            consumer.pause(*places)  # until it knows where to begin
            offsets = await (consumer.beginning_offsets(places) if from_beginning else consumer.end_offsets(places))
            for place, offset in offsets.items():
                consumer.seek(place, offset)
            consumer.resume(*places)
        except BaseException:
            await self._release(consumer)
            raise
        return consumer

    async def _release(self, consumer: AIOKafkaConsumer) -> None:
        self._consumers.discard(consumer)
        await consumer.stop()

    async def _answer(self, consumer: AIOKafkaConsumer, graph: str, id: str, query: bytes) -> Prediction:
        while True:
            record = await consumer.getone()
            if record.topic == self.topics.deadletter:
                if record.value == query:
                    reason, detail = header(record.headers, "reason"), header(record.headers, "detail")
                    raise InputError(f"{graph}: the query was refused: {detail} ({reason})")
            elif id.encode() in (record.value or b""):  # spares decoding the answers of others
                with suppress(Unusable):
                    forecast = decode_prediction(record.value)
                    if forecast.query["id"] == id:
                        return forecast

    def _failed(self, error: KafkaError) -> AdatkgError:
        return AdatkgError(
            f"{self.topics.prefix}.* at {self.connection.bootstrap}: {type(error).__name__} ({error}); check the broker"
        )


class Predictions(AsyncIterator[Prediction]):
    """Forecasts in the order of the log. Reading begins with the first `async for` step, or with `begin()` before.

    A message that is no prediction is skipped with a warning.
    """

    def __init__(self, client: Client, graph: str | None, from_beginning: bool) -> None:
        self._client, self._graph, self._from_beginning = client, graph, from_beginning
        self._key = None if graph is None else _key(graph)
        self._consumer: AIOKafkaConsumer | None = None
        self._seen = Seen()

    async def begin(self) -> Self:
        """Take up the place from which to read; whatever is predicted after this returns will come."""
        await self._reader()
        return self

    async def __anext__(self) -> Prediction:
        consumer = await self._reader()
        while True:
            try:
                record = await consumer.getone()
            except ConsumerStoppedError:
                raise StopAsyncIteration from None
            except KafkaError as error:
                raise self._client._failed(error) from error
            if self._key is not None and record.key != self._key:
                continue
            try:
                forecast = decode_prediction(record.value)
            except Unusable as problem:
                place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
                _log.warning("prediction skipped", **place, reason=problem.code, detail=problem.detail)
                continue
            if not self._seen.repeats(forecast):
                return forecast

    async def aclose(self) -> None:
        """Stop reading."""
        if self._consumer is not None:
            await self._client._release(self._consumer)

    async def _reader(self) -> AIOKafkaConsumer:
        client = self._client
        if self._consumer is None:
            try:
                places = await client._places(client.topics.predictions, self._graph)
                self._consumer = await client._follow(places, self._from_beginning)
            except KafkaError as error:
                raise client._failed(error) from error
        return self._consumer


def _key(graph: str) -> bytes:
    try:
        return require_graph("graph", graph).encode()
    except Unusable as problem:
        raise InputError(problem.detail) from problem


def _checked(where: str, encode: Callable[P, bytes], *values: P.args, **named: P.kwargs) -> bytes:
    """An event as bytes, refused here for whatever the worker would refuse it for without knowing the graph."""
    try:
        data = encode(*values, **named)
        check_event(data)
    except Unusable as problem:
        raise InputError(f"{where}: {problem.detail}") from problem
    except TypeError as error:
        raise InputError(f"{where}: not to be written as JSON ({error})") from error
    return data
