"""The routes of the web page: what it shows, what it asks, and what it may change."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
import structlog
from aiohttp import web

from adatkg_core.clock import Clock, iso_of
from adatkg_core.messages import MAX_NAME, NEXT
from adatkg_core.model_report import bundle_rows
from adatkg_core.model_store import ModelStore
from adatkg_core.portrait import Portrait
from streams import promotion
from streams.client import Client
from streams.connection import Connection
from streams.dashboard.feed import Feed
from streams.dashboard.guard import Guard, Problem, as_json
from streams.dashboard.names import NameIndex
from streams.dashboard.pages import PLOTLY, Plotly, page_file
from streams.deadletters import DeadLetter, DeadLetters, open_outbox
from streams.host import Host
from streams.mending import ready
from streams.settings import StreamSettings
from streams.topics import Topics

HEARTBEAT = 15.0  # seconds
WRITE_WITHIN = 10.0  # seconds until a reader that takes nothing is dropped
DEVICE_WITHIN = 10.0  # seconds: the device may be busy with loading a graph
BLOCKING_WITHIN = 60.0  # seconds for stores and brokers
ANSWER_WITHIN = 30.0  # seconds
ASKING = 8  # queries of pages that may wait for their answers at once
SEARCHABLE = 8  # graphs whose names are kept folded
MOST_NAMES, MOST_LETTERS, MOST_K = 50, 200, 50
SCANNED = 20  # records looked at for each dead letter wanted: among them are marks of those that were put back
TEXT = 2_000  # characters of a dead letter
T = TypeVar("T")
log = structlog.get_logger()


class Dashboard:
    """Answers for one worker. `ready` and `on_device` are the worker's own."""

    def __init__(
        self,
        settings: StreamSettings,
        group: str,
        connection: Connection,
        topics: Topics,
        host: Host,
        feed: Feed,
        ready: Callable[[], bool],
        on_device: Callable[..., Awaitable[Any]],
    ) -> None:
        self._settings, self._group, self._connection, self._topics = settings, group, connection, topics
        self._host, self._feed, self._ready, self._on_device = host, feed, ready, on_device
        self._guard, self._plotly = Guard(settings), Plotly()
        self._store, self._letters = ModelStore(settings.models), DeadLetters(connection, topics)
        self._threads = ThreadPoolExecutor(2, "dashboard")
        self._names: OrderedDict[tuple[str, str], NameIndex] = OrderedDict()
        self._client: Client | None = None
        self._opening, self._asking = asyncio.Lock(), asyncio.Semaphore(ASKING)
        self._started = datetime.now(UTC).timestamp()
        self._closing = asyncio.Event()
        self._transports: set[asyncio.Transport] = set()

    def add_to(self, app: web.Application) -> None:
        """Add routes and guard to the web application before it starts."""
        app.middlewares.append(self._guard.middleware)
        graph = "/api/graphs/{graph}"
        app.router.add_get("/", self._page)
        app.router.add_get(f"/static/{PLOTLY}", self._plotly_file)
        app.router.add_get("/static/{name:.+}", self._file)
        app.router.add_get("/api/overview", self._overview)
        app.router.add_get("/api/stream", self._stream, allow_head=False)
        app.router.add_get(f"{graph}/predictions", self._predictions)
        app.router.add_get(f"{graph}/names", self._find_names)
        app.router.add_get(f"{graph}/entity", self._entity)
        app.router.add_post(f"{graph}/ask", self._ask)
        app.router.add_get(f"{graph}/models", self._models)
        app.router.add_post(f"{graph}/promote", self._promote)
        app.router.add_post(f"{graph}/rollback", self._roll_back)
        app.router.add_get("/api/deadletters", self._dead_letters)
        app.router.add_post("/api/deadletters/retry", self._retry)

    async def close(self) -> None:
        """End what is under way, so that nobody who looks keeps the worker from ending."""
        self._closing.set()
        self._feed.close()
        await asyncio.sleep(0)
        for transport in self._transports:
            transport.abort()
        self._threads.shutdown(wait=False, cancel_futures=True)
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    # -- the page and what moves on it ------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return page_file("index.html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return page_file(request.match_info["name"])

    async def _plotly_file(self, request: web.Request) -> web.StreamResponse:
        headers = self._plotly.headers("v" in request.query)
        if self._plotly.is_known(request):
            return web.Response(status=304, headers=headers)
        compressed = "gzip" in request.headers.get("Accept-Encoding", "")
        body = await self._in_thread(self._plotly.read, compressed)
        return web.Response(body=body, headers=headers | ({"Content-Encoding": "gzip"} if compressed else {}))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        reader = self._feed.broadcast.join()
        if reader is None:
            raise Problem(503, "/api/stream: too many are watching already, or the worker ends; close a page")
        transport = request.transport
        assert transport is not None
        self._transports.add(transport)
        try:
            response = web.StreamResponse(
                headers={
                    "Content-Type": "text/event-stream; charset=utf-8",
                    "Cache-Control": "no-store",
                    "X-Accel-Buffering": "no",
                    **self._guard.headers,
                }
            )
            await response.prepare(request)
            await response.write(b"retry: 2000\n\n")
            while (data := await reader.take(HEARTBEAT)) is not None:
                async with asyncio.timeout(WRITE_WITHIN):
                    await response.write(data)
        except (TimeoutError, ConnectionError):
            transport.abort()  # what waits for a reader that takes nothing is given up
        finally:
            self._transports.discard(transport)
            self._feed.broadcast.leave(reader)
        return response

    async def _overview(self, request: web.Request) -> web.StreamResponse:
        graphs = []
        for name, look in self._feed.looks.items():
            shown = asdict(look)
            graphs.append({"graph": name, "state_bytes": shown.pop("size"), **shown})
        worker = {
            "group": self._group,
            "replica": self._settings.replica,
            "replicas": self._settings.replicas,
            "started": round(self._started, 3),
            "ready": self._ready(),
            "changes": self._guard.changes,
        }
        history = [orjson.Fragment(sample) for sample in self._feed.history]
        return as_json({"worker": worker, "graphs": graphs, "history": history})

    async def _predictions(self, request: web.Request) -> web.StreamResponse:
        return as_json({"predictions": self._feed.latest.rows(self._here(request))})

    # -- names and entities -----------------------------------------------------------------------------------

    async def _find_names(self, request: web.Request) -> web.StreamResponse:
        graph, kind = request.match_info["graph"], request.query.get("kind", "entity")
        if kind not in ("entity", "relation"):
            raise Problem(400, f"kind is {kind!r}: ask for entity or relation")
        wanted, limit = request.query.get("q", ""), _number(request, "limit", 10, MOST_NAMES)
        if len(wanted) > MAX_NAME:
            raise Problem(400, f"q has {len(wanted)} characters: at most {MAX_NAME}")
        found = await self._on_time(self._on_device(self._host.names, graph), DEVICE_WITHIN, "the device")
        if found is None:
            raise _not_here(graph)
        names = found[kind == "relation"]
        index = self._names.get((graph, kind))
        if index is None or index.names is not names:
            index = self._names[graph, kind] = NameIndex(names)
        self._names.move_to_end((graph, kind))
        while len(self._names) > 2 * SEARCHABLE:
            self._names.popitem(last=False)
        return as_json({"names": await self._in_thread(index.search, wanted, limit)})

    async def _entity(self, request: web.Request) -> web.StreamResponse:
        graph, name = request.match_info["graph"], request.query.get("name", "")
        if not name.strip() or len(name) > MAX_NAME:
            raise Problem(400, f"name has {len(name)} characters: give an entity's name, at most {MAX_NAME}")
        found: tuple[Portrait, Clock | None] | None = await self._on_time(
            self._on_device(self._host.portrait, graph, name), DEVICE_WITHIN, "the device"
        )
        if found is None:
            raise _not_here(graph)
        portrait, clock = found
        facts = [
            {"s": fact.s, "r": fact.r, "o": fact.o, "t": fact.t, "t_iso": iso_of(clock, fact.t)}
            for fact in portrait.facts
        ]
        return as_json(
            {
                "name": portrait.name,
                "known": portrait.known,
                "interactions": portrait.interactions,
                "updates": portrait.updates,
                "gate": round(portrait.gate, 6),
                "memory_norm": round(portrait.memory_norm, 6),
                "cluster": portrait.cluster,
                "cluster_size": portrait.cluster_size,
                "cluster_members": portrait.cluster_members,
                "facts": facts,
                "trace": self._feed.traces.trace(graph, name, clock),
            }
        )

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        graph, values = request.match_info["graph"], await _body(request)
        if graph not in self._feed.looks and graph not in await self._in_thread(self._store.graphs):
            raise _not_here(graph)
        subject, other = values.get("subject"), values.get("object")
        if (subject is None) == (other is None):
            raise Problem(400, "give subject or object: the other is what is asked for")
        if (relation := values.get("relation")) is None:
            raise Problem(400, "relation is missing: give one that the graph knows")
        k = values.get("k", 10)
        if type(k) is not int or not 1 <= k <= MOST_K:
            raise Problem(400, f"k is {k!r}: it must be a whole number from 1 to {MOST_K}")
        if self._asking.locked():
            raise Problem(503, "too many queries from pages wait for their answers: ask again in a moment")
        async with self._asking:
            asked = self._asked(graph, relation, subject, other, values.get("time", NEXT), k)
            return as_json(await self._on_time(asked, 2 * ANSWER_WITHIN, "the brokers"))

    # -- models -----------------------------------------------------------------------------------------------

    async def _models(self, request: web.Request) -> web.StreamResponse:
        graph = request.match_info["graph"]

        def read() -> dict[str, Any]:
            if graph not in self._store.graphs():
                raise _no_models(graph, self._store)
            rows = [_model(row) for row in reversed(bundle_rows(self._store, graph))]
            return {"present": self._store.present(graph), "models": rows}

        return as_json(await self._in_thread(read))

    async def _promote(self, request: web.Request) -> web.StreamResponse:
        graph, values = request.match_info["graph"], await self._change(request)
        version, force = values.get("version"), values.get("force", False)
        if not isinstance(version, str) or not version or not isinstance(force, bool):
            raise Problem(400, "version is missing: give one of the graph's models; force may be true or false")

        def change() -> str:
            promotion.promote(self._models_of(graph), graph, version, self._reach, _warn, forced=force)
            return version

        return as_json({"graph": graph, "version": await self._in_thread(change)})

    async def _roll_back(self, request: web.Request) -> web.StreamResponse:
        graph, _ = request.match_info["graph"], await self._change(request)

        def change() -> str:
            return promotion.roll_back(self._models_of(graph), graph, self._reach, _warn)[0]

        return as_json({"graph": graph, "version": await self._in_thread(change)})

    def _models_of(self, graph: str) -> ModelStore:
        if graph not in self._store.graphs():
            raise _no_models(graph, self._store)
        return self._store

    def _reach(self) -> promotion.Tell:
        return promotion.teller(self._connection, self._topics, self._store.url)

    # -- dead letters -----------------------------------------------------------------------------------------

    async def _dead_letters(self, request: web.Request) -> web.StreamResponse:
        limit = _number(request, "limit", 50, MOST_LETTERS)
        letters: list[DeadLetter] = await self._in_thread(self._letters.latest, SCANNED * limit, 4 * TEXT)
        newest = sorted(letters, key=lambda letter: letter.timestamp)[::-1][:limit]
        return as_json({"letters": [_letter(letter) for letter in newest]})

    async def _retry(self, request: web.Request) -> web.StreamResponse:
        values = await self._change(request)
        partition, offset = values.get("partition"), values.get("offset")
        if type(partition) is not int or type(offset) is not int or min(partition, offset) < 0:
            raise Problem(400, "give partition and offset of a dead letter, as the list has them")

        def put_back() -> None:
            letter = self._letters.find(partition, offset)
            with open_outbox(self._connection, self._topics) as outbox:
                outbox.retry([(letter, ready(letter, letter.value, untouched=True, again=False))])

        await self._in_thread(put_back)
        return as_json({"retried": 1})

    # -- private ----------------------------------------------------------------------------------------------

    def _here(self, request: web.Request) -> str:
        graph = request.match_info["graph"]
        if graph not in self._feed.looks:
            raise _not_here(graph)
        return graph

    async def _change(self, request: web.Request) -> dict[str, Any]:
        self._guard.authorize(request)
        return await _body(request)

    async def _asked(self, graph: str, relation: Any, subject: Any, other: Any, time: Any, k: int) -> dict[str, Any]:
        async with self._opening:
            if self._client is None:
                self._client = await Client(self._connection, self._topics).__aenter__()
        answer = await self._client.ask(
            graph, relation=relation, subject=subject, object=other, time=time, k=k, timeout=ANSWER_WITHIN
        )
        return answer.raw

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Something that waits for files or brokers, away from the event loop."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        return await self._on_time(running, BLOCKING_WITHIN, "the store or the brokers")

    async def _on_time(self, work: Awaitable[T], seconds: float, who: str) -> T:
        """The result, unless it takes too long or the worker ends."""
        working = asyncio.ensure_future(work)
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((working, closing), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if closing.done():
                raise Problem(503, "the worker ends; ask another one")
            raise Problem(504, f"{who} did not answer within {seconds:g} s; see the worker's log, or ask again")
        finally:
            closing.cancel()
            if not working.done():
                working.cancel()


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        values = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise Problem(400, f"the body is not JSON ({error}): send a JSON object") from error
    if not isinstance(values, dict):
        raise Problem(400, "the body must be a JSON object")
    return values


def _number(request: web.Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isdecimal() or not text.isascii() or not 1 <= int(text[:9]) <= most:
        raise Problem(400, f"{name} is {text[:20]!r}: it must be a whole number from 1 to {most}")
    return int(text)


def _not_here(graph: str) -> Problem:
    return Problem(
        404,
        f"graph {graph[:100]!r} is not on this worker: publish an event of it, or ask the worker that answers for it",
    )


def _no_models(graph: str, store: ModelStore) -> Problem:
    return Problem(404, f"{store.url}: no models of graph {graph[:100]!r}; train one with --models and --graph")


def _model(row: dict[str, Any]) -> dict[str, Any]:
    status = {"before": "former"}.get(row["is"], row["is"])
    if row["problem"] is not None:
        status = "damaged"
    elif status == "candidate" and row["better"] is False:
        status = "refused"
    reason = row["problem"] or row["reason"]
    kept = {name: row[name] for name in ("version", "created", "mrr", "measured_on", "present_mrr", "seconds", "facts")}
    return {**kept, "status": status, "reason": reason}


def _letter(letter: DeadLetter) -> dict[str, Any]:
    return {
        "graph": letter.graph,
        "reason": letter.reason,
        "detail": letter.detail,
        "partition": letter.partition,
        "offset": letter.offset,
        "at_iso": datetime.fromtimestamp(letter.timestamp / 1000, UTC).isoformat(timespec="seconds"),
        "text": (letter.value or b"").decode(errors="replace")[:TEXT],
    }


def _warn(text: str) -> None:
    log.warning("promotion", problem=text)
