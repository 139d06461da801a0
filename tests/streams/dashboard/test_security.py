"""Who gets in, and with what; over a real web server, without a worker behind it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adatkg_core.errors import AdatkgError, InputError
from streams.client import NoAnswer
from streams.dashboard import Feed
from streams.dashboard.http import Problem, as_json, body_of
from streams.dashboard.live_api import LiveApi
from streams.dashboard.security import HEADERS, OPEN, Security, needs_token
from streams.dashboard.static_files import FOLDER
from streams.dashboard.timeouts import Timeouts
from streams.settings import StreamSettings, load_settings
from streams.worker import GraphStatus

Check = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


def served(check: Check, handler: Any = None, **settings: Any) -> None:
    """Run a check against a server with a guard and two routes."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return as_json({"read": True})

    async def run() -> None:
        guard, app = Security(StreamSettings(**settings)), web.Application()

        @needs_token
        async def change(request: web.Request) -> web.StreamResponse:
            return as_json(await body_of(request))

        app.middlewares.append(guard.middleware)
        app.router.add_get("/api/read", handler or answer)
        app.router.add_post("/api/change", change)
        app.router.add_get("/health", answer)
        async with TestServer(app) as server, aiohttp.ClientSession() as session:
            await check(session, f"http://127.0.0.1:{server.port}")

    asyncio.run(run())


async def status(response: Any) -> tuple[int, str]:
    async with response as answer:
        values = await answer.json(content_type=None)
        return answer.status, values.get("error", "")


# -- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "welcome", "foreign"),
    [
        ({}, ["localhost", "LOCALHOST:6066", "127.0.0.1:1", "[::1]:6066", "[::1]"], ["evil.example", "10.0.0.1", ""]),
        ({"web_host": "10.1.2.3"}, ["10.1.2.3:6066", "localhost"], ["10.1.2.4", "evil.example:6066"]),
        ({"web_host": "::1"}, ["[::1]:80"], ["::1.evil.example", "evil.example"]),
        ({"web_names": ("kg.example",)}, ["kg.example:6066", "KG.example."], ["x.kg.example", "kg.example.evil"]),
        ({"web_host": "0.0.0.0", "web_names": ("kg.example",)}, ["kg.example"], ["0.0.0.0", "evil.example"]),
        (
            {"web_host": "0.0.0.0"},
            ["10.0.0.1:6066", "localhost", "[fe80::1]"],
            ["evil.example", "10.0.0.1.evil.example"],
        ),
        ({"web_host": "::"}, ["[2001:db8::1]:6066", socket.gethostname()], ["anything", ""]),
    ],
)
def test_only_names_of_this_worker_are_answered_to(
    settings: dict[str, Any], welcome: list[str], foreign: list[str]
) -> None:
    async def check(session: aiohttp.ClientSession, url: str) -> None:
        for name in welcome:
            assert (await status(session.get(f"{url}/api/read", headers={"Host": name})))[0] == 200, name
        for name in foreign:
            refused, text = await status(session.get(f"{url}/api/read", headers={"Host": name}))
            assert refused == 403 and "web_names" in text, name
            assert (await status(session.get(f"{url}/health", headers={"Host": name})))[0] == 200

    served(check, **settings)


def test_a_page_of_another_site_is_refused_and_our_own_is_not() -> None:
    async def check(session: aiohttp.ClientSession, url: str) -> None:
        for origin in ("http://evil.example", "null", "http://localhost:1"):
            refused, text = await status(session.get(f"{url}/api/read", headers={"Origin": origin}))
            assert refused == 403 and origin in text
        assert (await status(session.get(f"{url}/api/read", headers={"Origin": url})))[0] == 200

    served(check)


# -- the token ----------------------------------------------------------------------------------------------------


def test_changes_need_the_token_and_are_off_without_one() -> None:
    async def off(session: aiohttp.ClientSession, url: str) -> None:
        for token in ("", "Bearer ", "Bearer x"):
            refused, text = await status(session.post(f"{url}/api/change", json={}, headers={"Authorization": token}))
            assert refused == 403 and "ADATKG_STREAM_WEB_TOKEN" in text

    async def on(session: aiohttp.ClientSession, url: str) -> None:
        async with session.post(f"{url}/api/change", json={}) as answer:
            assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
        for token in ("sesame", "Bearer sesam", "Bearer Sesame", "Bearer sesame2", "Basic sesame", "Bearer s\xe9same"):
            refused, text = await status(session.post(f"{url}/api/change", json={}, headers={"Authorization": token}))
            assert refused == 401 and "sesam" not in text
        async with session.post(
            f"{url}/api/change", json={"a": 'é"<'}, headers={"Authorization": "Bearer sesame"}
        ) as answer:
            assert answer.status == 200 and await answer.json() == {"a": 'é"<'}

    served(off)
    served(on, web_token="sesame")


def test_a_body_must_be_a_json_object_and_say_so() -> None:
    async def check(session: aiohttp.ClientSession, url: str) -> None:
        right = {"Authorization": "Bearer sesame"}
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            headers = right | {"Content-Type": kind}
            refused, text = await status(session.post(f"{url}/api/change", data=b"{}", headers=headers))
            assert refused == 400 and "application/json" in text
        headers = right | {"Content-Type": "application/json"}
        for body in (b"", b"{", b"[1]", b'"x"', b"\xff"):
            refused, text = await status(session.post(f"{url}/api/change", data=body, headers=headers))
            assert refused == 400 and "JSON" in text
        large = b'{"a": "%b"}' % (b"x" * (2 << 20))
        refused, text = await status(session.post(f"{url}/api/change", data=large, headers=headers))
        assert refused == 400 and "too large" in text
        wide = right | {"Content-Type": "Application/JSON; charset=utf-8"}
        assert (await status(session.post(f"{url}/api/change", data=b"{}", headers=wide)))[0] == 200

    served(check, web_token="sesame")


def test_the_token_shows_nowhere(tmp_path: Path) -> None:
    settings = load_settings(None, {}, {"ADATKG_STREAM_WEB_TOKEN": "12345", "ADATKG_STREAM_WEB_NAMES": "a.b, c"})
    assert settings.web_token == "12345" and "12345" not in repr(settings) and settings.web_names == ("a.b", "c")
    file = tmp_path / "worker.toml"
    for text in ("web_token = 98765", 'web_token = "987 65"', 'web_token = "987\\n65"'):
        file.write_text(f"[stream]\n{text}\n")
        with pytest.raises(InputError) as refused:
            load_settings(file, {}, {})
        assert "web_token" in str(refused.value) and "987" not in str(refused.value)
    for name in ("http://x", "x:80", "a/b", ""):
        with pytest.raises(InputError, match="web_names"):
            StreamSettings(web_names=(name,))
    assert load_settings(None, {}, {"ADATKG_STREAM_WEB_NAMES": '["x", "[::2]"]'}).web_names == ("x", "[::2]")


# -- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "wanted", "says"),
    [
        (Problem(404, "no such thing"), 404, "no such thing"),
        (InputError("a bad thing"), 400, "a bad thing"),
        (NoAnswer("nobody there"), 504, "nobody there"),
        (AdatkgError("brokers away"), 502, "brokers away"),
        (RuntimeError("secret inner life"), 500, "see the worker's log"),
    ],
)
def test_what_goes_wrong_is_an_answer_with_a_remedy(raised: Exception, wanted: int, says: str) -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        raise raised

    async def check(session: aiohttp.ClientSession, url: str) -> None:
        found, text = await status(session.get(f"{url}/api/read"))
        assert found == wanted and says in text and "secret" not in text

    served(check, fail)


def test_every_answer_tells_the_browser_what_it_may_do() -> None:
    async def check(session: aiohttp.ClientSession, url: str) -> None:
        for path in ("/api/read", "/nowhere", "/api/change"):
            async with session.get(f"{url}{path}") as answer:
                assert {name: answer.headers[name] for name in HEADERS} == HEADERS
                assert answer.status == {"/api/read": 200, "/nowhere": 404, "/api/change": 405}[path]
        policy = HEADERS["Content-Security-Policy"]
        assert "unsafe-eval" not in policy and "frame-ancestors 'none'" in policy and "http" not in policy

    served(check)
    assert {"/health", "/ready", "/metrics"} == OPEN, (
        "all else, /scores too, is asked for under the worker's names only"
    )


# -- watching -----------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[tuple[Feed, LiveApi, str, int]]:
    """A server with the routes that watch, whose feed the test moves."""

    async def nothing() -> tuple[dict[str, GraphStatus], float]:
        return {}, 0.0

    feed, app, patience = Feed(nothing, lambda: 0), web.Application(), Timeouts()
    watching = LiveApi(StreamSettings(), "group", feed, patience, lambda: True)
    app.middlewares.append(Security(StreamSettings()).middleware)
    watching.add_to(app.router)
    async with TestServer(app) as server:
        assert server.port is not None
        try:
            yield feed, watching, f"http://127.0.0.1:{server.port}", server.port
        finally:
            patience.close()
            await watching.close()


def test_a_connection_that_takes_nothing_is_dropped_while_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.dashboard.live_api.WRITE_WITHIN", 0.5)

    async def run() -> None:
        async with watched() as (feed, _, url, port), aiohttp.ClientSession() as session:
            lazy = socket.socket()
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            lazy.connect(("127.0.0.1", port))
            lazy.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with session.get(f"{url}/api/stream") as stream:
                while feed.broadcast.readers < 2:
                    await asyncio.sleep(0.01)
                big, sent = b'"%b"' % (b"x" * 100_000), 0
                while feed.broadcast.readers == 2:
                    feed.broadcast.send("sample", big)
                    sent += 1
                    assert sent < 10_000
                    while (await stream.content.readline()) != b"data: " + big + b"\n":
                        pass
                assert feed.broadcast.readers == 1
                feed.broadcast.send("sample", b"1")
                while (await stream.content.readline()) != b"data: 1\n":
                    pass
            lazy.close()

    asyncio.run(run())


def test_there_are_only_so_many_connections_and_those_who_left_make_room() -> None:
    async def run() -> None:
        async with watched() as (feed, _, url, _), aiohttp.ClientSession(connector=aiohttp.TCPConnector()) as session:
            open_ones = [await session.get(f"{url}/api/stream") for _ in range(32)]
            assert feed.broadcast.readers == 32
            refused, text = await status(session.get(f"{url}/api/stream"))
            assert refused == 503 and "close a page" in text
            open_ones.pop().close()
            while feed.broadcast.readers == 32:
                feed.broadcast.send("sample", b"1")
                await asyncio.sleep(0.05)
            async with session.get(f"{url}/api/stream") as again:
                assert again.status == 200 and again.content_type == "text/event-stream"
            for one in open_ones:
                one.close()

    asyncio.run(run())


def test_an_end_sends_everybody_away_also_one_that_takes_nothing() -> None:
    async def run() -> None:
        async with watched() as (feed, watching, url, port), aiohttp.ClientSession() as session:
            lazy = socket.create_connection(("127.0.0.1", port))
            lazy.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with session.get(f"{url}/api/stream") as stream:
                while feed.broadcast.readers < 2:
                    await asyncio.sleep(0.01)
                for _ in range(250):
                    feed.broadcast.send("sample", b'"%b"' % (b"x" * 100_000))
                reading = asyncio.create_task(stream.content.read())
                await watching.close()
                with contextlib.suppress(aiohttp.ClientError):
                    await reading
            assert feed.broadcast.readers == 0
            lazy.close()

    asyncio.run(run())


def test_plotly_comes_compressed_once_and_is_known_again() -> None:
    async def run() -> None:
        async with watched() as (_, _, url, _), aiohttp.ClientSession(auto_decompress=False) as session:
            async with session.get(f"{url}/static/plotly.min.js?v=1", headers={"Accept-Encoding": "gzip"}) as answer:
                packed = await answer.read()
                assert answer.headers["Content-Encoding"] == "gzip" and packed[:2] == b"\x1f\x8b"
                assert "immutable" in answer.headers["Cache-Control"] and answer.content_type == "text/javascript"
                tag = answer.headers["ETag"]
            async with session.get(f"{url}/static/plotly.min.js", headers={"Accept-Encoding": "identity"}) as answer:
                plain = await answer.read()
                assert b"plotly.js" in plain[:200] and len(plain) > 2 * len(packed)
                assert "immutable" not in answer.headers["Cache-Control"]
            async with session.get(f"{url}/static/plotly.min.js", headers={"If-None-Match": tag}) as answer:
                assert answer.status == 304

    asyncio.run(run())


def test_only_files_of_the_page_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FOLDER.parent.name == "dashboard"
    page = tmp_path / "static"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html>")
    (page / "app.js").write_text("export {}")
    (page / "notes.txt").write_text("x")
    (tmp_path / "secret.js").write_text("x")
    (page / "link.js").symlink_to(tmp_path / "secret.js")
    monkeypatch.setattr("streams.dashboard.static_files.FOLDER", page)

    async def run() -> None:
        async with watched() as (_, _, url, port), aiohttp.ClientSession() as session:
            for path, kind in (
                ("/", "text/html"),
                ("/static/index.html", "text/html"),
                ("/static/app.js", "text/javascript"),
            ):
                async with session.get(f"{url}{path}") as answer:
                    assert answer.status == 200 and answer.content_type == kind
                    assert answer.headers["Cache-Control"] == "no-cache"
            for path in (
                "../secret.js",
                "..%2fsecret.js",
                "%2e%2e/secret.js",
                "link.js",
                "notes.txt",
                "nothing.js",
                "",
            ):
                _, writer = (pair := await asyncio.open_connection("127.0.0.1", port))
                writer.write(f"GET /static/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                assert (await pair[0].readline()).split()[1] == b"404", path
                writer.close()

    asyncio.run(run())


def test_waiting_ends_with_the_worker_and_with_patience() -> None:
    async def run() -> None:
        patience = Timeouts()
        with pytest.raises(Problem) as late:
            await patience.on_time(asyncio.Event().wait(), 0.01, "the oracle")
        assert late.value.status == 504 and "the oracle" in late.value.text
        waiting = asyncio.create_task(patience.device(asyncio.Event().wait))
        await asyncio.sleep(0.01)
        patience.close()
        with pytest.raises(Problem) as ended:
            await waiting
        assert ended.value.status == 503
        with pytest.raises(Problem):
            await patience.thread(len, "x")

    asyncio.run(run())


def test_the_device_is_given_one_thing_to_look_at_at_a_time() -> None:
    async def run() -> None:
        under_way, most = 0, 0

        async def look(number: int) -> int:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001)
            under_way -= 1
            return abs(number)

        patience = Timeouts()
        assert await asyncio.gather(*(patience.device(look, -number) for number in range(10))) == list(range(10))
        assert most == 1
        patience.close()

    asyncio.run(run())


def test_json_of_any_text_comes_back_as_it_was() -> None:
    for text in ("quotes \"'", "<b>&amp;</b></script>", "😀 é \u2028", "\x00\x07\n\t\x7f\x85"):
        assert orjson.loads(as_json({"text": text}).body or b"") == {"text": text}  # type: ignore[arg-type]
