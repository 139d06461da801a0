"""The page of metrics, from the registries themselves."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from docs.generator.markdown import code, document, table
from streams.worker import Metrics
from trainer.retrain.metrics import TrainingMetrics

INTRODUCTION = """
A worker shows its metrics on `/metrics` of its [web pages](http.md), a trainer on the port
that `retrain.metrics_port` names. Both write the text format of Prometheus. Counters have the ending `_total` there;
histograms have `_bucket`, `_sum` and `_count`. Of a worker that shares a graph with replicas, each counts its own work.

`docker/grafana/adatkg.json` is a board for Grafana that shows most of them.
"""


def page() -> str:
    """Every metric with its kind, labels and meaning."""
    return document(
        "Metrics",
        INTRODUCTION,
        "## Worker",
        _table(Metrics().registry),
        "## Trainer",
        _table(TrainingMetrics().registry),
    )


def _table(registry: CollectorRegistry) -> str:
    rows = []
    for collector in dict.fromkeys(registry._collector_to_names):
        metric: Any = collector
        ending = "_total" if metric._type == "counter" else ""
        labels = ", ".join(map(code, metric._labelnames))
        rows.append((code(metric._name + ending), metric._type, labels, metric._documentation))
    return table(("metric", "kind", "labels", "is"), sorted(rows))
