"""Ranks, the slices they fall into, and the figures over them."""

from adatkg_core.metrics.ranks import Ranks, TimeFilter, rank_targets
from adatkg_core.metrics.scores import MetricSums
from adatkg_core.metrics.slices import SliceIndex
from adatkg_core.metrics.strata import StrataIndex

__all__ = [
    "MetricSums",
    "Ranks",
    "SliceIndex",
    "StrataIndex",
    "TimeFilter",
    "rank_targets",
]
