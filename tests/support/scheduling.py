"""How processes share the tests: what takes longest comes first, and what shares something costly stays together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.scheduler import LoadScopeScheduling

# Folders whose tests take longest, mostly by waiting, so that no process ends long after the others.
LONGEST = ("containers", "docs", "end_to_end", "browser", "trainer", "streams", "replay")
# The tests of each share images, pages, a running system, a broker or a bundle, which are made once in a process.
TOGETHER = (
    "tests/containers/",
    "tests/browser/",
    "tests/docs/test_pages.py",
    "tests/end_to_end/test_secured_broker.py",
    "tests/end_to_end/test_stock_clients.py",
    "tests/streams/embedded_broker/test_broker.py",
    "tests/streams/dashboard/test_server.py",
    "tests/adatkg/commands/test_train_evaluate.py",
)


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out tests one by one, but those that belong together at once; xdist's own marks for that are not heard."""

    def _split_scope(self, nodeid: str) -> str:
        return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid)


def by_duration(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Tests of the longest folders first, else in their order."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    return sorted(items, key=lambda item: min(ranks.get(part, len(ranks)) for part in item.path.parts))
