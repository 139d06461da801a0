"""The files of the web page: our own from the package, and Plotly from the one that is installed."""

from __future__ import annotations

import gzip
from importlib import metadata, resources
from importlib.util import find_spec
from pathlib import Path

from aiohttp import web

from streams.dashboard.http import Problem

FOLDER = Path(str(resources.files("streams.dashboard"))) / "static"
PLOTLY = "plotly.min.js"
# What a system calls these types differs, and a browser runs no module of a wrong one.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}


def page_file(name: str) -> web.FileResponse:
    """A file of ours; browsers ask each time whether it has changed."""
    path = (FOLDER / name).resolve()
    if not path.is_relative_to(FOLDER.resolve()) or path.suffix not in TYPES or not path.is_file():
        raise Problem(404, f"/static/{name}: there is no such file; begin at /")
    return web.FileResponse(path, headers={"Content-Type": TYPES[path.suffix], "Cache-Control": "no-cache"})


class Plotly:
    """The library that draws, compressed when it is first asked for."""

    def __init__(self) -> None:
        self._compressed: bytes | None = None
        self._tag = f'"plotly-{metadata.version("plotly")}"'

    def headers(self, asked_by_version: bool) -> dict[str, str]:
        """A version never changes, so whoever asks for `?v=VERSION` need not ask again."""
        kept = "public, max-age=31536000, immutable" if asked_by_version else "public, max-age=86400"
        return {"ETag": self._tag, "Cache-Control": kept, "Content-Type": TYPES[".js"], "Vary": "Accept-Encoding"}

    def is_known(self, request: web.Request) -> bool:
        """Whether the browser has it already."""
        return self._tag in request.headers.get("If-None-Match", "")

    def read(self, compressed: bool) -> bytes:
        """The library's bytes; takes a second the first time."""
        if compressed and self._compressed is not None:
            return self._compressed
        spec = find_spec("plotly")
        if spec is None or spec.origin is None:
            raise Problem(404, f"/static/{PLOTLY}: the package plotly is not installed; install adatkg anew")
        data = (Path(spec.origin).parent / "package_data" / PLOTLY).read_bytes()
        if compressed:
            data = self._compressed = gzip.compress(data, 6)
        return data
