"""Watches a worker's own score of a graph, so that training begins when the answers fit less well than they did."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog

ENOUGH = 200  # answers in the window before its score says anything
PATIENCE = 10.0  # seconds for the worker's page
log = structlog.get_logger()


@dataclass
class DropWatch:
    """Compares the rolling MRR on a worker's `/scores` page with the best since the last round."""

    url: str
    graph: str
    drop: float
    _best: float | None = field(default=None, init=False)

    def fell(self) -> bool:
        """Whether the score is now lower than its best by the drop; a page that does not answer is no reason."""
        mrr = self._mrr()
        if mrr is None:
            return False
        self._best = mrr if self._best is None else max(self._best, mrr)
        if mrr > self._best - self.drop:
            return False
        log.info("score_fell", graph=self.graph, mrr=round(mrr, 4), best=round(self._best, 4), drop=self.drop)
        return True

    def begin_anew(self) -> None:
        """A round was made: what was best before it no longer counts."""
        self._best = None

    def _mrr(self) -> float | None:
        try:
            with urllib.request.urlopen(self.url, timeout=PATIENCE) as answer:
                graphs: dict[str, Any] = orjson.loads(answer.read())
            scores = graphs[self.graph]["scores"]["all"]
            return float(scores["mrr"]) if scores["count"] >= ENOUGH else None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("no_score", graph=self.graph, url=self.url, problem=repr(error))
            return None
