"""Interaction chains: which recent facts of an entity a reader at time t looks at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from adatkg_core.state.graph_state import GraphState
from adatkg_core.state.tensor_ops import distinct_places, rank_in_group


@dataclass(frozen=True)
class Chains:
    """Distinct chains, packed: M real tokens of C chains, and which chain each of the B readers uses.

    Chains of one entity, chosen for different relations, have facts in common: F distinct ones in all.
    """

    of_reader: Tensor  # [B] chain of each reader
    mask: Tensor  # [C, L] True where a token stands
    fact: Tensor  # [M] which of the F facts each token is
    entity: Tensor  # [F]
    relation: Tensor  # [F]
    other: Tensor  # [F]
    age: Tensor  # [F] ticks

    @property
    def nonempty(self) -> Tensor:
        """Whether each reader's chain holds anything, [B]."""
        return self.mask[:, 0][self.of_reader]


def select_chains(
    state: GraphState,
    entity: Tensor,
    relation: Tensor,
    time: int,
    similarity: Tensor,
    window: int,
    length: int,
) -> Chains:
    """The facts of each reader's entity in [time - window, time), at most `length` of them.

    When there are more, those whose relation is most similar to the reader's are taken, the later first among
    equals. Readers with the same entity share a chain unless that choice sets them apart.
    """
    who, reader = torch.unique(entity, return_inverse=True)
    capacity = state.tensors["ring_time"].shape[1]
    newest = state.tensors["interactions"][who].unsqueeze(1) - 1  # [P, 1]
    position = torch.arange(capacity, device=who.device).unsqueeze(0)
    freshness = capacity - 1 - (newest - position) % capacity  # [P, capacity] the latest is the largest
    stamp = state.tensors["ring_time"][who]
    inside = (position <= newest) & (stamp < time) & (stamp >= time - window)
    crowded = inside.sum(1) > length

    n_relations = similarity.shape[0]
    asked = torch.where(crowded[reader], relation, 0)
    chain, of_reader = torch.unique(reader * n_relations + asked, return_inverse=True)
    row, asked = chain // n_relations, chain % n_relations
    kind = state.tensors["ring_relation"][who[row]].long()  # [C, capacity]
    closeness = (similarity[asked].gather(1, kind) * 1e6).round().long() * crowded[row].unsqueeze(1)
    # Whole numbers, so that what was batched together can never change the choice.
    key = torch.where(inside[row], (closeness + 1) * capacity + freshness[row], -1)
    best, column = key.topk(min(length, capacity), dim=1)
    mask = best >= 0
    place = (row.unsqueeze(1) * capacity + column)[mask]
    distinct, number = distinct_places(place, who.shape[0] * capacity)
    owner, column = who[distinct // capacity], distinct % capacity
    return Chains(
        of_reader=of_reader,
        mask=mask,
        fact=number[place],
        entity=owner,
        relation=state.tensors["ring_relation"][owner, column].long(),
        other=state.tensors["ring_other"][owner, column].long(),
        age=time - state.tensors["ring_time"][owner, column],
    )


def append_to_chains(state: GraphState, entity: Tensor, relation: Tensor, other: Tensor, time: int) -> None:
    """Write interactions of one commit, in the order given, behind what each entity's ring holds."""
    capacity = state.tensors["ring_time"].shape[1]
    rank = rank_in_group(entity)
    latest = rank_in_group(entity.flip(0)).flip(0) < capacity  # earlier ones would be overwritten at once
    entity, relation, other, rank = entity[latest], relation[latest], other[latest], rank[latest]
    column = (state.tensors["interactions"][entity] + rank) % capacity
    place = (entity, column)
    state.put("ring_relation", place, relation.to(torch.int32))
    state.put("ring_other", place, other.to(torch.int32))
    state.put("ring_time", place, torch.full_like(entity, time, dtype=torch.int32))
