"""How processes share the tests: what takes longest comes first, and what shares something costly stays together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.docs.blocks import page_before

REPOSITORY = Path(__file__).resolve().parents[2]
# What takes longest, mostly by waiting, so that no process ends long after the others: blocks first, then the rest.
LONGEST = (
    "tests/containers/",
    "tests/docs/test_pages.py",
    "tests/browser/",
    "tests/end_to_end/test_demo.py",
    "tests/end_to_end/test_secured_broker.py",
    "tests/end_to_end/",
    "tests/trainer/",
    "tests/streams/embedded_broker/",
    "tests/streams/",
    "tests/replay/",
    "tests/adatkg/",
)
# The tests of each share images, a running system, a broker or a bundle, which are made once in a process.
TOGETHER = (
    "tests/end_to_end/test_secured_broker.py",
    "tests/end_to_end/test_stock_clients.py",
    "tests/streams/embedded_broker/test_broker.py",
    "tests/streams/dashboard/test_server.py",
    "tests/adatkg/commands/test_train_evaluate.py",
)

# One after the other, too: containers come with network interfaces, and Chromium drops its requests when one appears.
NETWORK = ("tests/containers/", "tests/browser/")

PAGES = "tests/docs/test_pages.py::test_what_a_page_says_works_as_it_stands_there["


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out tests one by one, but those that belong together at once; xdist's own marks for that are not heard."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(PAGES):
            return _first_page(nodeid)
        if nodeid.startswith(NETWORK):
            return "network"
        return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid)


def _first_page(nodeid: str) -> str:
    """Pages that go on from one another belong together, the others do not."""
    page = REPOSITORY / nodeid.removeprefix(PAGES).removesuffix("]")
    while (before := page_before(page)) is not None:
        page = before
    return f"{PAGES}{page.relative_to(REPOSITORY)}]"


def by_duration(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The longest first, else in their order."""

    def rank(item: pytest.Item) -> int:
        return next((rank for rank, place in enumerate(LONGEST) if item.nodeid.startswith(place)), len(LONGEST))

    return sorted(items, key=rank)
