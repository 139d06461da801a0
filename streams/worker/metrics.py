"""What Prometheus reads from a worker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from adatkg_core.messages import Reason
from streams.worker.batch import BatchResult
from streams.worker.incident import Incident
from streams.worker.inspector import GraphStatus

CONTENT_TYPE = "text/plain; version=0.0.4"  # what generate_latest writes; the web server adds the character set
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REASONS = frozenset(str(reason) for reason in Reason)
_SIZES = (1, 4, 16, 64, 128, 256, 512, 1024, 4096)


class Metrics:
    """One worker's metrics, in a registry of their own so that a process can hold several workers."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        seconds = partial(Histogram, buckets=_SECONDS, registry=registry)
        scored = ["graph", "slice", "measure"]
        self.events = counter("adatkg_events", "Events taken in, by kind", ["graph", "kind"])
        self.predictions = counter("adatkg_predictions", "Queries answered", ["graph"])
        self.dead_letters = counter("adatkg_dead_letters", "Events that could not be processed", ["graph", "reason"])
        self.incidents = counter("adatkg_incidents", "Incidents that opened, or cannot be made good", ["graph", "kind"])
        self.open_incidents = gauge("adatkg_open_incidents", "Incidents that are open", ["graph", "kind"])
        self.lag = gauge("adatkg_lag_events", "Events of the log from the first that waits on", ["partition"])
        self.batch = Histogram("adatkg_batch_size", "Events in a batch", buckets=_SIZES, registry=registry)
        self.apply = seconds("adatkg_apply_seconds", "Time to process a batch")
        self.answer = seconds(
            "adatkg_answer_seconds", "From a query's arrival at this worker until its prediction is ready to be sent"
        )
        self.snapshot = seconds("adatkg_snapshot_seconds", "Time until a snapshot is durable")
        self.snapshot_failures = counter("adatkg_snapshot_failures", "Snapshots that could not be written")
        self.age = gauge("adatkg_snapshot_age_seconds", "Age of the oldest event not yet durable")
        self.state = gauge("adatkg_state_bytes", "Tensors of a graph's state", ["graph"])
        self.entities = gauge("adatkg_entities", "Entities that a graph knows", ["graph"])
        self.watermark = gauge("adatkg_watermark", "The largest time seen", ["graph"])
        self.swaps = counter("adatkg_swaps", "Bundles taken over while running", ["graph"])
        self.swap_seconds = seconds("adatkg_swap_seconds", "From an announcement until its bundle answers")
        self.swap_step = seconds("adatkg_swap_step_seconds", "Time for which one step of a swap has the device")
        self.refusals = counter("adatkg_model_refusals", "Bundles that were not fit", ["graph"])
        self.model = gauge("adatkg_model_info", "The bundle that answers", ["graph", "version"])
        about = "Of the last queries whose answer came later as a fact"
        self.score = gauge("adatkg_prequential_score", about, scored)
        self.heuristic = gauge("adatkg_heuristic_score", "Of the recurrency heuristic, to the same queries", scored)
        self.scored = gauge("adatkg_prequential_queries", "Queries in that window", ["graph", "slice"])
        self.unsettled = counter(
            "adatkg_unsettled_queries", "Queries that ended without a truth; they are in no score", ["graph"]
        )
        self._oldest: float | None = None  # when the oldest event came that is not durable yet
        self.age.set_function(lambda: 0.0 if self._oldest is None else time.monotonic() - self._oldest)

    def count(self, result: BatchResult) -> None:
        """What came of a batch."""
        # A graph without a model may be a producer's mistake, of which there can be many: they count as one.
        known = result.graph if result.version is not None else ""
        for kind, number in result.counts.items():
            self.events.labels(known, kind).inc(number)
        for rejected in result.rejected:
            self.dead_letters.labels(known, rejected.code if rejected.code in _REASONS else "other").inc()
        for answered in result.answered:
            self.answer.observe(answered.latency)
        if result.swapped is not None:
            self.swaps.labels(result.graph).inc()
            self.swap_seconds.observe(result.swapped)
        if result.version is not None:
            self.predictions.labels(result.graph).inc(len(result.answered))
            self.unsettled.labels(result.graph).inc(len(result.ended) - sum(result.ended.values()))

    def show(self, statuses: Mapping[str, GraphStatus]) -> None:
        """What there is to see of each graph; those that moved elsewhere are no longer shown."""
        for gauge in (self.state, self.entities, self.watermark, self.model, self.score, self.heuristic, self.scored):
            gauge.clear()
        for graph, status in statuses.items():
            self.state.labels(graph).set(status.size)
            self.entities.labels(graph).set(status.entities)
            self.model.labels(graph, status.version).set(1)
            if status.watermark is not None:
                self.watermark.labels(graph).set(status.watermark)
            for name, scores in status.scores.items():
                self.scored.labels(graph, name).set(scores["count"] or 0)
            for gauge, slices in ((self.score, status.scores), (self.heuristic, status.heuristic or {})):
                for name, scores in slices.items():
                    for measure, value in scores.items():
                        if measure != "count" and value is not None:
                            gauge.labels(graph, name, measure).set(value)

    def count_incident(self, incident: Incident) -> None:
        """One has opened, or cannot be made good."""
        self.incidents.labels(incident.graph, incident.kind).inc()

    def show_incidents(self, incidents: Iterable[Incident]) -> None:
        """Those that are open."""
        self.open_incidents.clear()
        for incident in incidents:
            self.open_incidents.labels(incident.graph, incident.kind).set(1)

    def show_lag(self, lags: Mapping[int, int]) -> None:
        """How far behind the log each of our partitions is."""
        self.lag.clear()
        for partition, lag in lags.items():
            self.lag.labels(str(partition)).set(lag)

    def durable_up_to(self, oldest: float | None) -> None:
        """What came before this moment is durable; None: everything is."""
        self._oldest = oldest

    def page(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)
