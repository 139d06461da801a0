"""The recall head: what recurred, and what recurred for entities of similar names.

Every term reads the bounded tables of the state and touches only candidates that stand in them, so its cost
follows the history that a query really has. The scores are:

  base[r, o]    how o fares at the far end of r: a low-rank term for all, a learned one for those seen there
  own[s, r, o]  what s did with o: with r itself, with any relation, and with relations that r resembles
  alike[s,r,o]  for a subject of few interactions: what the nearest names did
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adatkg_core.config import RecallConfig
from adatkg_core.state import GraphState
from adatkg_core.tables import Slots

BASE_FEATURES = 5  # what is known of a slot: seen, counts, recency
ACTIVITY_FEATURES = 4
OWN_FEATURES = BASE_FEATURES + 6
ALIKE_FEATURES = 4


class Recall(nn.Module):
    """Scores [B, N] from the tables, for queries (subject, relation, time)."""

    def __init__(self, config: RecallConfig, n_relations: int, similarity: Tensor) -> None:
        super().__init__()
        self.config = config
        both = 2 * n_relations
        self.similarity: Tensor
        self.register_buffer("similarity", similarity, persistent=False)  # [2R, 2R]
        width, heads = config.relation_dim, config.heads
        self.relation = nn.Embedding(both, width)
        nn.init.normal_(self.relation.weight, std=0.1)
        self.ask = nn.Parameter(torch.randn(both, heads, 8) * 0.3)
        self.tell = nn.Parameter(torch.randn(both, heads, 8) * 0.3)
        self.activity = nn.Sequential(nn.Linear(ACTIVITY_FEATURES, 32), nn.GELU(), nn.Linear(32, width))
        self.wants = nn.Linear(width, width)
        self.base = _mlp(BASE_FEATURES + ACTIVITY_FEATURES + width, config.hidden)
        context = BASE_FEATURES + ACTIVITY_FEATURES + width + 1
        self.own = _mlp(OWN_FEATURES + 2 * heads + context, config.hidden)
        self.alike = _mlp(ALIKE_FEATURES + heads + context, config.hidden)

    def forward(self, state: GraphState, subject: Tensor, relation: Tensor, time: int, n: int) -> Tensor:
        """Queries [B] -> scores [B, n] over the first n entities."""
        activity = self._activity(state, n, time)
        kinds, kind = torch.unique(relation, return_inverse=True)
        base, planes = self._base(state, kinds, activity, time, n)
        scores = base[kind]
        warmth = torch.log1p(state.tensors["interactions"][subject].float())
        context = _Context(kind, relation, warmth, activity, planes, n)
        flat = scores.reshape(-1)
        for place, value in (
            self._own(state, subject, time, context),
            self._alike(state, subject, time, context),
        ):
            flat = flat.index_add(0, place, value)
        return flat.view(-1, n)

    def _activity(self, state: GraphState, n: int, time: int) -> Tensor:
        get = state.tensors
        age = (time - get["last_time"][:n]).clamp(min=0).float()
        seen = get["interactions"][:n] > 0
        return torch.stack(
            (
                torch.log1p(get["interactions"][:n].float()),
                torch.log1p(get["activity_fast"][:n] * torch.exp(-age / self.config.fast)),
                torch.log1p(get["activity_slow"][:n] * torch.exp(-age / self.config.slow)),
                torch.where(seen, 1 / (1 + age), -1.0),
            ),
            1,
        )  # [n, 4]

    def _base(self, state: GraphState, kinds: Tensor, activity: Tensor, time: int, n: int) -> tuple[Tensor, Tensor]:
        embedded = self.relation(kinds)
        scores = self.wants(embedded) @ self.activity(activity).T  # [Q, n]
        slots = state.relation_table.read(state, kinds, time)
        features = torch.stack(_counted(slots), 1)
        place = slots.owner * n + slots.other
        planes = features.new_zeros(kinds.shape[0] * n, BASE_FEATURES).index_copy(0, place, features)
        seen = self.base(torch.cat((features, activity[slots.other], embedded[slots.owner]), 1)).squeeze(1)
        scores = scores.reshape(-1).index_add(0, place, seen)
        return scores.view(-1, n), planes

    def _own(self, state: GraphState, subject: Tensor, time: int, context: _Context) -> tuple[Tensor, Tensor]:
        slots = state.pair_table.read(state, subject, time)
        asked = context.relation[slots.owner]
        exact = (slots.relation == asked).float()
        place, entry = torch.unique(slots.owner * context.n + slots.other, return_inverse=True)
        lively = torch.stack((slots.fast, slots.slow), 1)  # [M, 2]
        near = self.similarity[asked, slots.relation].unsqueeze(1)
        affinity = self._affinity(asked, slots.relation)  # [M, heads]
        exactly = torch.stack(_counted(slots), 1) * exact.unsqueeze(1)  # one slot at most, so a sum is a copy
        columns = torch.cat(
            (
                exactly,
                slots.count.unsqueeze(1),
                lively,
                near * lively,
                affinity * slots.slow.unsqueeze(1),
                affinity * slots.fast.unsqueeze(1),
            ),
            1,
        )
        total = columns.new_zeros(place.shape[0], columns.shape[1]).index_add(0, entry, columns)
        latest = columns.new_zeros(place.shape[0]).index_reduce(0, entry, 1 / (1 + slots.age), "amax")
        exact_part, rest = total[:, :BASE_FEATURES], torch.log1p(total[:, BASE_FEATURES:])
        features = torch.cat((exact_part, rest, latest.unsqueeze(1), context.of(self, place)), 1)
        return place, self.own(features).squeeze(1)

    def _alike(self, state: GraphState, subject: Tensor, time: int, context: _Context) -> tuple[Tensor, Tensor]:
        cold = (state.tensors["interactions"][subject] < self.config.cold_below).nonzero().squeeze(1)
        names, which = torch.unique(subject[cold], return_inverse=True)
        neighbour, weight = nearest_names(state, names, self.config.neighbours)  # [D, k]
        k = neighbour.shape[1]
        reader = cold.repeat_interleave(k)
        row = neighbour[which].reshape(-1)
        slots = state.pair_table.read(state, row, time)
        asked = context.relation[reader[slots.owner]]
        mass = weight[which].reshape(-1)[slots.owner] * slots.slow
        place, entry = torch.unique(reader[slots.owner] * context.n + slots.other, return_inverse=True)
        exact = (slots.relation == asked).float() * mass
        near = self.similarity[asked, slots.relation] * mass
        recent = weight[which].reshape(-1)[slots.owner] * slots.fast
        affinity = self._affinity(asked, slots.relation) * mass.unsqueeze(1)
        columns = torch.cat((torch.stack((exact, near, mass, recent), 1), affinity), 1)
        total = torch.log1p(columns.new_zeros(place.shape[0], columns.shape[1]).index_add(0, entry, columns))
        return place, self.alike(torch.cat((total, context.of(self, place)), 1)).squeeze(1)

    def _affinity(self, asked: Tensor, told: Tensor) -> Tensor:
        return F.softplus((self.ask[asked] * self.tell[told]).sum(-1))


class _Context:
    """What every term knows about a query and a candidate besides its own counts."""

    def __init__(
        self, kind: Tensor, relation: Tensor, warmth: Tensor, activity: Tensor, planes: Tensor, n: int
    ) -> None:
        self.kind, self.relation, self.warmth = kind, relation, warmth
        self.activity, self.planes, self.n = activity, planes, n

    def of(self, head: Recall, place: Tensor) -> Tensor:
        """Features of the entries at flat places query * n + candidate, [U, …]."""
        query, candidate = place // self.n, place % self.n
        return torch.cat(
            (
                self.planes[self.kind[query] * self.n + candidate],
                self.activity[candidate],
                head.relation(self.relation[query]),
                self.warmth[query].unsqueeze(1),
            ),
            1,
        )


def nearest_names(state: GraphState, names: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """For each entity [D] the k entities with interactions whose names are most alike, and similarity cubed."""
    seen = (state.tensors["interactions"][: state.entities] > 0).nonzero().squeeze(1)
    text = state.tensors["text"]
    cosine = text[names].double() @ text[seen].double().T  # [D, S]
    cosine = cosine.masked_fill(names.unsqueeze(1) == seen, -1)
    # Whole numbers in double precision: ties go to the older entity, whatever else is in the batch.
    order = (cosine * 1e6).round().long() * (seen.shape[0] + 1) - torch.arange(seen.shape[0], device=seen.device)
    best = order.topk(min(k, seen.shape[0]), dim=1).indices
    return seen[best], cosine.gather(1, best).clamp(min=0).pow(3).float()


def _counted(slots: Slots) -> tuple[Tensor, ...]:
    return (
        torch.ones_like(slots.count),
        torch.log1p(slots.count),
        torch.log1p(slots.fast),
        torch.log1p(slots.slow),
        1 / (1 + slots.age),
    )


def _mlp(inputs: int, hidden: int) -> nn.Sequential:
    last = nn.Linear(hidden, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), last)
