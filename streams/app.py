"""The Faust app: one agent on the events, and the worker behind it.

`create_app` puts the worker together, each part from those before it; Faust delivers, commits and serves the pages.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import faust
import structlog
from faust.types import TP
from faust.web import Request, Response, View

from adatkg_core.runtime import Retry, collect_on_request
from streams.dashboard import Dashboard, Feed
from streams.kafka import Connection, EventLog, Producer, Topics
from streams.own_log_consumer import OwnLogTransport
from streams.settings import StreamSettings
from streams.worker import (
    CONTENT_TYPE,
    CatchUp,
    Checkpointer,
    DeviceThread,
    GraphHost,
    Incidents,
    Inspector,
    Intake,
    Loader,
    LogWatch,
    Metrics,
    ModelSwap,
    Overflow,
    Publisher,
    Recovery,
    Replica,
    Worker,
    undeliverable,
)

COLLECT_EVERY = 60.0  # seconds
QUIET = 0.1  # seconds between looks whether something waits
AT_ONCE = 2_048  # events that are fetched together: each fetch takes many turns of a busy loop, also past a flood
log = structlog.get_logger()


def create_app(
    settings: StreamSettings,
    connection: Connection,
    topics: Topics,
    on_stopped: Callable[[], None] = lambda: None,
    watch: Callable[[Callable[[], bool]], None] = lambda stalled: None,
) -> faust.App:
    """A worker as a Faust app; any number of them can be made in one process.

    `on_stopped` is called when all that can be saved is saved, before Faust takes its leave of the brokers. `watch` is
    given, once, what says whether the worker is stalled.
    """
    replica = Replica(settings.replica, settings.replicas)
    group = f"{settings.group}-{replica.name}" if replica.name else settings.group

    metrics, device, retry = Metrics(), DeviceThread(), Retry("loading_failed")
    incidents = Incidents(metrics.count_incident)
    loader, catch_up = Loader(settings, replica), CatchUp(connection, topics, retry, incidents)
    app = _faust_app(group, settings, connection, lambda: catch_up.log)
    host = GraphHost(loader, catch_up, replica, retry)
    inspector = Inspector(host, device)
    flow = _FaustFlow(app, topics)
    intake = Intake(settings, flow)
    feed = Feed(inspector.timed_status, intake.lag, incidents.open) if settings.web_port else None
    producer = Producer(connection, partial(undeliverable, topics))
    publisher = Publisher(topics, producer, metrics, [feed.take] if feed else [])
    checkpointer = Checkpointer(settings, device, host, loader, publisher, metrics, incidents, flow.commit)
    worker = Worker(intake, device, host, publisher, checkpointer, settings.batch_events, lambda: log_watch.look())
    watch(lambda: worker.stalled)
    recovery = Recovery(loader, host, catch_up, device, worker.process_beside, settings.batch_events)

    async def abandon(starts: dict[int, int]) -> None:
        worker.abandon()
        for partition, offset in starts.items():
            await flow.set_back(partition, offset)

    flow.watch = log_watch = LogWatch(connection, topics, incidents, intake.reached, abandon, lambda: catch_up.known)
    overflow = Overflow(host, catch_up, device, intake.wake)
    swap = ModelSwap(connection, topics, loader, host, worker, metrics, settings.batch_events)
    log_watch.on_models_remade = swap.hear_anew
    dashboard: Dashboard | None = None
    if feed is not None:
        dashboard = Dashboard(settings, group, connection, topics, inspector, feed, lambda: worker.ready)
        _add_pages(app, worker, intake, inspector, metrics, feed, incidents)
        driver: Any = app.web
        dashboard.add_to(driver.web_app)
        app.task(feed.run)
    _follow_partitions(app, topics, intake, worker, recovery)
    _run(app, worker, [swap, recovery, overflow], dashboard, on_stopped)
    app.task(flow.watch.run)
    app.task(partial(_collect_garbage, worker, intake))
    app.task(partial(_begin_at_once, intake, flow))
    return app


class _FaustFlow:
    """Faust's consumer as the intake's flow, and what is committed to its group."""

    def __init__(self, app: faust.App, topics: Topics) -> None:
        self._app: Any = app  # what is asked here is not in its types
        self._topic = topics.events
        self.watch: LogWatch | None = None

    def highwater(self, partition: int) -> int | None:
        """As Faust has heard, or as the log was seen to end before Faust has heard anything."""
        seen = self.watch.end(partition) if self.watch else None
        try:
            offset = self._app.consumer.highwater(TP(self._topic, partition)) if self._app.consumer else None
        except AssertionError:  # so the client says that a rebalance has just taken it away, which we hear later
            return seen
        return seen if offset is None else int(offset)

    def begin(self, partition: int) -> int | None:
        """Where a partition is read from after it was assigned, as far as that is known.

        What is committed, also where the brokers have refused it: all below is answered, and in a state that is saved.
        """
        committed = self._committed(partition)
        return committed if committed is not None else self.watch.first(partition) if self.watch else None

    async def commit(self, partition: int, offset: int) -> None:
        """Below this offset nothing need come again. Nothing is acknowledged to Faust, whose own commits are none."""
        before = self._committed(partition)
        if before is None or offset > before:  # or others may have had the partition meanwhile, and gone further
            await self._app.consumer._commit_offsets({TP(self._topic, partition): offset})

    async def set_back(self, partition: int, offset: int) -> None:
        """Whoever reads this partition next begins here, or before it where less was committed."""
        before = self._committed(partition)
        if before is not None and offset < before:
            await self._app.consumer._commit_offsets({TP(self._topic, partition): offset})

    def _committed(self, partition: int) -> int | None:
        consumer = self._app.consumer
        offset: int | None = consumer._committed_offset.get(TP(self._topic, partition)) if consumer else None
        return offset

    def pause(self, partition: int) -> None:
        self._app.consumer.on_buffer_full(TP(self._topic, partition))

    def resume(self, partition: int) -> None:
        self._app.consumer.on_buffer_drop(TP(self._topic, partition))


class _App(faust.App):
    event_log: Callable[[], EventLog]  # looks it up

    def _new_transport(self) -> Any:
        return OwnLogTransport(self.conf.broker_consumer, self)


async def _begin_at_once(intake: Intake, flow: _FaustFlow) -> None:
    """The lag of a partition is known before its first event is taken in."""
    while True:
        for partition, following in intake.reached().items():
            if following is None and (begin := flow.begin(partition)) is not None:
                intake.begin_at(partition, begin)
        await asyncio.sleep(1.0)


async def _collect_garbage(worker: Worker, intake: Intake) -> None:
    """Once in a while, and rather when nothing waits: a full collection stops every thread."""
    while not worker.ready:
        await asyncio.sleep(QUIET)
    collect_on_request()
    while True:
        await asyncio.sleep(COLLECT_EVERY)
        deadline = time.monotonic() + COLLECT_EVERY
        while intake.is_waiting and time.monotonic() < deadline:
            await asyncio.sleep(QUIET)
        gc.collect()


def _faust_app(
    group: str, settings: StreamSettings, connection: Connection, event_log: Callable[[], EventLog]
) -> faust.App:
    app = _App(
        group,
        broker=[f"kafka://{server}" for server in connection.servers],
        broker_credentials=_credentials(connection),
        # The topics are made by our own module, and nothing is kept in Faust's tables.
        topic_allow_declare=False,
        topic_disable_leader=True,
        reply_create_topic=False,
        store="memory://",
        datadir=Path(tempfile.gettempdir()) / "adatkg-faust",  # nothing is ever kept there
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=4 << 20,
        broker_max_poll_records=AT_ONCE,
        broker_session_timeout=settings.session_seconds,
        broker_heartbeat_interval=settings.session_seconds / 3,
        broker_commit_interval=1.0,
        stream_wait_empty=False,
        stream_buffer_maxsize=4,  # times what was fetched at once
        # A snapshot may be minutes away; that is no livelock.
        broker_commit_livelock_soft_timeout=10 * settings.snapshot_seconds + 300,
        web_bind=settings.web_host,
        web_host=settings.web_host,
        web_enabled=settings.web_port != 0,
        web_port=settings.web_port or 1,  # Faust knows no port 0
        web_router_enabled=False,  # pages of its own about tables, of which we have none
        web_tables_enabled=False,
    )
    app.event_log = event_log
    return app


def _follow_partitions(app: faust.App, topics: Topics, intake: Intake, worker: Worker, recovery: Recovery) -> None:
    """Let events come in, and hear which partitions they come from."""
    events = app.topic(topics.events, key_serializer="raw", value_serializer="raw")

    @app.agent(events, name="adatkg.events")
    async def take(stream: Any) -> None:
        async for fetched in stream.noack().events():
            for event in fetched.value:
                if event.message.generation_id != app.consumer_generation_id:
                    break  # they come again to whoever has the partition now
                await intake.put(event)

    async def on_assigned(_: Any, assigned: set[TP], *__: Any, **___: Any) -> None:
        partitions = sorted(tp.partition for tp in assigned if tp.topic == topics.events)
        log.info("assigned", partitions=partitions)
        intake.assigned(partitions)
        recovery.assigned(partitions)

    async def on_revoked(_: Any, revoked: set[TP], *__: Any, **___: Any) -> None:
        log.info("revoked", partitions=sorted(tp.partition for tp in revoked if tp.topic == topics.events))
        await worker.revoked()

    # Faust's annotations want signatures that it does not itself call with.
    connect: Any = app.on_partitions_assigned.connect
    connect(on_assigned)
    connect = app.on_partitions_revoked.connect
    connect(on_revoked)


def _run(
    app: faust.App,
    worker: Worker,
    beside: Sequence[ModelSwap | Recovery | Overflow],
    dashboard: Dashboard | None,
    on_stopped: Callable[[], None],
) -> None:
    """Start the worker and what runs beside it with the app, and end them in order before it ends."""

    async def on_shutdown(_: Any, *__: Any, **___: Any) -> None:
        try:
            if dashboard is not None:
                await dashboard.close()
            for one in beside:  # first, because what they do after the device's thread has ended would be an error
                await one.stop()
            await worker.stop()
        finally:
            await worker.close()
            log.info("stopped")
            on_stopped()

    app.task(worker.run)
    for one in beside:
        app.task(one.run)
    connect: Any = app.on_before_shutdown.connect
    connect(on_shutdown)


def _add_pages(
    app: faust.App,
    worker: Worker,
    intake: Intake,
    inspector: Inspector,
    metrics: Metrics,
    feed: Feed,
    incidents: Incidents,
) -> None:
    @app.page("/health")
    class Health(View):
        """Whether the worker lives, and what is wrong; a process that does not answer here should be started anew.

        An incident of one graph does not make the worker unhealthy.
        """

        async def get(self, request: Request) -> Response:
            stalled = worker.stalled
            details = {"incidents": [incident.as_json() for incident in incidents.open()]}
            return self.json({"status": "stalled" if stalled else "ok", **details}, status=503 if stalled else 200)

    @app.page("/ready")
    class Ready(View):
        """Whether it takes events in."""

        async def get(self, request: Request) -> Response:
            ready = worker.ready
            return self.json({"ready": ready}, status=200 if ready else 503)

    @app.page("/scores")
    class Scores(View):
        """Who answers for each graph, and how well its last answers fitted what then happened."""

        async def get(self, request: Request) -> Response:
            return self.json({name: asdict(status) for name, status in (await inspector.status()).items()})

    @app.page("/metrics")
    class MetricsPage(View):
        """What Prometheus reads."""

        async def get(self, request: Request) -> Response:
            metrics.show_lag(intake.lags())
            metrics.show(feed.statuses)
            metrics.show_incidents(incidents.open())
            return self.bytes(metrics.page(), content_type=CONTENT_TYPE)


def _credentials(connection: Connection) -> Any:
    if connection.security == "PLAINTEXT":
        return None
    tls = connection.ssl_context() if connection.security.endswith("SSL") else None
    if not connection.security.startswith("SASL"):
        return faust.SSLCredentials(context=tls)
    return faust.SASLCredentials(
        username=connection.username, password=connection.password, mechanism=connection.mechanism, ssl_context=tls
    )
