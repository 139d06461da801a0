"""What the ranks of many queries come to: figures for each slice, each stratum, and by how much a subject has done."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from adatkg_core.constants import SLICES, STRATA
from adatkg_core.datasets import Dataset
from adatkg_core.evaluation.measuring import Asked
from adatkg_core.metrics import MetricSums, StrataIndex

Results = dict[str, dict[str, float | None]]

# Interactions of the subject strictly before the query: the least and the most.
INTERACTIONS = {"0": (0, 0), "1-5": (1, 5), "6-20": (6, 20), "21-100": (21, 100), "101+": (101, 2**62)}
# Each way to part the queries: where the model's and the heuristic's figures stand, and its parts.
GROUPS = {
    ("slices", "baseline"): SLICES,
    ("strata", "baseline_strata"): STRATA,
    ("by_interactions", "baseline_by_interactions"): tuple(INTERACTIONS),
}


def summarize(
    asked: Iterable[Asked], add_up: Callable[[Tensor], Tensor] = lambda sums: sums
) -> tuple[Results, Results]:
    """Metrics per slice of the model and of the recurrency heuristic; `add_up` adds what other processes have asked."""
    model, heuristic = MetricSums(), MetricSums()
    for one in asked:
        model.add(one.ranks, one.slices)
        if one.baseline is not None:
            heuristic.add(one.baseline, one.slices)
    return model.result(add_up), heuristic.result(add_up)


class Figures:
    """Sums up queries in every one of GROUPS, the model's ranks and the heuristic's."""

    def __init__(self, dataset: Dataset, device: torch.device) -> None:
        """`dataset` is the whole of what is replayed: what was known before a query is found in it exactly."""
        self._strata = StrataIndex(dataset.facts, dataset.n_relations, device)
        self._sums = {key: MetricSums(names) for keys, names in GROUPS.items() for key in keys}

    def add(self, asked: Asked) -> dict[str, Tensor]:
        """Take in the queries of one time; returns which of them [B] are in each stratum."""
        time = torch.full_like(asked.subject, asked.time)
        strata = self._strata.masks(asked.subject, asked.relation, asked.answer, time)
        done = asked.interactions[:, 0]
        by_interactions = {name: (done >= least) & (done <= most) for name, (least, most) in INTERACTIONS.items()}
        for keys, masks in zip(GROUPS, (asked.slices, strata, by_interactions), strict=True):
            self._sums[keys[0]].add(asked.ranks, masks)
            if asked.baseline is not None:
                self._sums[keys[1]].add(asked.baseline, masks)
        return strata

    def result(self) -> dict[str, Results]:
        """Figures by the names in GROUPS."""
        return {key: sums.result() for key, sums in self._sums.items()}
