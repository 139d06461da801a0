"""The parameters and what they compute: AdaTKG, the recall head, and the recurrency heuristic beside them."""

from adatkg_core.model.adatkg import AdaTKG, LastUpdate, Scores, View
from adatkg_core.model.batch_norm import BatchNorm
from adatkg_core.model.kept_view import KeptView
from adatkg_core.model.memory import Ema
from adatkg_core.model.recurrency import Recurrency, keeps_counts, score_recurrency
from adatkg_core.model.snapshot_protocol import score_snapshot, view_snapshot

__all__ = [
    "AdaTKG",
    "BatchNorm",
    "Ema",
    "KeptView",
    "LastUpdate",
    "Recurrency",
    "Scores",
    "View",
    "keeps_counts",
    "score_recurrency",
    "score_snapshot",
    "view_snapshot",
]
