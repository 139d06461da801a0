"""A world per test, on the broker that all share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.running_system import World


@pytest.fixture
def world(bootstrap: str, tmp_path: Path) -> Iterator[World]:
    """Topics, models and snapshots that a test has for itself; no worker outlives it."""
    made = World(bootstrap, tmp_path)
    yield made
    made.close()
