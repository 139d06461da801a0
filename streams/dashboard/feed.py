"""Watches a worker at work: what its page shows, in rings of fixed size, and what is sent to those who look at it.

Everything here runs on the event loop, a little after each batch and a little every quarter of a second.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson
import structlog

from streams.dashboard.entity_history import EntityHistory
from streams.dashboard.event_stream import EventStream
from streams.dashboard.latency import Latency
from streams.dashboard.recent_predictions import RecentPredictions, Row
from streams.worker import SLICES, BatchResult, GraphStatus, Incident, Scores

HISTORY = 600  # samples, one a second
SAMPLED = 32  # graphs in a sample: those with the latest events
FLUSHES = 4  # a second: so often what is to be shown goes out
PREDICTIONS = 5  # shown at each flush; 20 a second are more than anybody can read
TRUTHS = 100  # a second
ENDS = 100  # a second
DEAD_LETTERS = 5  # a second
INCIDENTS = 100  # shown
LOOKING = 0.02  # share of the device's time that may go into looking at thousands of graphs
Looks = tuple[dict[str, GraphStatus], float]  # what there is to see of each graph, and how many seconds looking took
log = structlog.get_logger()


class Feed:
    """Takes in what came of each batch; gives samples, rows and traces."""

    def __init__(
        self,
        statuses: Callable[[], Awaitable[Looks]],
        lag: Callable[[], int | None],
        incidents: Callable[[], Sequence[Incident]] = list,
    ) -> None:
        """`statuses` asks the device what there is to see, `lag` says how many events wait."""
        self._ask, self._lag, self._incidents = statuses, lag, incidents
        self._told: list[Incident] = []  # the incidents that those who look know of
        self.broadcast, self.latest, self.traces = EventStream(), RecentPredictions(), EntityHistory()
        self._latency = Latency()
        self.statuses: dict[str, GraphStatus] = {}
        self.history: deque[bytes] = deque(maxlen=HISTORY)  # samples as JSON
        self._looking: asyncio.Future[Looks] | None = None
        self._look_after = 0.0
        self._active: dict[str, None] = {}  # graphs, the one with the latest events last
        self._candidates: list[Row] = []  # a fair choice of what was answered since the last flush
        self._offered = 0
        self._events = self._answers = self._letters = 0  # since the last sample
        self._truths = self._ends = self._letters_told = 0
        self._choice = random.Random()
        self._sampled = time.monotonic()

    # -- what happens -----------------------------------------------------------------------------------------

    def take(self, results: Sequence[BatchResult]) -> None:
        """What came of a batch.

        It never raises: whatever is wrong with watching must not stop what is watched.
        """
        try:
            for result in results:
                self._take(result)
        except Exception as error:
            log.error("watching_failed", problem=repr(error))

    # -- what is shown ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send what is to be shown, and take a sample every second, until cancelled."""
        try:
            beat = 0
            while True:
                await asyncio.sleep(1 / FLUSHES)
                self.flush()
                beat += 1
                if beat % FLUSHES == 0:
                    self._look()
                    self.sample(time.time())
        finally:
            self.close()

    def close(self) -> None:
        """Nothing more is shown."""
        self.broadcast.close()
        if self._looking is not None:
            self._looking.cancel()

    def flush(self) -> None:
        """Send the predictions that were chosen since the last time."""
        for row in self._candidates:
            self._send("prediction", row)
        self._candidates, self._offered = [], 0

    def sample(self, now: float) -> None:
        """Note how things stand, and begin to count anew."""
        elapsed = max(time.monotonic() - self._sampled, 1e-3)
        self._sampled = time.monotonic()
        median, high = self._latency.quantiles(time.monotonic(), 0.5, 0.95)
        shown = list(self._active)[-SAMPLED:]
        sample = {
            "t": round(now, 3),
            "events_per_s": round(self._events / elapsed, 1),
            "predictions_per_s": round(self._answers / elapsed, 1),
            "dead_letters_per_s": round(self._letters / elapsed, 1),
            "lag": self._lag(),
            "latency_p50": median,
            "latency_p95": high,
            "graphs": {graph: _sampled(self.statuses[graph]) for graph in shown if graph in self.statuses},
        }
        self._events = self._answers = self._letters = self._truths = self._ends = self._letters_told = 0
        data = orjson.dumps(sample)
        self.history.append(data)
        self.broadcast.send("sample", data)
        if (incidents := self._incidents()) != self._told:
            self._told = list(incidents)
            self._send("incidents", {"incidents": self.incidents()})

    def incidents(self) -> list[dict[str, Any]]:
        """What is wrong now, the oldest first, as the page shows it."""
        return [incident.as_json() for incident in self._incidents()[:INCIDENTS]]

    def see(self, statuses: Mapping[str, GraphStatus]) -> None:
        """What there is to see of each graph now; says so when another version answers."""
        for graph, status in statuses.items():
            before = self.statuses.get(graph)
            if before is not None and before.version != status.version:
                self._send("models", {"graph": graph, "version": status.version})
        self.statuses = dict(statuses)
        self._active = {graph: None for graph in self._active if graph in statuses}
        self._active = {graph: None for graph in statuses if graph not in self._active} | self._active
        self.latest.keep_only(list(statuses))

    # -- private ----------------------------------------------------------------------------------------------

    def _take(self, result: BatchResult) -> None:
        self._events += sum(result.counts.values())
        self._answers += len(result.answered)
        self._latency.add((one.made, one.latency) for one in result.answered)
        if result.version is not None:
            self._take_answers(result, result.version)
        self._letters += len(result.rejected)
        for rejected in result.rejected[: DEAD_LETTERS - self._letters_told]:
            self._letters_told += 1
            source = rejected.arrival.source
            letter = {"graph": result.graph, "reason": rejected.code, "detail": rejected.detail}
            self._send("deadletter", letter | {"partition": source.partition, "offset": source.offset})

    def _take_answers(self, result: BatchResult, version: str) -> None:
        """Of a graph that answers here: its answers, the truths that came to earlier ones, and those that ended."""
        graph = result.graph
        self._active.pop(graph, None)
        self._active[graph] = None
        self.latest.add(result)
        self.traces.answered(graph, result.answered, version)
        for one in result.answered:
            self._offered += 1
            place = self._offered - 1 if self._offered <= PREDICTIONS else self._choice.randrange(self._offered)
            if place < PREDICTIONS:
                self._candidates[place : place + 1] = [self.latest.show(one, result)]
        self.traces.scored(graph, result.scored)
        for scored in result.scored:
            truth = self.latest.settle(graph, scored)
            if truth is not None and self._truths < TRUTHS:
                self._truths += 1
                self._send("truth", truth)
        for end in self.latest.end(graph, result.ended)[: ENDS - self._ends]:
            self._ends += 1
            self._send("ended", end)

    def _look(self) -> None:
        """Ask for a look unless the device has not answered the last one yet, or looking at so many takes too long."""
        if self._looking is None and time.monotonic() >= self._look_after:
            self._looking = asyncio.ensure_future(self._ask())
            self._looking.add_done_callback(self._looked)

    def _looked(self, looking: asyncio.Future[Looks]) -> None:
        self._looking = None
        if not looking.cancelled() and looking.exception() is None:
            statuses, took = looking.result()
            self._look_after = time.monotonic() + took / LOOKING
            self.see(statuses)

    def _send(self, event: str, values: dict[str, Any]) -> None:
        if self.broadcast.readers:
            self.broadcast.send(event, orjson.dumps(values))


def _sampled(status: GraphStatus) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "watermark": status.watermark,
        "watermark_iso": status.watermark_iso,
        "version": status.version,
    }
    for measure in ("mrr", "hits@1", "hits@3", "hits@10", "count"):
        shown[measure] = _of_slices(status.scores, measure)
    for measure in ("mrr", "hits@10"):
        shown[f"heuristic_{measure}"] = _of_slices(status.heuristic, measure)
    return shown


def _of_slices(scores: Scores | None, measure: str) -> dict[str, float | int | None]:
    found = {name: None if scores is None else scores[name][measure] for name in SLICES}
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in found.items()}
