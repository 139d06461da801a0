"""What stands in the headers of a message."""

from __future__ import annotations

from collections.abc import Iterable


def header(headers: Iterable[tuple[str, bytes | None]], name: str) -> str:
    """The first header of this name as text; empty when there is none."""
    return next(((value or b"").decode(errors="replace") for key, value in headers if key == name), "")
