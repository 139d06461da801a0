"""The model store: for each graph its bundles, the states they start from, and which one is present."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from fsspec.core import url_to_fs

from adatkg_core.bundle import KIND as BUNDLE
from adatkg_core.bundle import Bundle, load_bundle, save_bundle
from adatkg_core.document import read_document, write_document
from adatkg_core.errors import InputError
from adatkg_core.snapshots import Saved, read_snapshot, write_snapshot
from adatkg_core.store import artifact_exists, list_artifacts, safe_name


class ModelStore:
    """A folder or URL with `GRAPH/bundles/VERSION`, `GRAPH/states/VERSION` and `GRAPH/present.json`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def graphs(self) -> list[str]:
        """The graphs that have a place here."""
        fs, path = url_to_fs(self.url)
        fs.invalidate_cache()
        folders = fs.ls(path, detail=True) if fs.isdir(path) else []
        names = [posixpath.basename(item["name"].rstrip("/")) for item in folders if item["type"] == "directory"]
        return sorted(unquote(name) for name in names if not name.startswith("."))

    def versions(self, graph: str) -> list[str]:
        """The bundles of a graph, by name."""
        return [unquote(posixpath.basename(url)) for url in list_artifacts(self._place(graph, "bundles"), BUNDLE)]

    def present(self, graph: str) -> str | None:
        """The version that answers for this graph; None while there is none."""
        document = read_document(self._place(graph, "present.json"))
        if document is None:
            return None
        version = document.get("version")
        if not isinstance(version, str):
            raise InputError(f"{self._place(graph, 'present.json')}: names no version; train or promote a bundle")
        return version

    def make_present(self, graph: str, version: str) -> None:
        """From now on this bundle answers; those who look find it or the one before, never none."""
        if not artifact_exists(self.bundle_url(graph, version)):
            known = ", ".join(self.versions(graph)) or "none"
            raise InputError(f"{self.url}: graph {graph} has no bundle {version}; it has {known}")
        write_document(self._place(graph, "present.json"), {"version": version})

    def put(self, graph: str, bundle: Bundle, state: Saved | None) -> str:
        """Add a bundle and the state that it starts from; it is not present yet. Returns where it is."""
        url = self.bundle_url(graph, bundle.version)
        if artifact_exists(url):
            raise InputError(f"{url}: this version is there already; a version never changes once it is written")
        if state is not None and not artifact_exists(self._state_url(graph, bundle.version)):
            write_snapshot(self._state_url(graph, bundle.version), state)
        save_bundle(bundle, url)
        return url

    def bundle(self, graph: str, version: str, device: str = "cpu") -> Bundle:
        """Read and check a bundle."""
        return load_bundle(self.bundle_url(graph, version), device)

    def state(self, graph: str, version: str, device: str = "cpu") -> Saved | None:
        """The state that a bundle starts from, if it came with one."""
        url = self._state_url(graph, version)
        return read_snapshot(url, device) if artifact_exists(url) else None

    def bundle_url(self, graph: str, version: str) -> str:
        """Where a bundle is, or would be."""
        return self._place(graph, "bundles", safe_name(version))

    def _state_url(self, graph: str, version: str) -> str:
        return self._place(graph, "states", safe_name(version))

    def _place(self, graph: str, *rest: str) -> str:
        return posixpath.join(self.url, safe_name(graph), *rest)
