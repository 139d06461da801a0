"""The variables of a process that belongs to a system of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# It is a system of its own, whatever the terminal is set up to work with.
_FOREIGN = ("ADATKG_CONFIG", "ADATKG_BOOTSTRAP", "ADATKG_TOPIC_PREFIX", "ADATKG_KAFKA_", "ADATKG_STREAM_")


def own_environment(bootstrap: str, scratch: Path, more: Mapping[str, str]) -> dict[str, str]:
    """What a process is told that finds its brokers there and leaves temporary files in `scratch`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return kept | {"ADATKG_BOOTSTRAP": bootstrap, "ADATKG_LOG": "info", "TMPDIR": str(scratch)} | dict(more)
