"""Snapshots in a store: a graph's whole state with the place in the log from which it goes on."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

import structlog

from adatkg_core.engine import Snapshot
from adatkg_core.errors import InputError
from adatkg_core.storage.artifact import (
    artifact_exists,
    list_artifacts,
    read_artifact,
    remove_artifact,
    safe_name,
    sweep_partials,
    write_artifact,
)

KIND = "snapshot"
Place = tuple[int, str]  # of a snapshot: its offset, and the version of the bundle that made it
log = structlog.get_logger()


class LastEvent(NamedTuple):
    """By what the last event in a state is known again: an election may put another one into its place."""

    offset: int
    digest: str


@dataclass(frozen=True)
class Saved:
    """A state, the bundle that made it, and what of the log is in it.

    `offset` is that of the next event to apply, in the log whose id `log` is; empty: in any that begins
    anew. Facts up to the time `known_through` came from files: where the log brings them again, they are known already.
    `origins` are partitions and the highest offset in each of the events that were moved from there into this log.
    `last` is the graph's last event in it, where that is known.
    """

    snapshot: Snapshot
    graph: str
    version: str
    offset: int
    known_through: int | None = None
    log: str = ""
    origins: tuple[tuple[int, int], ...] = ()
    last: LastEvent | None = None

    @property
    def place(self) -> Place:
        """Where it stands, and which bundle made it."""
        return self.offset, self.version


def write_snapshot(url: str, saved: Saved, *, replace: bool = False) -> None:
    """Write it so that a reader sees all of it or nothing."""
    meta = {
        "graph": saved.graph,
        "version": saved.version,
        "offset": saved.offset,
        "known_through": saved.known_through,
        "log": saved.log,
        "origins": [list(pair) for pair in saved.origins],
        "last": None if saved.last is None else list(saved.last),
        "engine": saved.snapshot.meta,
    }
    write_artifact(url, KIND, saved.snapshot.tensors, meta, replace=replace)


def read_snapshot(url: str, device: str = "cpu") -> Saved:
    """Read and check it; whatever is wrong with it is one line that says so."""
    tensors, meta = read_artifact(url, KIND, device=device)
    try:
        snapshot = Snapshot(tensors, dict(meta["engine"]))
        known, last = meta["known_through"], meta.get("last")
        return Saved(
            snapshot,
            str(meta["graph"]),
            str(meta["version"]),
            int(meta["offset"]),
            None if known is None else int(known),
            str(meta.get("log", "")),
            tuple((int(partition), int(offset)) for partition, offset in meta.get("origins", ())),
            None if last is None else LastEvent(int(last[0]), str(last[1])),
        )
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"snapshot {url}: its description lacks {error}; it was made by another program") from error


class SnapshotStore:
    """The snapshots of one graph from one log, named so that the newest sorts last."""

    def __init__(self, url: str, graph: str, log_id: str, keep: int = 3) -> None:
        self._folder = posixpath.join(url, safe_name(graph), safe_name(log_id))
        self._graph, self._keep = graph, keep

    def save(self, saved: Saved, instead_of: Collection[Place] = ()) -> str:
        """Write a snapshot, then remove those that it replaces and the oldest beyond those that are kept.

        Any other that is there already was made from the same log by the same bundle, so it is the same. Returns where
        it is.
        """
        url, wrong = self._url(saved.place), {self._url(place) for place in instead_of}
        if url in wrong or not artifact_exists(url):
            write_snapshot(url, saved, replace=url in wrong)
        for old in wrong - {url}:
            remove_artifact(old)
        for old in list_artifacts(self._folder, KIND)[: -self._keep]:
            remove_artifact(old)
        sweep_partials(self._folder)
        return url

    def _url(self, place: Place) -> str:
        offset, version = place
        return posixpath.join(self._folder, f"{offset:020d}@{safe_name(version)}")

    @property
    def exist(self) -> bool:
        """Whether there is any, sound or not."""
        return bool(list_artifacts(self._folder, KIND))

    def newest_first(self, version: str | None, device: str, limit: int | None = None) -> Iterator[Saved]:
        """The sound snapshots of this version, or of any, up to an offset; a damaged one is logged and passed over.

        A store that fails raises: the newest snapshot may be sound all the same.
        """
        for url in reversed(list_artifacts(self._folder, KIND)):
            offset, _, made_by = posixpath.basename(url).partition("@")
            if version not in (None, unquote(made_by)) or (limit is not None and int(offset) > limit):
                continue
            try:
                yield read_snapshot(url, device)
            except InputError as error:
                log.warning("snapshot_unusable", graph=self._graph, offset=offset, problem=str(error))
