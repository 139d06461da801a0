"""What a demonstration shows of a system, and what it does about messages and pages that it cannot read."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from structlog.testing import capture_logs

from adatkg.demo.display import panel
from adatkg.demo.mishaps import Mishaps
from adatkg.demo.observer import Watch
from adatkg.demo.plan import DATASET, Plan
from adatkg.demo.system import System
from adatkg_core.datasets import load_dataset
from adatkg_core.messages import Question, decode_event, encode_query
from streams.kafka import Connection, Topics, open_log
from tests.support.fake_graph import CLOCK, fresh_topics, prediction, send


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """One of which nothing was started."""
    with System(Plan(tmp_path / "demo", 8, 15, 1.0, 500, "tiny", 0, None, True), load_dataset(DATASET)) as made:
        yield made


@contextmanager
def watching(system: System, bootstrap: str, topics: Topics) -> Iterator[Watch]:
    with open_log(Connection(bootstrap), topics.predictions) as reader:
        yield Watch(system, reader, Mishaps())


def answer(time: int | str, offset: int) -> bytes:
    asked = decode_event(encode_query("q", "Consult", time, s="Barack Obama"), CLOCK)
    assert isinstance(asked, Question)
    return prediction(asked, DATASET, 3, offset)


def drawn(system: System, watch: Watch) -> str:
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(panel(system, watch))
    return console.export_text()


@pytest.mark.parametrize(
    ("time", "shown"), [("next", "2014-01-08"), (12, "2014-01-13"), ("2014-02-03T12:00", "2014-02-03")]
)
def test_the_panel_shows_a_question_about_any_time(system: System, bootstrap: str, time: int | str, shown: str) -> None:
    topics = fresh_topics(bootstrap)
    with watching(system, bootstrap, topics) as watch:
        assert "latest" in drawn(system, watch)
        send(bootstrap, topics.predictions, [(DATASET.encode(), answer(time, 0), ())])
        watch.look()
        assert f"{shown}: Barack Obama | Consult | ?" in drawn(system, watch)


def test_the_panel_shows_a_prediction_from_before_it_said_its_times(system: System, bootstrap: str) -> None:
    topics = fresh_topics(bootstrap)
    old = orjson.loads(answer("next", 0))
    for key in ("tick", "time", "as_of_time"):
        del old[key]
    with watching(system, bootstrap, topics) as watch:
        send(bootstrap, topics.predictions, [(DATASET.encode(), orjson.dumps(old), ())])
        watch.look()
        assert "next: Barack Obama | Consult | ?" in drawn(system, watch)


def test_messages_that_cannot_be_read_are_passed_over_and_told_once(system: System, bootstrap: str) -> None:
    topics = fresh_topics(bootstrap)
    bodies = [answer("next", 0), b"\xff{", b'{"v":1}', b"", answer("next", 1)]
    with watching(system, bootstrap, topics) as watch, capture_logs() as logs:
        send(bootstrap, topics.predictions, [(DATASET.encode(), body, ()) for body in bodies])
        watch.look()
        watch.look()
        assert watch.predictions == 2
    told = [line for line in logs if line["event"] == "demo_mishap"]
    assert [(line["doing"], line["offset"]) for line in told] == [("read a prediction", 1)]


def test_pages_and_logs_that_cannot_be_read_are_passed_over_and_told_once(system: System, bootstrap: str) -> None:
    topics = fresh_topics(bootstrap)
    system.worker_log.write_bytes(b"")
    with watching(system, bootstrap, topics) as watch, pages(b"[]") as address, capture_logs() as logs:
        watch.pages.address = address
        system.worker_log.write_bytes(b'{"half":\n[1]\n{"event":"swapped","version":"v2"}\n{"event":"swapped"}\n')
        for _ in range(2):
            assert watch.is_ready()
            watch.look()
        assert watch.story.swaps == 1 and watch.pages.version is None
    told = [line["doing"] for line in logs if line["event"] == "demo_mishap"]
    assert told == ["read the pages of the worker", "read the logs of the processes"]


@contextmanager
def pages(body: bytes) -> Iterator[str]:
    """A web server that says the same on every page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()
