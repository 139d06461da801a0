"""Snapshots in a store: a graph's whole state with the place in the log from which it goes on.

One is whole, or an increment: what changed since a whole one beside it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, NamedTuple
from urllib.parse import unquote

import structlog

from adatkg_core.engine import Increment, Snapshot
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
from adatkg_core.storage.reference import read_reference, refer_to, referred_artifact

KIND = "snapshot"
INCREMENT = "increment"
_WHOLE = 2  # whole snapshots that stay at least: one that is damaged must not cost all
_ROWS = "rows."  # begins the names of tensors that say which rows changed; no tensor of a state has a dot
Place = tuple[int, str]  # of a snapshot: its offset, and the version of the bundle that made it
log = structlog.get_logger()


class LastEvent(NamedTuple):
    """By what the last event in a state is known again: an election may put another one into its place."""

    offset: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Whose a state is, the bundle that made it, and what of the log is in it.

    `offset` is that of the next event to apply, in the log whose id `log` is; empty: in any that begins
    anew. Facts up to the time `known_through` came from files: where the log brings them again, they are known already.
    `origins` are partitions and the highest offset in each of the events that were moved from there into this log.
    `last` is the graph's last event in it, where that is known.
    """

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

    def standing(self) -> dict[str, Any]:
        """The fields of this class, to make another one of the same standing."""
        return {field.name: getattr(self, field.name) for field in fields(Standing)}


@dataclass(frozen=True)
class Saved(Standing):
    """A whole state."""

    snapshot: Snapshot


@dataclass(frozen=True)
class SavedIncrement(Standing):
    """What changed of a state since the whole snapshot at the offset `base`."""

    increment: Increment
    base: int


def write_snapshot(url: str, saved: Saved) -> None:
    """Write it so that a reader sees all of it or nothing."""
    write_artifact(url, KIND, saved.snapshot.tensors, _described(saved) | {"engine": saved.snapshot.meta})


def write_increment(url: str, saved: SavedIncrement, base_url: str) -> None:
    """Write it so that a reader sees all of it or nothing; refused where the whole snapshot is not there."""
    increment = saved.increment
    tensors = increment.tensors | {_ROWS + kind: rows for kind, rows in increment.rows.items()}
    meta = _described(saved) | {"engine": increment.meta, "rows": increment.kinds}
    write_artifact(url, INCREMENT, tensors, meta, upon=refer_to(base_url))


def read_snapshot(url: str, device: str = "cpu") -> Saved:
    """Read and check a snapshot, an increment with what it builds upon; what is wrong is one line that says so."""
    reference = read_reference(url)
    if reference is None:
        tensors, meta = read_artifact(url, KIND, device=device)
        with _explained(url):
            return _saved(meta, Snapshot(tensors, dict(meta["engine"])))
    tensors, meta = read_artifact(url, INCREMENT, device=device)
    base, base_meta = read_artifact(referred_artifact(url, reference), KIND, device=device)
    with _explained(url):
        kinds = {str(name): str(kind) for name, kind in meta["rows"].items()}
        rows = {name.removeprefix(_ROWS): tensors.pop(name) for name in [*tensors] if name.startswith(_ROWS)}
        whole = Increment(tensors, rows, kinds, dict(meta["engine"])).upon(Snapshot(base, dict(base_meta["engine"])))
        return _saved(meta, whole)


class SnapshotStore:
    """The snapshots of one graph from one log, named so that the newest sorts last."""

    def __init__(self, url: str, graph: str, log_id: str, keep: int = 3) -> None:
        self._folder = posixpath.join(url, safe_name(graph), safe_name(log_id))
        self._graph, self._keep = graph, keep

    def save(self, saved: Saved | SavedIncrement, instead_of: Collection[Place] = ()) -> str:
        """Write a snapshot where those are that it replaces, then remove the oldest beyond those that are kept.

        Any other that is there already was made from the same log by the same bundle, so it is the same. Returns where
        it is.
        """
        url, wrong = self._url(saved.place), {self._url(place) for place in instead_of}
        for old in wrong:
            remove_artifact(old)
        if artifact_exists(url):
            pass
        elif isinstance(saved, Saved):
            write_snapshot(url, saved)
        else:
            write_increment(url, saved, self._url((saved.base, saved.version)))
        self._prune()
        sweep_partials(self._folder)
        return url

    def _url(self, place: Place) -> str:
        offset, version = place
        return posixpath.join(self._folder, f"{offset:020d}@{safe_name(version)}")

    @property
    def exist(self) -> bool:
        """Whether there is any, sound or not."""
        return bool(self._all())

    def newest_first(self, version: str | None, device: str, limit: int | None = None) -> Iterator[Saved]:
        """The sound snapshots of this version, or of any, up to an offset; a damaged one is logged and passed over.

        A store that fails raises: the newest snapshot may be sound all the same.
        """
        for url in reversed(self._all()):
            offset, _, made_by = posixpath.basename(url).partition("@")
            if version not in (None, unquote(made_by)) or (limit is not None and int(offset) > limit):
                continue
            try:
                yield read_snapshot(url, device)
            except InputError as error:
                log.warning("snapshot_unusable", graph=self._graph, offset=offset, problem=str(error))

    def _prune(self) -> None:
        """Remove all but the newest, what these build upon, and the newest whole ones."""
        builds_upon = {url: _name_of_base(url) for url in self._all()}
        whole = [url for url, base in builds_upon.items() if base is None]
        kept = {*list(builds_upon)[-self._keep :], *whole[-_WHOLE:]}
        needed = {builds_upon[url] for url in kept}
        for url in builds_upon:
            if url not in kept and posixpath.basename(url) not in needed:
                remove_artifact(url)

    def _all(self) -> list[str]:
        return list_artifacts(self._folder, KIND, INCREMENT)


def _name_of_base(url: str) -> str | None:
    """The name of the snapshot that one builds upon; None for a whole one, and where it does not say."""
    try:
        reference = read_reference(url)
    except InputError:
        return None
    return None if reference is None else reference["name"]


def _described(saved: Saved | SavedIncrement) -> dict[str, Any]:
    return saved.standing() | {
        "origins": [list(pair) for pair in saved.origins],
        "last": None if saved.last is None else list(saved.last),
    }


def _saved(meta: dict[str, Any], snapshot: Snapshot) -> Saved:
    known, last = meta["known_through"], meta.get("last")
    return Saved(
        snapshot,
        graph=str(meta["graph"]),
        version=str(meta["version"]),
        offset=int(meta["offset"]),
        known_through=None if known is None else int(known),
        log=str(meta.get("log", "")),
        origins=tuple((int(partition), int(offset)) for partition, offset in meta.get("origins", ())),
        last=None if last is None else LastEvent(int(last[0]), str(last[1])),
    )


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"snapshot {url}: its description lacks {error}; it was made by another program") from error
