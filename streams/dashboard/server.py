"""All routes of the web page, behind one guard."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from adatkg_core.storage import ModelStore
from streams.dashboard.admin_api import AdminApi
from streams.dashboard.entity_api import EntityApi
from streams.dashboard.feed import Feed
from streams.dashboard.live_api import LiveApi
from streams.dashboard.security import Security
from streams.dashboard.timeouts import Timeouts
from streams.kafka import Connection, Topics
from streams.settings import StreamSettings
from streams.worker import Inspector


class Dashboard:
    """Answers for one worker, which is asked through `inspector` and `ready`."""

    def __init__(
        self,
        settings: StreamSettings,
        group: str,
        connection: Connection,
        topics: Topics,
        inspector: Inspector,
        feed: Feed,
        ready: Callable[[], bool],
    ) -> None:
        self._guard, self._patience, store = Security(settings), Timeouts(), ModelStore(settings.models)
        self._watching = LiveApi(settings, group, feed, self._patience, ready)
        self._entities = EntityApi(connection, topics, store, inspector, feed, self._patience)
        self._keeping = AdminApi(connection, topics, store, self._patience)

    def add_to(self, app: web.Application) -> None:
        """Add routes and guard to the web application before it starts."""
        app.middlewares.append(self._guard.middleware)
        for part in (self._watching, self._entities, self._keeping):
            part.add_to(app.router)

    async def close(self) -> None:
        """End what is under way, so that nobody who looks keeps the worker from ending."""
        self._patience.close()
        await self._watching.close()
        await self._entities.close()
