"""What goes wrong with one graph, or with the log: the one declaration that log, metrics, health and page read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

import structlog

from adatkg_core.errors import AdatkgError, InputError

DETAIL = 1_000  # characters
log = structlog.get_logger()


class IncidentKind(StrEnum):
    """The word under which an incident is shown and counted."""

    meaning: str

    BAD_ARTIFACT = ("bad-artifact", "A bundle, a state or the list of versions cannot be used. The graph waits.")
    UNREACHABLE = ("unreachable", "A store or the log could not be read. The graph waits.")
    FAILED = ("failed", "Loading or processing failed in a way that nobody foresaw. The graph waits.")
    RECORDS_LOST = (
        "records-lost",
        "Events that the graph needed or has taken in are gone from the log. It goes on without them.",
    )
    SNAPSHOT_FAILED = ("snapshot-failed", "The graph's state could not be saved. It answers; nothing is committed.")
    LOG_REMADE = ("log-remade", "The events' topic was made anew or cut. The worker starts anew from what is there.")

    def __new__(cls, word: str, meaning: str) -> Self:
        """A member is its word."""
        self = str.__new__(cls, word)
        self._value_, self.meaning = word, meaning
        return self


def kind_of(error: Exception) -> IncidentKind:
    """What an error means for the graph that it keeps from being here."""
    if isinstance(error, InputError):
        return IncidentKind.BAD_ARTIFACT
    return IncidentKind.UNREACHABLE if isinstance(error, AdatkgError) else IncidentKind.FAILED


@dataclass(frozen=True)
class Incident:
    """Something that is wrong now, or that cannot be made good; times are seconds since 1970."""

    graph: str  # empty where it is no single graph's
    kind: IncidentKind
    detail: str
    since: float
    next_try: float | None  # None where nothing is left to be tried

    def as_json(self) -> dict[str, Any]:
        """As pages show it."""
        times = {"since": _iso(self.since), "next_try": None if self.next_try is None else _iso(self.next_try)}
        return {"graph": self.graph, "kind": str(self.kind), "detail": self.detail, **times}


class Incidents:
    """Those that are open, at most one of a kind for each graph. For any thread."""

    def __init__(self, count: Callable[[Incident], None] = lambda incident: None) -> None:
        """`count` hears of each incident that opens, and of each one that cannot be made good."""
        self._count = count
        self._open: dict[tuple[str, IncidentKind], Incident] = {}
        self._lock = threading.Lock()

    def report(self, graph: str, kind: IncidentKind, detail: str, again_in: float | None = None) -> None:
        """Something is wrong, or still is; `again_in` so many seconds it is tried again."""
        now = time.time()
        incident = Incident(graph, kind, detail[:DETAIL], now, None if again_in is None else now + again_in)
        with self._lock:
            before = self._open.get((graph, kind))
            self._open[graph, kind] = incident if before is None else replace(incident, since=before.since)
        if before is None or again_in is None:
            self._count(incident)
        log.error("incident", graph=graph, kind=str(kind), detail=incident.detail, again_in=again_in)

    def end(self, graph: str, *kinds: IncidentKind) -> None:
        """These are over."""
        for kind in kinds:
            with self._lock:
                ended = self._open.pop((graph, kind), None)
            if ended is not None:
                seconds = round(time.time() - ended.since, 3)
                log.info("incident_over", graph=graph, kind=str(kind), seconds=seconds)

    def forget(self, graph: str) -> None:
        """The graph is others' now, and so is what is wrong with it."""
        with self._lock:
            self._open = {key: incident for key, incident in self._open.items() if key[0] != graph}

    def open(self) -> list[Incident]:
        """Those that are open, the oldest first."""
        with self._lock:
            return sorted(self._open.values(), key=lambda incident: incident.since)


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
