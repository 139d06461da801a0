"""Tie-safe ranks, the time-aware filter, the slices of a data set and the metrics over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from adatkg_core.errors import AdatkgError

# Comparing a whole [B, N] at once makes temporaries of twice its size; blocks of this many scores stay in the
# processor's cache, which is also faster.
_BLOCK_SCORES = 1 << 18
_INT64_MAX = torch.iinfo(torch.int64).max


@dataclass(frozen=True)
class Ranks:
    """The two ends of each query's rank; they differ where other candidates tie with the target."""

    optimistic: Tensor  # [B] int64
    pessimistic: Tensor  # [B] int64

    @property
    def realistic(self) -> Tensor:  # [B] float64
        """The mean of both ends: the rank that every figure is made of."""
        return (self.optimistic + self.pessimistic).to(torch.float64) / 2


def rank_targets(scores: Tensor, targets: Tensor, exclude: Tensor | None = None) -> Ranks:
    """Rank `targets` [B] among the candidates of `scores` [B, N], without the (row, candidate) pairs of
    `exclude` [P, 2]; a pair may repeat, and one that names its row's own target is ignored."""
    n_rows, n_candidates = scores.shape
    if n_rows == 0:
        empty = torch.zeros_like(targets)
        return Ranks(empty, empty)
    # The maximum of a row is NaN if any of its scores is, and costs no [B, N] mask.
    if bool(scores.amax(dim=1).isnan().any()):
        raise AdatkgError("scores hold NaN and cannot be ranked; check the model and its state for NaN")
    target = scores.gather(1, targets[:, None])  # [B, 1]
    rows = max(1, _BLOCK_SCORES // n_candidates)
    blocks = list(zip(torch.split(scores, rows), torch.split(target, rows), strict=True))
    above = torch.cat([(block > wanted).sum(dim=1) for block, wanted in blocks])  # [B]
    level = torch.cat([(block >= wanted).sum(dim=1) for block, wanted in blocks])  # [B], counts the target
    if exclude is not None and len(exclude) > 0:
        outside = (exclude < 0).any(dim=1) | (exclude[:, 0] >= n_rows) | (exclude[:, 1] >= n_candidates)
        if bool(outside.any()):
            raise ValueError(f"exclude holds a pair outside the scores' shape [{n_rows}, {n_candidates}]")
        # The excluded are counted apart and subtracted, so that the scores need not be copied to be masked.
        flat = torch.unique(exclude[:, 0] * n_candidates + exclude[:, 1])
        row, candidate = flat // n_candidates, flat % n_candidates  # [P], [P]
        counted = candidate != targets[row]
        row, candidate = row[counted], candidate[counted]
        score, wanted = scores[row, candidate], target[row, 0]
        above = above.index_add(0, row, (score > wanted).long(), alpha=-1)
        level = level.index_add(0, row, (score >= wanted).long(), alpha=-1)
    return Ranks(above + 1, level)


class TimeFilter:
    """Knows every true answer of (subject, relation, ?, time), in both directions; a relation r + R asks
    backwards, as everywhere."""

    def __init__(self, facts: Tensor | np.ndarray, n_relations: int, device: torch.device | str | None = None) -> None:
        facts = as_facts(facts, device)
        subject, relation, obj, time = facts.unbind(dim=1)
        subjects, answers = torch.cat([subject, obj]), torch.cat([obj, subject])  # [2M], [2M]
        relations = torch.cat([relation, relation + n_relations])
        self._n_relations = 2 * n_relations
        self._n_entities = size_of(subjects)
        if self._n_entities * self._n_relations > _INT64_MAX:
            raise ValueError("entity ids are too large for a filter; number the entities from 0")
        # Pairs and times are numbered densely before they are packed together: raw ids and times (seconds
        # since 1970, say) could overflow one int64, while 2M pairs by M times cannot.
        self._pairs, pair = torch.unique(subjects * self._n_relations + relations, return_inverse=True)
        self._times, tick = torch.unique(time, return_inverse=True)
        keys = pair * len(self._times) + tick.repeat(2)  # [2M]
        order = torch.argsort(answers, stable=True)
        order = order[torch.argsort(keys[order], stable=True)]
        keys, answers = keys[order], answers[order]
        first = torch.ones_like(keys, dtype=torch.bool)
        first[1:] = (keys[1:] != keys[:-1]) | (answers[1:] != answers[:-1])
        self._keys, self._answers = keys[first], answers[first]

    def exclusions(self, subject: Tensor, relation: Tensor, time: Tensor) -> Tensor:
        """All true answers to the queries [B] as (row, answer) pairs [P, 2] for `rank_targets`, each once."""
        known = (subject >= 0) & (subject < self._n_entities)
        known &= (relation >= 0) & (relation < self._n_relations)
        pair, has_pair = find_sorted(self._pairs, torch.where(known, subject * self._n_relations + relation, -1))
        tick, has_tick = find_sorted(self._times, time)
        key = torch.where(has_pair & has_tick, pair * len(self._times) + tick, -1)  # [B]
        low = torch.searchsorted(self._keys, key)
        count = torch.searchsorted(self._keys, key, right=True) - low  # [B]
        row = torch.repeat_interleave(torch.arange(len(key), device=key.device), count)  # [P]
        before = count.cumsum(0) - count
        place = torch.arange(len(row), device=key.device) - before[row] + low[row]  # [P]
        return torch.stack([row, self._answers[place]], dim=1)


def as_facts(facts: Tensor | np.ndarray, device: torch.device | str | None) -> Tensor:  # [M, 4] int64
    """Facts as a tensor on the device."""
    if isinstance(facts, np.ndarray):
        facts = torch.from_numpy(np.ascontiguousarray(facts, dtype=np.int64))
    return facts.to(device=device, dtype=torch.int64)


def size_of(ids: Tensor) -> int:
    """How many rows a table needs that has one for each of these ids."""
    return int(ids.max()) + 1 if ids.numel() else 0


def find_sorted(table: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each value in a sorted table, and whether it is there at all."""
    if len(table) == 0:
        return torch.zeros_like(values), torch.zeros_like(values, dtype=torch.bool)
    place = torch.searchsorted(table, values.contiguous()).clamp_(max=len(table) - 1)
    return place, table[place] == values
