"""Which page is made by what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generator import api, commands, configuration, dead_letters, messages, metrics, speed, web

REFERENCE = Path(__file__).parents[1] / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands.page,
    "configuration.md": configuration.page,
    "messages.md": messages.page,
    "dead-letters.md": dead_letters.page,
    "metrics.md": metrics.page,
    "http.md": web.page,
    "api.md": api.page,
    "speed.md": speed.page,
}


def write() -> list[Path]:
    """Write every page; returns where they are."""
    REFERENCE.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (REFERENCE / name).write_text(make(), "utf-8")
    return [REFERENCE / name for name in PAGES]
