"""Bounded tables of what happened how often and how lately, in pages that rows claim as they fill.

A row (an entity, a relation, a group of names) owns up to `max_slots` slots; a slot counts one (relation, other) pair:
how often, when last, and two counts that decay with time. When a row is full, its least lively slot makes room. A
table that is `dated` also knows when a slot was first counted, at how many times, and which of the latest these were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from adatkg_core.state.tensor_ops import arange_like, ragged, rank_in_group, unique_triples

PAGE = 16
TICKS = 63  # the latest ticks that a dated slot remembers one by one, as bits of a whole number


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

    slot: Tensor  # [M] its place in the table
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
    dated: bool = False

    @property
    def max_pages(self) -> int:
        """Pages a row may own."""
        return self.max_slots // PAGE

    def read(self, state: TensorState, rows: Tensor, time: int) -> Slots:
        """All slots of each row [n], with ages and decayed counts as of `time`."""
        owner, slot = self.slots(state, rows)
        return self.read_slots(state, owner, slot, time)

    def read_slots(self, state: TensorState, owner: Tensor, slot: Tensor, time: int) -> Slots:
        """Slots [M] of the rows `owner` [M], with ages and decayed counts as of `time`."""
        get = state.tensors
        last = get[f"{self.name}_last"][slot]
        age = (time - last).clamp(min=0).float()
        return Slots(
            slot=slot,
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
        place = self._find(state, rows, relation, other)
        known = place >= 0
        self._bump(state, place[known], weight[known], time)
        if bool((~known).any()):
            self._insert(state, rows[~known], relation[~known], other[~known], weight[~known], time)

    def _find(self, state: TensorState, rows: Tensor, relation: Tensor, other: Tensor) -> Tensor:
        """The slot of each of distinct ascending triples [n], -1 where there is none."""
        distinct, which = torch.unique_consecutive(rows, return_inverse=True)
        owner, slot = self.slots(state, distinct)
        get = state.tensors
        held_relation, held_other = get[f"{self.name}_relation"][slot].long(), get[f"{self.name}_other"][slot].long()
        n_relation, n_other = relation.max() + 1, other.max() + 1
        wanted = (which * n_relation + relation) * n_other + other  # ascending
        held = (owner * n_relation + held_relation) * n_other + held_other
        at = torch.searchsorted(wanted, held).clamp(max=wanted.shape[0] - 1)
        same = (wanted[at] == held) & (held_relation < n_relation) & (held_other < n_other)
        place = torch.full_like(rows, -1)
        place[at[same]] = slot[same]
        return place

    def slots(self, state: TensorState, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The slots of each row [n], flat: which row, and the place in the table."""
        owner, offset = ragged(state.tensors[f"{self.name}_fill"][rows].long())
        page = state.tensors[f"{self.name}_pages"][rows[owner], offset // PAGE].long()
        return owner, page * PAGE + offset % PAGE

    def _bump(self, state: TensorState, slot: Tensor, weight: Tensor, time: int) -> None:
        get = state.tensors
        last = get[f"{self.name}_last"][slot]
        age = (time - last).clamp(min=0).float()
        if self.dated:
            state.put(f"{self.name}_times", slot, get[f"{self.name}_times"][slot] + (last < time))
            state.put(f"{self.name}_ticks", slot, shift_ticks(get[f"{self.name}_ticks"][slot], time - last) | 1)
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
        pages = state.tensors[f"{self.name}_pages"][full].long()  # [n, max_pages], all of them claimed
        slots = (pages.unsqueeze(2) * PAGE + arange_like(PAGE, rows)).view(-1, self.max_slots)
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
        if self.dated:
            state.put(f"{self.name}_first", slot, torch.full_like(slot, time, dtype=torch.int32))
            state.put(f"{self.name}_times", slot, torch.ones_like(slot, dtype=torch.int32))
            state.put(f"{self.name}_ticks", slot, torch.ones_like(slot))


def shift_ticks(ticks: Tensor, by: Tensor) -> Tensor:
    """Sets of ticks [n], bit i for i ticks ago, as they are seen `by` [n] ticks later; what is too old is forgotten."""
    moved = (ticks << by.clamp(0, TICKS - 1)) & ((1 << TICKS) - 1)
    return torch.where(by < TICKS, moved, 0)
