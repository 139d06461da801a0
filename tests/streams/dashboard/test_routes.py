"""Every route of a worker, tried by those who must not get in: by its own declaration, over a real web server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.app import create_app
from streams.dashboard.security import Access, access_of
from streams.kafka import Connection, Topics
from streams.settings import StreamSettings

TOKEN = "a-token-for-routes"
JSON = {"Content-Type": "application/json"}
Route = tuple[str, str, Access]


@contextlib.asynccontextmanager
async def serving(token: str = TOKEN) -> AsyncIterator[tuple[list[Route], str, aiohttp.ClientSession]]:
    """The web application of a worker that was never started, its routes, and somebody to call them."""
    made: Any = create_app(StreamSettings(web_token=token), Connection(), Topics())
    app: web.Application = made.web.web_app
    routes = [
        (route.method, path.format(graph="g", name="x.js"), access_of(route.handler, path))
        for route in app.router.routes()
        if route.method != "HEAD" and route.resource is not None and (path := route.resource.canonical)
    ]
    async with TestServer(app) as server, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield routes, f"http://127.0.0.1:{server.port}", session


def tried(check: Callable[[list[Route], str, aiohttp.ClientSession], Awaitable[None]], token: str = TOKEN) -> None:
    async def run() -> None:
        async with serving(token) as (routes, url, session):
            await check(routes, url, session)

    asyncio.run(run())


async def called(
    session: aiohttp.ClientSession, url: str, route: Route, headers: Mapping[str, str], data: bytes = b"{}"
) -> tuple[int, str]:
    body = data if route[0] == "POST" else None
    async with session.request(route[0], f"{url}{route[1]}", data=body, headers={**JSON, **headers}) as answer:
        return answer.status, await answer.text()


def test_another_sites_page_and_a_strange_name_get_into_no_route_but_the_open_ones() -> None:
    async def check(routes: list[Route], url: str, session: aiohttp.ClientSession) -> None:
        closed = [route for route in routes if route[2] is not Access.OPEN]
        assert len(closed) > 10 and {route[1] for route in routes} - {route[1] for route in closed} >= {"/health"}
        for route in closed:
            right = {"Authorization": f"Bearer {TOKEN}"}
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
                status, text = await called(session, url, route, right | headers)
                assert status == 403 and TOKEN not in text, (route, headers)

    tried(check)


def test_no_route_that_changes_something_is_open_without_the_right_token() -> None:
    async def check(routes: list[Route], url: str, session: aiohttp.ClientSession) -> None:
        changing = [route for route in routes if route[2] is Access.TOKEN]
        assert {route[1] for route in changing} == {
            "/api/graphs/g/promote",
            "/api/graphs/g/rollback",
            "/api/deadletters/retry",
        }
        # Whatever is a POST changes something, except for a question.
        assert {route for route in routes if route[0] != "GET"} - set(changing) <= {
            ("POST", "/api/graphs/g/ask", Access.NAMES)
        }
        for route in changing:
            wrong: list[dict[str, str]] = [
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": TOKEN},
                {"Cookie": TOKEN},
            ]
            for headers in wrong:
                status, text = await called(session, url, route, headers)
                assert status == 401 and TOKEN not in text, (route, headers)

    tried(check)


def test_without_a_token_nobody_may_change_anything() -> None:
    async def check(routes: list[Route], url: str, session: aiohttp.ClientSession) -> None:
        for route in routes:
            if route[2] is Access.TOKEN:
                assert (await called(session, url, route, {"Authorization": "Bearer "}))[0] == 403

    tried(check, token="")


def test_ten_megabytes_are_refused_by_every_route_that_takes_a_body() -> None:
    async def check(routes: list[Route], url: str, session: aiohttp.ClientSession) -> None:
        large = b'{"subject": "%b"}' % (b"x" * (10 << 20))
        for route in (route for route in routes if route[0] == "POST"):
            with contextlib.suppress(aiohttp.ClientConnectionError):  # it need not be read to its end
                status, text = await called(session, url, route, {"Authorization": f"Bearer {TOKEN}"}, large)
                assert status == 400 and "too large" in text, route

    tried(check)


def test_a_body_that_comes_too_slowly_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.dashboard.http.BODY_WITHIN", 0.1)

    async def check(routes: list[Route], url: str, session: aiohttp.ClientSession) -> None:
        for method, path, _ in (route for route in routes if route[0] == "POST"):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Authorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n{{".encode())
            assert b" 408 " in await reader.readline(), path
            writer.close()

    tried(check)


def test_of_a_thousand_who_watch_only_so_many_are_served_and_all_others_are_told() -> None:
    async def check(routes: list[Route], url: str, session: aiohttp.ClientSession) -> None:
        answers = await asyncio.gather(*(session.get(f"{url}/api/stream") for _ in range(1_000)))
        found = [answer.status for answer in answers]
        assert found.count(200) == 32 and found.count(503) == 968
        async with session.get(f"{url}/static/app.js") as page:
            assert page.status in (200, 404)
        for answer in answers:
            answer.close()

    tried(check)
