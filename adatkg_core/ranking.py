"""Tie-safe ranks, the time-aware filter, the slices of a data set and the metrics over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from adatkg_core.errors import AdatkgError

SLICES = (
    "all",
    "emerging",
    "emerging_subject_unseen",
    "emerging_object_unseen",
    "unknown",
    "unknown_subject_unseen",
    "unknown_object_unseen",
)
METRICS = ("mrr", "hits@1", "hits@3", "hits@10")

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
        facts = _as_facts(facts, device)
        subject, relation, obj, time = facts.unbind(dim=1)
        subjects, answers = torch.cat([subject, obj]), torch.cat([obj, subject])  # [2M], [2M]
        relations = torch.cat([relation, relation + n_relations])
        self._n_relations = 2 * n_relations
        self._n_entities = _size(subjects)
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
        pair, has_pair = _find(self._pairs, torch.where(known, subject * self._n_relations + relation, -1))
        tick, has_tick = _find(self._times, time)
        key = torch.where(has_pair & has_tick, pair * len(self._times) + tick, -1)  # [B]
        low = torch.searchsorted(self._keys, key)
        count = torch.searchsorted(self._keys, key, right=True) - low  # [B]
        row = torch.repeat_interleave(torch.arange(len(key), device=key.device), count)  # [P]
        before = count.cumsum(0) - count
        place = torch.arange(len(row), device=key.device) - before[row] + low[row]  # [P]
        return torch.stack([row, self._answers[place]], dim=1)


class SliceIndex:
    """Knows when each entity first appears and whether training saw it, the stuff of the slices."""

    def __init__(
        self,
        facts: Tensor | np.ndarray,
        train: Tensor | np.ndarray,
        n_entities: int | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        facts = _as_facts(facts, device)
        train = _as_facts(train, facts.device)
        entities = facts[:, [0, 2]].flatten()  # [2M]
        times = facts[:, 3].repeat_interleave(2)  # [2M]
        if n_entities is None:
            n_entities = max(_size(entities), _size(train[:, [0, 2]]))
        never = torch.full((n_entities,), _INT64_MAX, dtype=torch.int64, device=facts.device)
        self.first_seen = never.scatter_reduce(0, entities, times, "amin")  # [E], largest int64: never
        self.in_train = torch.zeros(n_entities, dtype=torch.bool, device=facts.device)  # [E]
        self.in_train[train[:, [0, 2]].flatten()] = True

    def masks(self, subject: Tensor, obj: Tensor, time: Tensor) -> dict[str, Tensor]:
        """Which queries [B] fall into each slice; `subject` is the entity asked about (an inverse query's is
        its fact's object) and `obj` the answer. A query whose two ends are both unseen is in both parts."""
        new_subject, new_object = self.first_seen[subject] == time, self.first_seen[obj] == time
        strange_subject, strange_object = ~self.in_train[subject], ~self.in_train[obj]
        return {
            "all": torch.ones_like(new_subject),
            "emerging": new_subject | new_object,
            "emerging_subject_unseen": new_subject,
            "emerging_object_unseen": new_object,
            "unknown": strange_subject | strange_object,
            "unknown_subject_unseen": strange_subject,
            "unknown_object_unseen": strange_object,
        }


class MetricSums:
    """Sums over realistic ranks per slice, in float64 on the ranks' device: adding never waits for it."""

    def __init__(self) -> None:
        self._sums: Tensor | None = None  # [slices, metrics + 1], the last column counts

    def add(self, ranks: Ranks, masks: Mapping[str, Tensor]) -> None:
        """Add the queries of one batch; `masks` names every slice."""
        rank = ranks.realistic  # [B]
        hits = [(rank <= k).to(torch.float64) for k in (1, 3, 10)]
        values = torch.stack([rank.reciprocal(), *hits, torch.ones_like(rank)], dim=1)  # [B, metrics + 1]
        member = torch.stack([masks[name] for name in SLICES]).to(torch.float64)  # [slices, B]
        sums = member @ values
        self._sums = sums if self._sums is None else self._sums + sums

    def result(self) -> dict[str, dict[str, float | None]]:
        """Each slice's metrics and count; the metrics of an empty slice are None."""
        rows = [[0.0] * (len(METRICS) + 1)] * len(SLICES) if self._sums is None else self._sums.tolist()
        result: dict[str, dict[str, float | None]] = {}
        for name, (*sums, count) in zip(SLICES, rows, strict=True):
            means = [total / count if count else None for total in sums]
            result[name] = {**dict(zip(METRICS, means, strict=True)), "count": int(count)}
        return result


def _as_facts(facts: Tensor | np.ndarray, device: torch.device | str | None) -> Tensor:  # [M, 4] int64
    if isinstance(facts, np.ndarray):
        facts = torch.from_numpy(np.ascontiguousarray(facts, dtype=np.int64))
    return facts.to(device=device, dtype=torch.int64)


def _size(ids: Tensor) -> int:
    return int(ids.max()) + 1 if ids.numel() else 0


def _find(table: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each value in a sorted table, and whether it is there at all."""
    if len(table) == 0:
        return torch.zeros_like(values), torch.zeros_like(values, dtype=torch.bool)
    place = torch.searchsorted(table, values.contiguous()).clamp_(max=len(table) - 1)
    return place, table[place] == values
