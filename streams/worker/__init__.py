"""The worker: events in, predictions out, states kept and swapped."""

from streams.worker.graph_host import Done, GraphStatus, Host, Told
from streams.worker.intake import Pump
from streams.worker.live_graph import Answered
from streams.worker.live_score import SLICES, ScoredAnswer, Scores
from streams.worker.metrics import CONTENT_TYPE, Metrics
from streams.worker.model_swap import Swapper
from streams.worker.replica import Share

__all__ = [
    "CONTENT_TYPE",
    "SLICES",
    "Answered",
    "Done",
    "GraphStatus",
    "Host",
    "Metrics",
    "Pump",
    "ScoredAnswer",
    "Scores",
    "Share",
    "Swapper",
    "Told",
]
