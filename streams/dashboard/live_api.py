"""Routes of the page itself and of what moves on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import orjson
from aiohttp import web

from streams.dashboard.feed import Feed
from streams.dashboard.http import Problem, as_json, not_here
from streams.dashboard.security import HEADERS
from streams.dashboard.static_files import PLOTLY, Plotly, page_file
from streams.dashboard.timeouts import Timeouts
from streams.settings import StreamSettings

HEARTBEAT = 15.0  # seconds without anything to tell
WRITE_WITHIN = 10.0  # seconds until a reader that takes nothing is dropped
GOODBYE = 0.5  # seconds for those who watch to take their leave when the worker ends
EVENTS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class LiveApi:
    """The files, the overview, the latest predictions, and the stream of events."""

    def __init__(
        self, settings: StreamSettings, group: str, feed: Feed, patience: Timeouts, ready: Callable[[], bool]
    ) -> None:
        self._worker = {"group": group, "replica": settings.replica, "replicas": settings.replicas}
        self._worker |= {"started": round(time.time(), 3), "changes": bool(settings.web_token)}
        self._feed, self._patience, self._ready, self._plotly = feed, patience, ready, Plotly()
        self._watched_by: set[asyncio.Transport] = set()

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the routes."""
        router.add_get("/", self._page)
        router.add_get(f"/static/{PLOTLY}", self._plotly_file)
        router.add_get("/static/{name:.+}", self._file)
        router.add_get("/api/overview", self._overview)
        router.add_get("/api/stream", self._stream, allow_head=False)
        router.add_get("/api/graphs/{graph}/predictions", self._predictions)

    async def close(self) -> None:
        """Send everybody away; one that takes nothing more is not waited for."""
        self._feed.close()
        for _ in range(round(GOODBYE / 0.01)):
            if self._watched_by:
                await asyncio.sleep(0.01)
        for transport in self._watched_by:
            transport.abort()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return page_file("index.html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return page_file(request.match_info["name"])

    async def _plotly_file(self, request: web.Request) -> web.StreamResponse:
        headers = self._plotly.headers("v" in request.query)
        if self._plotly.is_known(request):
            return web.Response(status=304, headers=headers)
        compressed = "gzip" in request.headers.get("Accept-Encoding", "")
        body = await self._patience.thread(self._plotly.read, compressed)
        return web.Response(body=body, headers=headers | ({"Content-Encoding": "gzip"} if compressed else {}))

    async def _overview(self, request: web.Request) -> web.StreamResponse:
        graphs = [
            {
                "graph": name,
                "version": status.version,
                "watermark": status.watermark,
                "watermark_iso": status.watermark_iso,
                "entities": status.entities,
                "relations": status.relations,
                "state_bytes": status.size,
                "scores": status.scores,
                "heuristic": status.heuristic,
                "horizon": status.horizon,
                "unsettled": status.unsettled,
            }
            for name, status in self._feed.statuses.items()
        ]
        history = [orjson.Fragment(sample) for sample in self._feed.history]
        worker, incidents = self._worker | {"ready": self._ready()}, self._feed.incidents()
        return as_json({"worker": worker, "graphs": graphs, "incidents": incidents, "history": history})

    async def _predictions(self, request: web.Request) -> web.StreamResponse:
        graph = request.match_info["graph"]
        if graph not in self._feed.statuses:
            raise not_here(graph)
        return as_json({"predictions": self._feed.latest.rows(graph)})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        reader, transport = self._feed.broadcast.join(), request.transport
        if reader is None or transport is None:
            raise Problem(503, "/api/stream: too many are watching already, or the worker ends; close a page")
        self._watched_by.add(transport)
        response = web.StreamResponse(headers=EVENTS | HEADERS)
        try:
            await response.prepare(request)
            await response.write(b"retry: 2000\n\n")
            while (data := await reader.take(HEARTBEAT)) is not None:
                async with asyncio.timeout(WRITE_WITHIN):
                    await response.write(data)
        except (TimeoutError, ConnectionError):
            transport.abort()  # what still waits for a reader that takes nothing is given up
        finally:
            self._watched_by.discard(transport)
            self._feed.broadcast.leave(reader)
        return response
