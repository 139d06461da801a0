"""A worker's score that falls begins a round; one that cannot be read does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import orjson
import pytest

from trainer.retrain import DropWatch
from trainer.retrain.score_drop import ENOUGH


class Page:
    """A page with scores, as a worker has one, served for real."""

    def __init__(self) -> None:
        self.body = b"{}"
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(page.body)

            def log_message(self, format: str, *args: object) -> None:
                return None

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/scores"

    def says(self, mrr: float | None, count: int = ENOUGH) -> None:
        """What it answers from now on."""
        self.body = orjson.dumps({"g": {"scores": {"all": {"mrr": mrr, "count": count}}}})


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page()
    serving = threading.Thread(target=made.server.serve_forever)
    serving.start()
    yield made
    made.server.shutdown()
    serving.join()
    made.server.server_close()


def test_a_score_that_falls_by_the_drop_below_its_best_is_noticed(page: Page) -> None:
    watch = DropWatch(page.url, "g", 0.05)
    for mrr, fell in ((0.40, False), (0.45, False), (0.41, False), (0.399, True)):
        page.says(mrr)
        assert watch.fell() is fell, mrr
    watch.begin_anew()
    assert not watch.fell(), "what was best before a round counts no longer"


def test_too_few_answers_another_graph_or_no_page_are_no_reason(page: Page) -> None:
    watch = DropWatch(page.url, "g", 0.05)
    page.says(0.5)
    assert not watch.fell()
    page.says(0.1, count=ENOUGH - 1)
    assert not watch.fell()
    page.says(None)
    assert not watch.fell()
    page.body = b"not JSON"
    assert not watch.fell()
    assert not DropWatch(page.url, "another", 0.05).fell()
    assert not DropWatch("http://127.0.0.1:9/scores", "g", 0.05).fell()
    page.says(0.1)
    assert watch.fell(), "the best was forgotten"
