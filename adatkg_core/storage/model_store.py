"""The model store: for each graph its bundles, the states they start from, and which one is present."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from adatkg_core.errors import InputError
from adatkg_core.storage.artifact import artifact_exists, list_artifacts, read_meta, remove_artifact, safe_name
from adatkg_core.storage.bundle import KIND as BUNDLE
from adatkg_core.storage.bundle import Bundle, load_bundle, save_bundle
from adatkg_core.storage.json_file import read_document, write_document
from adatkg_core.storage.place import locate, store_errors
from adatkg_core.storage.snapshot import KIND as SNAPSHOT
from adatkg_core.storage.snapshot import Saved, read_snapshot, write_snapshot

REMEMBERED = 20  # versions that were present before
_NAMED = "has_been_present"  # in the note of a bundle that a log may name


class ModelStore:
    """A folder or URL with `bundles/VERSION`, `states/VERSION`, `notes/VERSION.json` and `present.json` per graph."""

    def __init__(self, url: str) -> None:
        self.url = url

    def graphs(self) -> list[str]:
        """The graphs that have a place here."""
        root = locate(self.url)
        with store_errors(self.url):
            folders = root.fs.ls(root.path, detail=True) if root.is_folder else []
        names = [posixpath.basename(item["name"].rstrip("/")) for item in folders if item["type"] == "directory"]
        return sorted(unquote(name) for name in names if not name.startswith("."))

    def versions(self, graph: str) -> list[str]:
        """The bundles of a graph, by name."""
        return [unquote(posixpath.basename(url)) for url in list_artifacts(self._place(graph, "bundles"), BUNDLE)]

    def present(self, graph: str) -> str | None:
        """The version that answers for this graph; None while there is none."""
        return next(iter(self.line(graph)), None)

    def line(self, graph: str) -> list[str]:
        """The present version and those that were present before it, the latest first."""
        document = self._present_document(graph)
        return [] if document is None else [document["version"], *document.get("before", [])]

    def first(self, graph: str) -> str | None:
        """The version that answers what stands in a log before its first model event; None while there is none.

        It never changes. A store that does not name it has had no promotion since this is written down.
        """
        document = self._present_document(graph)
        return None if document is None else document.get("first", document["version"])

    def make_present(self, graph: str, version: str) -> None:
        """From now on this bundle answers; those who look find it or the one before, never none."""
        if not artifact_exists(self.bundle_url(graph, version)):
            known = ", ".join(self.versions(graph)) or "none"
            raise InputError(f"{self.url}: graph {graph} has no bundle {version}; it has {known}")
        before = [one for one in self.line(graph) if one != version]
        self._write_present(graph, version, before[:REMEMBERED])

    def roll_back(self, graph: str) -> str:
        """The one that was present before is present again; returns it."""
        line = self.line(graph)
        if len(line) < 2:
            raise InputError(f"{self.url}: graph {graph} has no bundle before the present one to go back to")
        version = line[1]
        if not artifact_exists(self.bundle_url(graph, version)):
            raise InputError(f"{self.url}: bundle {version} of graph {graph} is gone; promote one of the others")
        self._write_present(graph, version, line[2:])
        return version

    def prune(self, graph: str, keep: int) -> list[str]:
        """Remove all but the newest `keep` bundles, and return the removed.

        Never one that has been present: a log may name it, and who reads that log anew needs it. Of those that were
        long ago, the states that can be had from the log again are removed.
        """
        line = self.line(graph)
        safe = {*line, *(version for version in self.versions(graph) if self.note(graph, version).get(_NAMED))}
        by_age = sorted(self.versions(graph), key=lambda version: str(self.note(graph, version).get("created", "")))
        old = [version for version in by_age[: max(0, len(by_age) - keep)] if version not in safe]
        for version in old:
            remove_artifact(self.bundle_url(graph, version))
            remove_artifact(self._state_url(graph, version))
        for version in by_age[: max(0, len(by_age) - keep)]:
            if version in safe and version not in line[:2] and self._is_from_log(graph, version):
                remove_artifact(self._state_url(graph, version))
        return old

    def note(self, graph: str, version: str) -> dict[str, Any]:
        """What is written down about a bundle: when it was made, how it was judged; empty where nothing is."""
        return read_document(self._place(graph, "notes", f"{safe_name(version)}.json")) or {}

    def add_note(self, graph: str, version: str, **values: Any) -> None:
        """Write something down about a bundle, beside what is there already."""
        place = self._place(graph, "notes", f"{safe_name(version)}.json")
        write_document(place, (read_document(place) or {}) | values)

    def put(self, graph: str, bundle: Bundle, state: Saved | None) -> str:
        """Add a bundle and the state that it starts from; it is not present yet. Returns where it is."""
        url = self.bundle_url(graph, bundle.version)
        if artifact_exists(url):
            raise InputError(f"{url}: this version is there already; a version never changes once it is written")
        if state is not None and not artifact_exists(self._state_url(graph, bundle.version)):
            write_snapshot(self._state_url(graph, bundle.version), state)
        save_bundle(replace(bundle, graph=graph), url)
        self.add_note(graph, bundle.version, created=datetime.now(UTC).isoformat(timespec="seconds"))
        return url

    def bundle(self, graph: str, version: str, device: str = "cpu") -> Bundle:
        """Read and check a bundle."""
        return load_bundle(self.bundle_url(graph, version), device)

    def state(self, graph: str, version: str, device: str = "cpu") -> Saved | None:
        """The state that a bundle starts from, if it came with one."""
        url = self._state_url(graph, version)
        return read_snapshot(url, device) if artifact_exists(url) else None

    def bundle_meta(self, graph: str, version: str) -> tuple[dict[str, Any], int]:
        """What a bundle says about itself, and its size in bytes; its tensors stay unread."""
        return read_meta(self.bundle_url(graph, version), BUNDLE)

    def state_meta(self, graph: str, version: str) -> tuple[dict[str, Any], int] | None:
        """What the state that a bundle starts from says about itself, and its size in bytes; None if it has none."""
        url = self._state_url(graph, version)
        return read_meta(url, SNAPSHOT) if artifact_exists(url) else None

    def bundle_url(self, graph: str, version: str) -> str:
        """Where a bundle is, or would be."""
        return self._place(graph, "bundles", safe_name(version))

    def _present_document(self, graph: str) -> dict[str, Any] | None:
        place = self._place(graph, "present.json")
        document = read_document(place)
        if document is None:
            return None
        before = document.get("before", [])
        named = [document.get("version"), *(before if isinstance(before, list) else [None]), document.get("first", "")]
        if not all(isinstance(version, str) for version in named):
            raise InputError(f"{place}: names no version, or no list of those before it; train or promote a bundle")
        return document

    def _write_present(self, graph: str, version: str, before: list[str]) -> None:
        self.add_note(graph, version, **{_NAMED: True})  # first: a note too many does no harm
        first = self.first(graph) or version
        write_document(self._place(graph, "present.json"), {"version": version, "before": before, "first": first})

    def _is_from_log(self, graph: str, version: str) -> bool:
        """Whether a bundle came with a state that the log below some offset gives again."""
        state = self.state_meta(graph, version)
        return state is not None and bool(state[0].get("log"))

    def _state_url(self, graph: str, version: str) -> str:
        return self._place(graph, "states", safe_name(version))

    def _place(self, graph: str, *rest: str) -> str:
        return posixpath.join(self.url, safe_name(graph), *rest)
