"""Figures over ranks: the only place that sums 1/rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from adatkg_core.constants import SLICES
from adatkg_core.metrics.ranks import Ranks

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")


class MetricSums:
    """Sums over realistic ranks per slice, in float64 on the ranks' device: adding never waits for it."""

    def __init__(self, names: Sequence[str] = SLICES) -> None:
        """`names` are the slices, or whatever else the queries are parted by."""
        self._names = tuple(names)
        self._sums: Tensor | None = None  # [slices, metrics + 1], the last column counts

    def add(self, ranks: Ranks, masks: Mapping[str, Tensor]) -> None:
        """Add the queries of one batch; `masks` names every slice."""
        rank = ranks.realistic  # [B]
        hits = [(rank <= k).to(torch.float64) for k in (1, 3, 10)]
        values = torch.stack([rank.reciprocal(), *hits, torch.ones_like(rank)], dim=1)  # [B, metrics + 1]
        member = torch.stack([masks[name] for name in self._names]).to(torch.float64)  # [slices, B]
        sums = member @ values
        self._sums = sums if self._sums is None else self._sums + sums

    def result(self, add_up: Callable[[Tensor], Tensor] = lambda sums: sums) -> dict[str, dict[str, float | None]]:
        """Each slice's metrics and count; the metrics of an empty slice are None. `add_up` adds the sums of others."""
        empty = torch.zeros(len(self._names), len(METRICS) + 1, dtype=torch.float64)
        rows = add_up(empty if self._sums is None else self._sums.cpu()).tolist()
        result: dict[str, dict[str, float | None]] = {}
        for name, (*sums, count) in zip(self._names, rows, strict=True):
            means = [total / count if count else None for total in sums]
            result[name] = {**dict(zip(METRICS, means, strict=True)), "count": int(count)}
        return result
