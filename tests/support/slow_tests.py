"""Which tests `make test-fast` leaves out."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

# A test is slow that has one of these fixtures, in whatever way, or lies in one of these places; a single one that
# takes seconds says so by `@pytest.mark.slow`.
COSTLY = {"bootstrap", "private_broker", "secured", "browser", "engine", "live", "minilm", "tiny_model"}
SLOW = (
    "tests/adatkg/commands/test_train_evaluate.py",
    "tests/browser/",
    "tests/containers/",
    "tests/core/evaluation/test_causality.py",
    "tests/end_to_end/",
    "tests/docs/test_pages.py",
    "tests/docs/test_site.py",
    "tests/packaging/test_package.py",
    "tests/streams/embedded_broker/test_broker.py",
    "tests/trainer/fit/test_loop.py",
)


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark those that a run between two edits leaves out."""
    for item in items:
        if item.nodeid.startswith(SLOW) or not COSTLY.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
