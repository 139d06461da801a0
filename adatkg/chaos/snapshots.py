"""The snapshots of all graphs as they lie on disk, wherever a worker has put them below its folder."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from adatkg_core.errors import AdatkgError
from adatkg_core.storage import Saved, read_snapshot
from streams.kafka import EventLog

MANIFEST = "manifest.json"


def newest_snapshots(folder: str) -> list[Path]:
    """The newest of each graph, by what its name says: `OFFSET@VERSION`."""
    return [max(some, key=lambda one: one.name) for some in _by_place(folder).values()]


def base_of(snapshot: Path) -> Path:
    """The whole snapshot that one builds upon; itself where it is whole."""
    try:
        name = json.loads((snapshot / MANIFEST).read_bytes()).get("upon", {}).get("name", snapshot.name)
    except (OSError, ValueError):
        return snapshot
    return snapshot.with_name(name)


def newest_states(folder: str, graphs: Sequence[str], log: EventLog) -> dict[str, Saved | None]:
    """The newest sound state of each graph that belongs to this log."""
    logs = {log.log_id(number) for number in range(log.partitions)}
    found: dict[str, Saved | None] = dict.fromkeys(graphs)
    for some in _by_place(folder).values():
        for snapshot in sorted(some, key=lambda one: one.name):
            saved = _read(snapshot)
            if saved is not None and saved.graph in found and saved.log in logs:
                other = found[saved.graph]
                if other is None or other.offset <= saved.offset:
                    found[saved.graph] = saved
    return found


def _by_place(folder: str) -> dict[Path, list[Path]]:
    found: dict[Path, list[Path]] = defaultdict(list)
    for manifest in Path(folder).rglob(MANIFEST):
        if not manifest.parent.name.startswith("."):  # one that is being written
            found[manifest.parent.parent].append(manifest.parent)
    return found


def _read(snapshot: Path) -> Saved | None:
    """None where it is damaged, or what it builds upon."""
    try:
        return read_snapshot(str(snapshot))
    except AdatkgError:
        return None
