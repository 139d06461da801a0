"""A commit: the facts of one time become part of the state in a single batched update.

What a commit computes depends on the state and on the facts of that time in log order, never on how they arrived,
so a state rebuilt from the log is bitwise the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.evidence import observe_evidence
from adatkg_core.model import AdaTKG, LastUpdate
from adatkg_core.state import GraphState, append_to_chains, both_sides, ordered_sums


@torch.no_grad()
def commit_facts(model: AdaTKG, state: GraphState, facts: Tensor, time: int) -> LastUpdate | None:
    """Take in the facts [n, 3] of one time, n > 0. The model must be in evaluation mode."""
    with ordered_sums(state.device):
        return _commit(model, state, facts, time)


def _commit(model: AdaTKG, state: GraphState, facts: Tensor, time: int) -> LastUpdate | None:
    entity, relation, other = both_sides(facts, state.n_relations)
    last = None
    if model.config.model.enabled:
        vectors = model.relations()
        encoding, nonempty = model.encode_chains(state, entity, relation, time, vectors)
        if model.config.model.prior:
            decay = model.config.model.prototype_decay
            total, weight = move_prototypes(state, entity[nonempty], encoding[nonempty], decay)
            state.put("prototype_sum", slice(None), total)
            state.put("prototype_weight", slice(None), weight)
        if model.memory is not None:
            last = _update_memory(model, state, entity, relation, encoding, vectors)
    append_to_chains(state, entity, relation, other, time)
    if state.keeps_evidence:
        observe_evidence(state, entity, relation, other, time)
    if model.recall is not None:
        state.pair_table.add(state, entity, relation, other, time)
        state.relation_table.add(state, relation, torch.zeros_like(relation), other, time)
        new = state.tensors["interactions"][entity] < state.config.recall.cold_below
        if bool(new.any()):
            state.newcomer_table.add(state, relation[new], torch.zeros_like(relation[new]), other[new], time)
    _count(state, entity, time)
    return last


def _update_memory(
    model: AdaTKG, state: GraphState, entity: Tensor, relation: Tensor, encoding: Tensor, vectors: Tensor
) -> LastUpdate:
    who, group = torch.unique(entity, return_inverse=True)
    previous, updates = state.tensors["memory"][who], state.tensors["updates"][who]
    last = LastUpdate(who, previous, updates, group, encoding, relation)
    state.put("memory", who, model.updated_memory(state, last, vectors))
    state.put("updates", who, updates + 1)
    return last


def move_prototypes(state: GraphState, entity: Tensor, encoding: Tensor, decay: float) -> tuple[Tensor, Tensor]:
    """The sums [K, d] and weights [K] of prototypes with these chain encodings [I, d], the others having faded."""
    cluster, total, weight = (state.tensors[name] for name in ("cluster", "prototype_sum", "prototype_weight"))
    cluster = cluster[entity]
    count = torch.ones_like(cluster, dtype=weight.dtype)
    return (total * decay).index_add(0, cluster, encoding), (weight * decay).index_add(0, cluster, count)


def _count(state: GraphState, entity: Tensor, time: int) -> None:
    who, count = torch.unique(entity, return_counts=True)
    get = state.tensors
    if "activity_fast" in get:
        age = (time - get["last_time"][who]).clamp(min=0).float()
        for name, span in (
            ("activity_fast", state.config.recall.fast),
            ("activity_slow", state.config.recall.slow),
        ):
            state.put(name, who, get[name][who] * torch.exp(-age / span) + count)
    state.put("interactions", who, get["interactions"][who] + count)
    state.put("last_time", who, torch.full_like(who, time))
