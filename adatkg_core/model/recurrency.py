"""The recurrency heuristic that stands beside every result: what happened before will happen again.

A candidate's score is a sum of decayed counts, each kind far below the one before it: the same fact, the same two
entities, the same relation's far end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.evidence import count_recurrence
from adatkg_core.settings import Config, ModelConfig, RecallConfig
from adatkg_core.state import GraphState, both_sides

SAME_PAIR = 1e-3
SAME_RELATION = 1e-6


class Recurrency:
    """Counts facts and scores by the counts, strictly from what it has observed."""

    def __init__(self, n_relations: int, device: torch.device, recall: RecallConfig | None = None) -> None:
        model = ModelConfig(dim=8, memory="none", prior=False, chain_length=1, chain_capacity=1)
        self.state = GraphState(Config(model, recall or RecallConfig()), 0, n_relations, device)

    def observe(self, facts: Tensor, time: int) -> None:
        """Count the facts [n, 3] of one time."""
        entity, relation, other = both_sides(facts, self.state.n_relations)
        self.state.reserve(int(facts[:, [0, 2]].max()) + 1)
        self.state.pair_table.add(self.state, entity, relation, other, time)
        self.state.relation_table.add(self.state, relation, torch.zeros_like(relation), other, time)

    def score(self, subject: Tensor, relation: Tensor, time: int, n: int) -> Tensor:
        """Queries [B] -> scores [B, n]."""
        self.state.reserve(n)
        return score_recurrency(self.state, subject, relation, time, n)


def keeps_counts(state: GraphState) -> bool:
    """Whether the state has the tables that the heuristic reads: they belong to the recall head."""
    return state.config.recall.enabled


def score_recurrency(state: GraphState, subject: Tensor, relation: Tensor, time: int, n: int) -> Tensor:
    """Queries [B] -> scores [B, n], from the counts of a state as it stands; n must cover whoever is counted there."""
    if state.device.type == "cpu":
        return count_recurrence(state, subject, relation, time, n, SAME_PAIR, SAME_RELATION)
    kinds, kind = torch.unique(relation, return_inverse=True)
    seen = state.relation_table.read(state, kinds, time)
    far = seen.slow.new_zeros(kinds.shape[0] * n).index_add(0, seen.owner * n + seen.other, seen.slow)
    own = state.pair_table.read(state, subject, time)
    weight = own.slow * torch.where(own.relation == relation[own.owner], 1.0, SAME_PAIR)
    scores = (SAME_RELATION * far.view(-1, n))[kind].reshape(-1)
    return scores.index_add_(0, own.owner * n + own.other, weight).view(-1, n)
