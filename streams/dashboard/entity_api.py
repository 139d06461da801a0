"""Routes about names and entities, and the one that asks."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import Any

from aiohttp import web

from adatkg_core.clock import iso_of
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.messages import MAX_NAME, NEXT
from adatkg_core.storage import ModelStore
from streams.client import Client, NoAnswer
from streams.dashboard.feed import Feed
from streams.dashboard.http import Problem, as_json, body_of, not_here, number_of
from streams.dashboard.name_search import NameIndex
from streams.dashboard.timeouts import Timeouts
from streams.kafka import Connection, Topics
from streams.worker import Inspector

ANSWER_WITHIN = 30.0  # seconds
LEAVE_WITHIN = 2.0  # seconds
ASKING = 8  # queries of pages that may wait for their answers at once
INDEXES = 16  # lists of names that are kept folded
MOST_NAMES = MOST_K = 50
NEAREST = 6  # names that one may have meant instead


class EntityApi:
    """Finds names, shows entities, and asks the stream what it expects of them."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        store: ModelStore,
        inspector: Inspector,
        feed: Feed,
        patience: Timeouts,
    ) -> None:
        self._connection, self._topics, self._store = connection, topics, store
        self._inspector, self._feed, self._patience = inspector, feed, patience
        self._names: OrderedDict[tuple[str, str], NameIndex] = OrderedDict()
        self._client: Client | None = None
        self._opening, self._asking = asyncio.Lock(), asyncio.Semaphore(ASKING)

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the routes."""
        router.add_get("/api/graphs/{graph}/names", self._find)
        router.add_get("/api/graphs/{graph}/nearest", self._find_nearest)
        router.add_get("/api/graphs/{graph}/entity", self._show)
        router.add_post("/api/graphs/{graph}/ask", self._ask)

    async def close(self) -> None:
        """Leave the brokers; where they are away they are not waited for."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(client.close(), LEAVE_WITHIN)

    async def _find(self, request: web.Request) -> web.StreamResponse:
        index, wanted = await self._index_for(request)
        limit = number_of(request, "limit", 10, MOST_NAMES)
        return as_json({"names": await self._patience.thread(index.search, wanted, limit)})

    async def _find_nearest(self, request: web.Request) -> web.StreamResponse:
        index, wanted = await self._index_for(request)
        known = await self._patience.thread(index.names.__contains__, wanted)
        names = [] if known else await self._patience.thread(index.nearest, wanted, NEAREST)
        return as_json({"known": known, "names": names})

    async def _index_for(self, request: web.Request) -> tuple[NameIndex, str]:
        """The names that a request is about, and what it looks for among them."""
        graph, kind = request.match_info["graph"], request.query.get("kind", "entity")
        if kind not in ("entity", "relation"):
            raise Problem(400, f"kind is {kind[:20]!r}: ask for entity or relation")
        wanted = request.query.get("q", "")
        if len(wanted) > MAX_NAME:
            raise Problem(400, f"q has {len(wanted)} characters: at most {MAX_NAME}")
        found = await self._patience.device(self._inspector.names, graph)
        if found is None:
            raise not_here(graph)
        names = found[kind == "relation"]
        index = self._names.get((graph, kind))
        if index is None or index.names is not names:  # another version has a list of its own
            index = self._names[graph, kind] = NameIndex(names)
        self._names.move_to_end((graph, kind))
        if len(self._names) > INDEXES:
            self._names.popitem(last=False)
        return index, wanted

    async def _show(self, request: web.Request) -> web.StreamResponse:
        graph, name = request.match_info["graph"], request.query.get("name", "")
        if not name.strip() or len(name) > MAX_NAME:
            raise Problem(400, f"name has {len(name)} characters: give an entity's name, at most {MAX_NAME}")
        found = await self._patience.device(self._inspector.entity, graph, name)
        if found is None:
            raise not_here(graph)
        profile, clock = found
        facts = [
            {"s": fact.s, "r": fact.r, "o": fact.o, "t": fact.t, "t_iso": iso_of(clock, fact.t)}
            for fact in profile.facts
        ]
        return as_json(
            {
                "name": profile.name,
                "known": profile.known,
                "interactions": profile.interactions,
                "updates": profile.updates,
                "gate": round(profile.gate, 6),
                "memory_norm": round(profile.memory_norm, 6),
                "cluster": profile.cluster,
                "cluster_size": profile.cluster_size,
                "cluster_members": profile.cluster_members,
                "facts": facts,
                "trace": self._feed.traces.trace(graph, name, clock),
            }
        )

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        graph, values = request.match_info["graph"], await body_of(request)
        if graph not in self._feed.statuses and graph not in await self._patience.thread(self._store.graphs):
            raise not_here(graph)
        subject, other, relation = values.get("subject"), values.get("object"), values.get("relation")
        if (subject is None) == (other is None):
            raise Problem(400, "give subject or object: the other is what is asked for")
        if relation is None:
            raise Problem(400, "relation is missing: give one that the graph knows")
        k = values.get("k", 10)
        if type(k) is not int or not 1 <= k <= MOST_K:
            raise Problem(400, f"k is {str(k)[:20]}: it must be a whole number from 1 to {MOST_K}")
        if self._asking.locked():
            raise Problem(503, "too many queries from pages wait for their answers: ask again in a moment")
        async with self._asking:
            asked = self._answer(graph, relation, subject, other, values.get("time", NEXT), k)
            return as_json(await self._patience.on_time(asked, 2 * ANSWER_WITHIN, "the brokers"))

    async def _answer(self, graph: str, relation: Any, subject: Any, other: Any, time: Any, k: int) -> dict[str, Any]:
        async with self._opening:
            if self._client is None:
                self._client = await Client(self._connection, self._topics).__aenter__()
            client = self._client
        try:
            answer = await client.ask(
                graph, relation=relation, subject=subject, object=other, time=time, k=k, timeout=ANSWER_WITHIN
            )
        except (InputError, NoAnswer):
            raise
        except AdatkgError:
            await self.close()  # whatever has become of this connection, the next query gets a new one
            raise
        return answer.raw
