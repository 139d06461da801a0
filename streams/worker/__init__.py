"""The worker: events in, predictions out, states kept and swapped."""

from streams.worker.arrival import Arrival
from streams.worker.batch import Answered, BatchResult, Rejected
from streams.worker.catch_up import AT_ONCE, CatchUp
from streams.worker.checkpoint import Checkpointer
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.incident import Incident, IncidentKind, Incidents
from streams.worker.inspector import GraphStatus, Inspector
from streams.worker.intake import Intake
from streams.worker.live_graph import LiveGraph
from streams.worker.live_score import SLICES, ScoredAnswer, Scores
from streams.worker.loader import Loader
from streams.worker.log_watch import LogRemade, LogWatch
from streams.worker.metrics import CONTENT_TYPE, Metrics
from streams.worker.model_swap import ModelSwap
from streams.worker.overflow import Overflow
from streams.worker.publisher import Observer, Publisher, undeliverable
from streams.worker.recovery import Recovery
from streams.worker.replica import Replica
from streams.worker.worker import Worker

__all__ = [
    "AT_ONCE",
    "CONTENT_TYPE",
    "SLICES",
    "Answered",
    "Arrival",
    "BatchResult",
    "CatchUp",
    "Checkpointer",
    "DeviceThread",
    "GraphHost",
    "GraphStatus",
    "Incident",
    "IncidentKind",
    "Incidents",
    "Inspector",
    "Intake",
    "LiveGraph",
    "Loader",
    "LogRemade",
    "LogWatch",
    "Metrics",
    "ModelSwap",
    "Observer",
    "Overflow",
    "Publisher",
    "Recovery",
    "Rejected",
    "Replica",
    "ScoredAnswer",
    "Scores",
    "Worker",
    "undeliverable",
]
