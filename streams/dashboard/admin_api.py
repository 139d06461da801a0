"""Routes about what is kept, models and dead letters, and those that change something there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import structlog
from aiohttp import web

from adatkg_core.storage import ModelStore, bundle_rows
from streams.dashboard.http import Problem, as_json, body_of, number_of
from streams.dashboard.security import needs_token
from streams.dashboard.timeouts import Timeouts
from streams.dead_letters import DeadLetter, DeadLetters, open_outbox, ready
from streams.kafka import Connection, Topics
from streams.promotion import Tell, promote, roll_back, teller

MOST_LETTERS = 200
SCANNED = 20  # records looked at for each dead letter wanted: among them are marks of those that were put back
TEXT = 2_000  # characters of a dead letter
log = structlog.get_logger()


class AdminApi:
    """Shows models and dead letters to all, and lets those with the token change them."""

    def __init__(self, connection: Connection, topics: Topics, store: ModelStore, patience: Timeouts) -> None:
        self._connection, self._topics, self._store, self._patience = connection, topics, store, patience
        self._letters = DeadLetters(connection, topics)

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Add the routes."""
        router.add_get("/api/graphs/{graph}/models", self._models)
        router.add_post("/api/graphs/{graph}/promote", self._promote)
        router.add_post("/api/graphs/{graph}/rollback", self._roll_back)
        router.add_get("/api/deadletters", self._dead_letters)
        router.add_post("/api/deadletters/retry", self._retry)

    # -- models -----------------------------------------------------------------------------------------------

    async def _models(self, request: web.Request) -> web.StreamResponse:
        graph = request.match_info["graph"]

        def read() -> dict[str, Any]:
            rows = bundle_rows(self._store_of(graph), graph)
            return {"present": self._store.present(graph), "models": [_model(row) for row in reversed(rows)]}

        return as_json(await self._patience.thread(read))

    @needs_token
    async def _promote(self, request: web.Request) -> web.StreamResponse:
        graph, values = request.match_info["graph"], await body_of(request)
        version, force = values.get("version"), values.get("force", False)
        if not isinstance(version, str) or not version:
            raise Problem(400, "version is missing: give one of the graph's models")
        if not isinstance(force, bool):
            raise Problem(400, "force must be true or false")

        def change() -> None:
            promote(self._store_of(graph), graph, version, self._reach, _warn, forced=force)

        await self._patience.thread(change)
        log.info("promoted_from_the_page", graph=graph, version=version, forced=force)
        return as_json({"graph": graph, "version": version})

    @needs_token
    async def _roll_back(self, request: web.Request) -> web.StreamResponse:
        graph, _ = request.match_info["graph"], await body_of(request)

        def change() -> str:
            return roll_back(self._store_of(graph), graph, self._reach, _warn)[0]

        version = await self._patience.thread(change)
        log.info("rolled_back_from_the_page", graph=graph, version=version)
        return as_json({"graph": graph, "version": version})

    def _store_of(self, graph: str) -> ModelStore:
        if graph not in self._store.graphs():
            raise Problem(404, f"{self._store.url}: no models of graph {graph[:100]!r}; train one with --graph")
        return self._store

    def _reach(self) -> Tell:
        return teller(self._connection, self._topics, self._store.url)

    # -- dead letters -----------------------------------------------------------------------------------------

    async def _dead_letters(self, request: web.Request) -> web.StreamResponse:
        limit = number_of(request, "limit", 50, MOST_LETTERS)
        letters = await self._patience.thread(self._letters.latest, SCANNED * limit, 4 * TEXT)
        newest = sorted(letters, key=lambda letter: (letter.timestamp, letter.offset), reverse=True)
        return as_json({"letters": [_letter(letter) for letter in newest[:limit]]})

    @needs_token
    async def _retry(self, request: web.Request) -> web.StreamResponse:
        values = await body_of(request)
        partition, offset = values.get("partition"), values.get("offset")
        if type(partition) is not int or type(offset) is not int or min(partition, offset) < 0:
            raise Problem(400, "give partition and offset of a dead letter, as the list has them")

        def put_back() -> str:
            letter = self._letters.find(partition, offset)
            value = ready(letter, letter.value, untouched=True, again=False)
            with open_outbox(self._connection, self._topics) as outbox:
                outbox.retry([(letter, value)])
            return letter.id

        log.info("retried_from_the_page", letter=await self._patience.thread(put_back))
        return as_json({"retried": 1})


def _model(row: dict[str, Any]) -> dict[str, Any]:
    status = {"before": "former"}.get(row["is"], row["is"])
    if row["problem"] is not None:
        status = "damaged"
    elif status == "candidate" and row["better"] is False:
        status = "refused"
    kept = {name: row[name] for name in ("version", "created", "mrr", "measured_on", "present_mrr", "seconds", "facts")}
    return {**kept, "status": status, "reason": row["problem"] or row["reason"]}


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
