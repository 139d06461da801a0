"""What the entities of the nearest names did, added up for each candidate in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from adatkg_core.evidence.compiled.gather import find_table
from adatkg_core.evidence.compiled.layout import ONE, ZERO, Table, single
from adatkg_core.evidence.compiled.memory import floats, narrow, wide
from adatkg_core.evidence.compiled.tables import slot_of
from adatkg_core.evidence.own_sources import Neighbours
from adatkg_core.runtime import compiled
from adatkg_core.state import GraphState

SUMS = 6  # besides those of the learned ways in which relations resemble each other


class Reading(NamedTuple):
    """Queries of newcomers and whom they read, by address."""

    size: int
    each: int  # how many neighbours
    row: int  # [C, each]
    weight: int  # [C, each]
    relation: int  # [C]
    kind: int  # [C] place of the relation among the distinct ones
    time: int
    n: int
    both: int  # how many relations there are
    heads: int
    near: int  # [2R, 2R]
    affinity: int  # [Q, 2R, heads]


class Sums(NamedTuple):
    """What comes of it."""

    place: int  # [U] query * n + candidate
    number: int  # [C * n] room
    total: int  # [U, SUMS + heads]


def alike_sums(state: GraphState, read: Neighbours, time: int, n: int) -> tuple[Tensor, Tensor]:
    """Places [U] and the logarithms of their sums [U, SUMS + heads]."""
    row, weight, affinity = read.row.contiguous(), read.weight.contiguous(), read.affinity.contiguous()
    most = int(state.tensors["pair_fill"][row].sum())
    place, number = row.new_empty(most), row.new_empty(row.shape[0] * n, dtype=torch.int32)
    heads = affinity.shape[2]
    total = weight.new_empty(most, SUMS + heads)
    held = map(Tensor.data_ptr, (row, weight, read.relation, read.kind))
    said = read.near.data_ptr(), affinity.data_ptr()
    reading = Reading._make((*row.shape, *held, time, n, read.near.shape[0], heads, *said))
    sums = Sums._make(map(Tensor.data_ptr, (place, number, total)))
    recall = state.config.recall
    used = _add_up(find_table(state, "pair"), reading, sums, recall.fast, recall.slow)
    return place[:used], total[:used].log1p_()


@compiled
def _add_up(pair: Table, reading: Reading, sums: Sums, fast: float, slow: float) -> int:
    """Fill the sums; returns of how many places."""
    rows, relation, kind = wide(reading.row), wide(reading.relation), wide(reading.kind)
    held, others, last = narrow(pair.relation), narrow(pair.other), narrow(pair.last)
    slowly, quickly, weights = floats(pair.slow), floats(pair.fast), floats(reading.weight)
    near, affinity = floats(reading.near), floats(reading.affinity)
    place, number, total = wide(sums.place), narrow(sums.number), floats(sums.total)
    quick_span, slow_span, width, used = single(fast), single(slow), SUMS + reading.heads, 0
    for c in range(reading.size):
        asked, of_kind = relation[c], kind[c] * reading.both
        for j in range(reading.each):
            row, alike = rows[c * reading.each + j], weights[c * reading.each + j]
            cubed = alike * alike * alike
            sharply = (cubed * cubed) * (cubed * cubed)
            for i in range(narrow(pair.fill)[row]):
                slot = slot_of(narrow(pair.pages), pair.width, row, i)
                here = c * reading.n + others[slot]
                at = number[here]
                if not (0 <= at < used and place[at] == here):
                    at = used
                    number[here], place[at] = at, here
                    for column in range(width):
                        total[at * width + column] = ZERO
                    used += 1
                age = single(max(reading.time - last[slot], 0))
                lively = slowly[slot] * np.exp(-age / slow_span)
                exact = ONE if held[slot] == asked else ZERO
                mass, sharp, to = cubed * lively, sharply * lively, at * width
                total[to] += exact * mass
                total[to + 1] += near[asked * reading.both + held[slot]] * mass
                total[to + 2] += mass
                total[to + 3] += cubed * (quickly[slot] * np.exp(-age / quick_span))
                total[to + 4] += exact * sharp
                total[to + 5] += sharp
                for head in range(reading.heads):
                    total[to + SUMS + head] += affinity[(of_kind + held[slot]) * reading.heads + head] * mass
    return used
