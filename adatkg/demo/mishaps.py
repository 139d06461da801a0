"""What goes wrong in merely looking or showing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

log = structlog.get_logger()


class Mishaps:
    """Keeps them from ending the system that is looked at; each kind is told once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    @contextmanager
    def bear(self, doing: str, **place: Any) -> Iterator[None]:
        """Whatever fails in here is told, with its place, and passed over."""
        try:
            yield
        except Exception as error:
            if doing not in self._told:
                self._told.add(doing)
                log.warning("demo_mishap", doing=doing, problem=repr(error), **place)
