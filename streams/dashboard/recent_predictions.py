"""The latest answers of each graph as a page shows them, and the truths that came since."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from adatkg_core.clock import iso_of, span_of
from streams.worker import Answered, BatchResult, ScoredAnswer

ROWS = 50  # of a graph
SHOWN = 500  # that were sent to a page, over all graphs
GRAPHS = 200  # the rest has been quiet for longest
TOP = 5
TRUTHS = 20  # of one row
Row = dict[str, Any]


class RecentPredictions:
    """Rows in bounded memory: a few of each graph, and those that a page was shown."""

    def __init__(self) -> None:
        self._latest: OrderedDict[str, OrderedDict[int, Row]] = OrderedDict()  # by graph and offset
        self._shown: OrderedDict[tuple[str, int], Row] = OrderedDict()

    def add(self, result: BatchResult) -> None:
        """Remember the last answers of a batch."""
        if not result.answered:
            return
        graph = result.graph
        rows = self._latest.setdefault(graph, OrderedDict())
        self._latest.move_to_end(graph)
        for one in result.answered[-ROWS:]:
            offset = one.arrival.source.offset
            rows[offset] = self._find(graph, offset) or row_of(one, result)
        while len(rows) > ROWS:
            rows.popitem(last=False)
        if len(self._latest) > GRAPHS:
            self._latest.popitem(last=False)

    def show(self, answered: Answered, result: BatchResult) -> Row:
        """The row of an answer that is shown to a page: its truths will be wanted."""
        graph = result.graph
        offset = answered.arrival.source.offset
        row = self._shown[graph, offset] = self._find(graph, offset) or row_of(answered, result)
        if len(self._shown) > SHOWN:
            self._shown.popitem(last=False)
        return row

    def settle(self, graph: str, scored: ScoredAnswer) -> dict[str, Any] | None:
        """Note a truth in the row that it belongs to, and say what is to be told of it; None for other rows."""
        row = self._find(graph, scored.offset)
        if row is None or len(row["truths"]) >= TRUTHS:
            return None
        truth = {"entity": scored.truth, "rank": scored.rank, "heuristic_rank": scored.heuristic_rank}
        row["truths"].append(truth)
        return {"graph": graph, "id": row["id"], **truth}

    def end(self, graph: str, ended: Mapping[int, bool]) -> list[dict[str, Any]]:
        """Note to which rows no truth can come any more, and say what is to be told of those to which none came."""
        told = []
        for offset, came in ended.items():
            row = self._find(graph, offset)
            if row is not None:
                row["ended"] = True
                if not came:
                    told.append({"graph": graph, "id": row["id"], "within": row["within"]})
        return told

    def rows(self, graph: str) -> list[Row]:
        """A graph's latest rows, the newest first."""
        return list(reversed(self._latest.get(graph, {}).values()))

    def keep_only(self, graphs: Sequence[str]) -> None:
        """Forget what was answered for graphs that have moved elsewhere."""
        for gone in self._latest.keys() - set(graphs):
            del self._latest[gone]

    def _find(self, graph: str, offset: int) -> Row | None:
        """The one row of an answer, wherever it is held: a truth must reach it in both places."""
        row = self._shown.get((graph, offset))
        if row is None and graph in self._latest:
            row = self._latest[graph].get(offset)
        return row


def row_of(answered: Answered, result: BatchResult) -> Row:
    """An answer as a page shows it; of query and ranking only what fits there."""
    query, prediction = answered.question.query, answered.prediction
    ticks = answered.until - query.t + 1  # of a question about an explicit time one, its own
    return {
        "id": answered.arrival.source.id,
        "graph": result.graph,
        "t": query.t,
        "t_iso": iso_of(result.clock, query.t),
        "s": query.s,
        "r": query.r,
        "o": query.o,
        "top": [
            {"entity": one.entity, "probability": round(one.probability, 9)}
            for one in prediction.top[: min(TOP, query.k)]
        ],
        "model": result.version,
        "cold_start": prediction.cold_start,
        "gate": round(prediction.gate, 6),
        "interactions": prediction.interactions,
        "late": prediction.late,
        "asked_next": answered.question.next,
        "until": answered.until,
        "until_iso": iso_of(result.clock, answered.until),
        "within": span_of(result.clock, ticks),
        "truths": [],
        "ended": prediction.late,  # its truths had come before
    }
