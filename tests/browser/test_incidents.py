"""What is wrong stands above every page with its reason, for as long as it is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.running_system import GRAPH, VERSION, World, ids_of, stream_of
from tests.support.visit import PHONE, visiting


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> Iterator[World]:
    made = World(bootstrap, tmp_path)
    made.add_model("sound", "spoilt")
    yield made
    made.close()


def test_a_graph_that_is_set_aside_is_told_above_every_page_until_it_is_back(browser: Browser, world: World) -> None:
    place = world.models / "spoilt" / "bundles" / VERSION / "meta.json"
    content = place.read_bytes()
    place.write_bytes(content.replace(b"version", b"Version", 1))
    worker = world.start_worker()
    with visiting(browser, f"http://127.0.0.1:{worker.port}") as visit:
        page = visit.open()
        banner = page.locator("#incidents")
        expect(banner).to_be_hidden()
        events = [event for graph in ("sound", "spoilt") for event in stream_of(GRAPH, graph, slice(0, 3))]
        world.publish(events)
        expect(banner).to_be_visible()
        expect(banner.locator(".incident")).to_have_count(1)
        expect(banner).to_contain_text("Graph spoilt cannot be loaded, its events wait in the log")
        expect(banner).to_contain_text("checksum")
        expect(banner).to_contain_text(re.compile(r"next try at \d"))
        for route in ("#/ask", "#/models", "#/deadletters", "#/"):
            visit.open(route)
            expect(banner).to_be_visible()
        if folder := os.environ.get("ADATKG_PICTURES"):
            page.screenshot(path=f"{folder}/incident.png")
            page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
            page.screenshot(path=f"{folder}/incident-phone.png")
        world.await_answers(ids_of([event for event in events if event[0] == "sound"]))
        place.write_bytes(content)
        expect(banner).to_be_hidden()
        world.await_answers(ids_of(events))
    worker.stop()
