"""One running system for the folder, a browser per file, a visit per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.support.live_dashboard import Live, running_system
from tests.support.visit import Visit, chromium, visiting


# Not for the whole session: while it is open its event loop counts as running, and other tests want their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium; without one the tests are skipped with the remedy."""
    with sync_playwright() as playwright, chromium(playwright) as opened:
        yield opened


@pytest.fixture(scope="session")
def live(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A worker that answers a replay, for all tests of this folder."""
    with running_system(bootstrap, tmp_path_factory.mktemp("live")) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, live: Live) -> Iterator[Visit]:
    """A visit to the running system on a desktop, clean to its end."""
    with visiting(browser, live.address) as opened:
        yield opened
