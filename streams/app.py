"""The Faust app: one agent on the events, everything else in the pump behind it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import faust
import structlog
from faust.types import TP
from faust.web import Request, Response, View

from adatkg_core.messages import Reason
from streams.dashboard import Dashboard, Feed
from streams.dead_letters import dead_letter_headers
from streams.kafka import Connection, Message, Sender, Topics
from streams.settings import StreamSettings
from streams.worker import CONTENT_TYPE, Host, Metrics, Pump, Share, Swapper

REVOKED_WITHIN = 5.0  # seconds to make things durable before others take over; without it they have more to catch up
log = structlog.get_logger()


def create_app(
    settings: StreamSettings,
    connection: Connection,
    topics: Topics,
    on_stopped: Callable[[], None] = lambda: None,
) -> faust.App:
    """A worker as a Faust app; any number of them can be made in one process.

    `on_stopped` is called when all that can be saved is saved, before Faust takes its leave of the brokers.
    """
    share = Share(settings.replica, settings.replicas)
    group = f"{settings.group}-{share.name}" if share.name else settings.group
    app = faust.App(
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
        broker_session_timeout=settings.session_seconds,
        broker_heartbeat_interval=settings.session_seconds / 3,
        broker_commit_interval=1.0,
        stream_wait_empty=False,
        stream_buffer_maxsize=4 * settings.batch_events,
        # A snapshot may be minutes away; that is no livelock.
        broker_commit_livelock_soft_timeout=10 * settings.snapshot_seconds + 300,
        web_bind=settings.web_host,
        web_host=settings.web_host,
        web_enabled=settings.web_port != 0,
        web_port=settings.web_port or 1,  # Faust knows no port 0
        web_router_enabled=False,  # pages of its own about tables, of which we have none
        web_tables_enabled=False,
    )
    events = app.topic(topics.events, key_serializer="raw", value_serializer="raw")

    def too_large(topic: str, message: Message) -> tuple[str, int, list[Message]]:
        detail = f"{topic} takes no message of {message.size} bytes: raise its max.message.bytes"
        graph = (message.key or b"").decode(errors="replace")
        headers = dead_letter_headers(Reason.UNDELIVERABLE, detail, topic, -1, -1, graph)
        return topics.deadletter, 0, [Message(message.key, b"", headers)]

    metrics, sender = Metrics(), Sender(connection, too_large)
    host = Host(settings, connection, topics)

    def highwater(partition: int) -> int | None:
        return app.consumer.highwater(TP(topics.events, partition)) if app.consumer else None

    feed = Feed(lambda: pump.on_device(host.timed_statuses), lambda: pump.lag) if settings.web_port else None
    pump = Pump(settings, topics, host, sender, metrics, highwater, *([feed.take] if feed else []))

    @app.agent(events, name="adatkg.events")
    async def take(stream: Any) -> None:
        async for event in stream.noack().events():
            await pump.put(event)

    async def process() -> None:
        await sender.start((topics.predictions, topics.deadletter))
        await pump.run()

    swapper = Swapper(connection, topics, host, pump.on_device, metrics)

    dashboard: Dashboard | None = None
    if feed is not None:
        dashboard = Dashboard(settings, group, connection, topics, host, feed, lambda: pump.ready, pump.on_device)

    async def on_assigned(_: Any, assigned: set[TP], *__: Any, **___: Any) -> None:
        numbers = sorted(tp.partition for tp in assigned if tp.topic == topics.events)
        log.info("assigned", partitions=numbers)
        pump.moved(numbers)

    async def on_revoked(_: Any, revoked: set[TP], *__: Any, **___: Any) -> None:
        log.info("revoked", partitions=sorted(tp.partition for tp in revoked if tp.topic == topics.events))
        pump.ready = False
        try:
            await asyncio.wait_for(pump.settle(), REVOKED_WITHIN)
        except TimeoutError:
            log.warning("revoked_without_snapshot", within=REVOKED_WITHIN)

    async def on_shutdown(_: Any, *__: Any, **___: Any) -> None:
        try:
            if dashboard is not None:
                await dashboard.close()
            await pump.stop()
        finally:
            await sender.stop()
            pump.close()
            swapper.close()
            log.info("stopped")
            on_stopped()

    # Faust's annotations want signatures that it does not itself call with.
    connect: Any
    for connect, handler in (
        (app.task, process),
        (app.task, swapper.run),
        (app.on_partitions_assigned.connect, on_assigned),
        (app.on_partitions_revoked.connect, on_revoked),
        (app.on_before_shutdown.connect, on_shutdown),
    ):
        connect(handler)
    if feed is not None and dashboard is not None:
        _add_pages(app, pump, metrics, feed)
        driver: Any = app.web
        dashboard.add_to(driver.web_app)
        app.task(feed.run)
    return app


def _add_pages(app: faust.App, pump: Pump, metrics: Metrics, feed: Feed) -> None:
    @app.page("/health")
    class Health(View):
        """Whether the worker lives; a process that does not answer here should be started anew."""

        async def get(self, request: Request) -> Response:
            stalled = pump.stalled
            return self.json({"status": "stalled" if stalled else "ok"}, status=503 if stalled else 200)

    @app.page("/ready")
    class Ready(View):
        """Whether it takes events in."""

        async def get(self, request: Request) -> Response:
            ready = pump.ready
            return self.json({"ready": ready}, status=200 if ready else 503)

    @app.page("/scores")
    class Scores(View):
        """Who answers for each graph, and how well its last answers fitted what then happened."""

        async def get(self, request: Request) -> Response:
            return self.json({name: asdict(look) for name, look in (await pump.statuses()).items()})

    @app.page("/metrics")
    class MetricsPage(View):
        """What Prometheus reads."""

        async def get(self, request: Request) -> Response:
            pump.show_lag()
            metrics.show(feed.statuses)
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
