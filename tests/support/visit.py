"""A visit to the dashboard by a real Chromium, which must leave nothing in the console and stay on the host."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request, expect

from tests.support.running_system import PATIENCE

# The first has no windows to draw and takes two fifths less processor time for a visit.
NAMES = ("chromium-headless-shell", "chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 320, "height": 640}
expect.set_options(timeout=PATIENCE * 1000)


def find_chromium(playwright: Playwright) -> str:
    """Where Chromium is; skips without one, or fails where ADATKG_REQUIRE_CHROMIUM says that there must be one."""
    named = os.environ.get("ADATKG_CHROMIUM")
    places = [named] if named else [*map(shutil.which, NAMES), playwright.chromium.executable_path]
    for place in places:
        if place and Path(place).is_file():
            return place
    where = f"ADATKG_CHROMIUM is {named}, which is no file" if named else "it is not on the path"
    problem = f"no Chromium: {where}; run `apt-get install chromium-headless-shell`, or `playwright install chromium`"
    if os.environ.get("ADATKG_REQUIRE_CHROMIUM") == "1":
        pytest.fail(problem, pytrace=False)
    pytest.skip(problem)


@contextmanager
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """A browser without a window."""
    browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=FLAGS)
    yield browser
    browser.close()


@dataclass
class Visit:
    """A page that is open, and what a visitor would not want to see."""

    page: Page
    address: str  # of the worker
    said: list[str] = field(default_factory=list)  # in the console
    left: list[str] = field(default_factory=list)  # requests to elsewhere
    expected: list[str] = field(default_factory=list)  # patterns of what the console may say in this test

    def open(self, route: str = "#/") -> Page:
        """Open a route of the page."""
        self.page.goto(f"{self.address}/{route}")
        return self.page

    def until(self, expression: str, argument: Any = None) -> Any:
        """Wait until a JavaScript expression is true of the page; returns what it then is.

        Playwright's own waiting evaluates texts inside the page, which the page's policy rightly forbids.
        """
        deadline = time.monotonic() + PATIENCE
        while not (value := self.page.evaluate(expression, argument)):
            assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s in vain until {expression}"
            self.page.wait_for_timeout(100)
        return value

    def assert_clean(self) -> None:
        """Nothing was said in the console, and nobody else was asked for anything."""
        surprises = [text for text in self.said if not any(re.search(pattern, text) for pattern in self.expected)]
        assert not surprises
        assert not self.left


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[Visit]:
    """A visit with a profile of its own; it must have been clean when it ends."""
    context = browser.new_context(**({"viewport": DESKTOP} | options))
    context.set_default_timeout(PATIENCE * 1000)
    visit = Visit(context.new_page(), address)

    def on_console(message: ConsoleMessage) -> None:
        visit.said.append(f"{message.type}: {message.text}")

    def on_request(request: Request) -> None:
        if not request.url.startswith((f"{address}/", "data:", "blob:")):
            visit.left.append(request.url)

    visit.page.on("console", on_console)
    visit.page.on("pageerror", lambda error: visit.said.append(f"exception: {error}"))
    context.on("request", on_request)
    try:
        yield visit
        visit.assert_clean()
    finally:
        context.close()
