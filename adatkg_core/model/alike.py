"""What the entities of the nearest names did, by tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.evidence import Neighbours
from adatkg_core.state import GraphState, distinct_places


def alike_by_tensors(state: GraphState, read: Neighbours, time: int, n: int) -> tuple[Tensor, Tensor]:
    """Places query * n + candidate [U], and the logarithms of their sums [U, …]."""
    row, alike = read.row.reshape(-1), read.weight.reshape(-1)
    reader = torch.arange(read.row.shape[0], device=row.device).repeat_interleave(read.row.shape[1])
    slots = state.pair_table.read(state, row, time)
    reader, alike = reader[slots.owner], alike[slots.owner]
    asked = read.relation[reader]
    exact = (slots.relation == asked).float()
    mass = alike.pow(3) * slots.slow
    sharp = alike.pow(12) * slots.slow
    related = read.near[asked, slots.relation] * mass
    sums = (exact * mass, related, mass, alike.pow(3) * slots.fast, exact * sharp, sharp)
    affinity = read.affinity[read.kind[reader], slots.relation] * mass.unsqueeze(1)
    columns = torch.cat((torch.stack(sums, 1), affinity), 1)
    place, number = distinct_places(reader * n + slots.other, read.row.shape[0] * n)
    entry = number[reader * n + slots.other]
    return place, torch.log1p(columns.new_zeros(place.shape[0], columns.shape[1]).index_add(0, entry, columns))
