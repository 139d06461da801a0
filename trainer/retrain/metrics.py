"""What Prometheus reads from a trainer."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from adatkg_core.errors import InputError
from adatkg_core.messages import Verdict

_SECONDS = (1.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1_800.0, 3_600.0, 10_800.0, 43_200.0)


class TrainingMetrics:
    """One trainer's metrics, in a registry of their own so that a process can hold several."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.runs = Counter(
            "adatkg_training_runs",
            "Rounds: promoted, kept, failed",
            ["graph", "outcome"],
            registry=registry,
        )
        self.seconds = Histogram(
            "adatkg_training_seconds", "How long a round took", ["graph"], buckets=_SECONDS, registry=registry
        )
        self.score = Gauge(
            "adatkg_training_score", "MRR on the newest window: candidate, present", ["graph", "who"], registry=registry
        )
        self.facts = Gauge("adatkg_training_facts", "Facts in the archive", ["graph"], registry=registry)

    def scores(self, graph: str, verdict: Verdict | None) -> None:
        """Both figures of a verdict."""
        if verdict is not None:
            self.score.labels(graph, "candidate").set(verdict.candidate)
            if verdict.present is not None:
                self.score.labels(graph, "present").set(verdict.present)

    def serve(self, host: str, port: int) -> None:
        """Answer Prometheus from a thread of its own, as long as the process lasts."""
        try:
            start_http_server(port, host, registry=self.registry)
        except OSError as error:
            raise InputError(
                f"metrics at {host}:{port}: {error.strerror}; give another retrain.metrics_port"
            ) from error
