"""What the worker's own pages say."""

from __future__ import annotations

import time
import urllib.request
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

PATIENCE = 5.0  # seconds for an answer of a worker on a busy machine
_PACE = 5  # looks over which events are counted


@dataclass
class Pages:
    """Asks them anew at each look and keeps what they said last; a worker that does not answer is asked again later."""

    address: str
    graph: str
    ready: bool = False
    version: str | None = None
    watermark: int | None = None
    score: dict[str, Any] = field(default_factory=dict)
    heuristic: dict[str, Any] | None = None  # None where the model keeps no counts
    events: float = 0.0
    predictions: float = 0.0
    refused: float = 0.0
    lag: float | None = None
    _counts: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_PACE))

    def look(self) -> None:
        """Read readiness, scores and metrics."""
        try:
            self._get("ready")
            self.ready = True
            scores = orjson.loads(self._get("scores")).get(self.graph)
            metrics = self._get("metrics").decode()
        except (OSError, ValueError):
            return
        if scores is not None:
            self.version, self.watermark = scores["version"], scores["watermark"]
            self.score = scores["scores"]["all"]
            self.heuristic = (scores.get("heuristic") or {}).get("all")
        self._count(metrics)

    @property
    def pace(self) -> float:
        """Events taken in a second, of late."""
        if len(self._counts) < 2:
            return 0.0
        (began, before), (now, count) = self._counts[0], self._counts[-1]
        return max(0.0, count - before) / (now - began)

    def _count(self, metrics: str) -> None:
        from prometheus_client.parser import text_string_to_metric_families

        sums: dict[str, float] = {}
        for family in text_string_to_metric_families(metrics):
            for sample in family.samples:
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
        self.events = sums.get("adatkg_events_total", 0.0)
        self.predictions = sums.get("adatkg_predictions_total", 0.0)
        self.refused = sums.get("adatkg_dead_letters_total", 0.0)
        self.lag = sums.get("adatkg_lag_events")
        self._counts.append((time.monotonic(), self.events))

    def _get(self, page: str) -> bytes:
        with urllib.request.urlopen(self.address + page, timeout=PATIENCE) as answer:
            body: bytes = answer.read()
        return body
