"""Bounded tables of what happened how often and how lately, in pages that rows claim as they fill.

A row (an entity or a relation) owns up to `max_slots` slots; a slot counts one (relation, other) pair: how often,
when last, and two counts that decay with time. When a row is full, its least lively slot makes room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from adatkg_core.state.tensor_ops import arange_like, ragged, rank_in_group, unique_triples

PAGE = 16


class TensorState(Protocol):
    """What a table needs of the state that holds its tensors."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All of them by name, to be read."""

    def put(self, name: str, index: Any, values: Tensor) -> None:
        """Write rows of one, so that the write can be taken back."""

    def claim_pages(self, table: str, count: int) -> int:
        """The first of `count` new pages."""


@dataclass(frozen=True)
class Slots:
    """The slots of some rows, flat; `owner` says which of the rows asked for each belongs to."""

    owner: Tensor  # [M]
    relation: Tensor  # [M]
    other: Tensor  # [M]
    age: Tensor  # [M] ticks since the last one, at the time of reading
    count: Tensor  # [M]
    fast: Tensor  # [M] decayed to the time of reading
    slow: Tensor  # [M]


@dataclass(frozen=True)
class PagedTable:
    """Reads and writes one table among the state's tensors, named `<name>_…`."""

    name: str
    max_slots: int
    fast: float
    slow: float

    @property
    def max_pages(self) -> int:
        """Pages a row may own."""
        return self.max_slots // PAGE

    def read(self, state: TensorState, rows: Tensor, time: int) -> Slots:
        """All slots of each row [n], with ages and decayed counts as of `time`."""
        owner, slot = self._slots(state, rows)
        get = state.tensors
        last = get[f"{self.name}_last"][slot]
        age = (time - last).clamp(min=0).float()
        return Slots(
            owner=owner,
            relation=get[f"{self.name}_relation"][slot].long(),
            other=get[f"{self.name}_other"][slot].long(),
            age=age,
            count=get[f"{self.name}_count"][slot],
            fast=get[f"{self.name}_fast"][slot] * torch.exp(-age / self.fast),
            slow=get[f"{self.name}_slow"][slot] * torch.exp(-age / self.slow),
        )

    def add(self, state: TensorState, rows: Tensor, relation: Tensor, other: Tensor, time: int) -> None:
        """Count one occurrence of (relation, other) in each row; repeats are summed first."""
        (rows, relation, other), count = unique_triples(rows, relation, other)
        weight = count.to(torch.float32)
        owner, slot = self._slots(state, rows)
        get = state.tensors
        same = (get[f"{self.name}_relation"][slot] == relation[owner]) & (
            get[f"{self.name}_other"][slot] == other[owner]
        )
        place = torch.full_like(rows, -1)
        place[owner[same]] = slot[same]
        known = place >= 0
        self._bump(state, place[known], weight[known], time)
        if bool((~known).any()):
            self._insert(state, rows[~known], relation[~known], other[~known], weight[~known], time)

    def _slots(self, state: TensorState, rows: Tensor) -> tuple[Tensor, Tensor]:
        owner, offset = ragged(state.tensors[f"{self.name}_fill"][rows].long())
        page = state.tensors[f"{self.name}_pages"][rows[owner], offset // PAGE].long()
        return owner, page * PAGE + offset % PAGE

    def _bump(self, state: TensorState, slot: Tensor, weight: Tensor, time: int) -> None:
        get = state.tensors
        age = (time - get[f"{self.name}_last"][slot]).clamp(min=0).float()
        state.put(f"{self.name}_count", slot, get[f"{self.name}_count"][slot] + weight)
        state.put(f"{self.name}_fast", slot, get[f"{self.name}_fast"][slot] * torch.exp(-age / self.fast) + weight)
        state.put(f"{self.name}_slow", slot, get[f"{self.name}_slow"][slot] * torch.exp(-age / self.slow) + weight)
        state.put(f"{self.name}_last", slot, torch.full_like(slot, time, dtype=torch.int32))

    def _insert(
        self, state: TensorState, rows: Tensor, relation: Tensor, other: Tensor, weight: Tensor, time: int
    ) -> None:
        fill = state.tensors[f"{self.name}_fill"]
        position = fill[rows].long() + rank_in_group(rows)
        fits = position < self.max_slots
        starts = fits & (position % PAGE == 0)  # each page begins with exactly one new slot
        first = state.claim_pages(self.name, int(starts.sum()))
        pages = f"{self.name}_pages"
        ids = (first + arange_like(int(starts.sum()), rows)).to(torch.int32)
        state.put(pages, (rows[starts], position[starts] // PAGE), ids)
        inside = rows[fits], position[fits]
        slot = state.tensors[pages][inside[0], inside[1] // PAGE].long() * PAGE + inside[1] % PAGE
        touched, added = torch.unique(inside[0], return_counts=True)
        state.put(f"{self.name}_fill", touched, fill[touched] + added.to(fill.dtype))
        self._write(state, slot, relation[fits], other[fits], weight[fits], time)
        if bool((~fits).any()):
            over = ~fits
            self._evict(state, rows[over], relation[over], other[over], weight[over], time)

    def _evict(
        self, state: TensorState, rows: Tensor, relation: Tensor, other: Tensor, weight: Tensor, time: int
    ) -> None:
        full, which = torch.unique(rows, return_inverse=True)
        slots = self._slots(state, full)[1].view(-1, self.max_slots)
        last = state.tensors[f"{self.name}_last"][slots]
        lively = state.tensors[f"{self.name}_slow"][slots] * torch.exp(-(time - last).float() / self.slow)
        lively = lively.masked_fill(last >= time, torch.inf)  # what this very commit wrote stays
        victims = torch.argsort(lively, dim=1, stable=True)
        rank = rank_in_group(rows)
        free = (lively < torch.inf).sum(1)
        room = rank < free[which]
        slot = slots[which[room], victims[which[room], rank[room]]]
        self._write(state, slot, relation[room], other[room], weight[room], time)

    def _write(
        self, state: TensorState, slot: Tensor, relation: Tensor, other: Tensor, weight: Tensor, time: int
    ) -> None:
        state.put(f"{self.name}_relation", slot, relation.to(torch.int32))
        state.put(f"{self.name}_other", slot, other.to(torch.int32))
        state.put(f"{self.name}_last", slot, torch.full_like(slot, time, dtype=torch.int32))
        for part in ("count", "fast", "slow"):
            state.put(f"{self.name}_{part}", slot, weight)
