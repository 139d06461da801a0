"""What all terms of the recall head know about queries and candidates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from adatkg_core.model.recall_view import FarEnd
from adatkg_core.state import Slots

BASE_FEATURES = 5  # what is known of a slot: seen, counts, recency


@dataclass(frozen=True)
class Planes:
    """Features of flat places relation * n + candidate, of which few have any."""

    far: FarEnd
    kinds: int
    n: int

    def at(self, place: Tensor) -> Tensor:
        """Features [U, BASE_FEATURES] at places [U], zero where there are none."""
        held, number = self._numbered
        if held.shape[0] == 0:
            return self.far.features.new_zeros(place.shape[0], BASE_FEATURES)
        found = number[place].long().clamp(0, held.shape[0] - 1)
        return self.far.features[found] * (held[found] == place).unsqueeze(1)

    @cached_property
    def _numbered(self) -> tuple[Tensor, Tensor]:
        """The places [M] that have any, and a table that has their numbers there and elsewhere what memory held."""
        place = self.far.owner * self.n + self.far.other
        number = place.new_empty(self.kinds * self.n, dtype=torch.int32)
        number[place] = torch.arange(place.shape[0], dtype=torch.int32, device=place.device)
        return place, number


@dataclass(frozen=True)
class Context:
    """What every term knows about a query and a candidate besides its own counts."""

    relation: Tensor  # [B]
    kind: Tensor  # [B] place of the relation among the Q distinct ones
    embedded: Tensor  # [Q, relation_dim]
    similarity: Tensor  # [2R, 2R]
    affinity: Tensor  # [Q, 2R, heads]
    planes: Planes  # what is known of (relation, candidate)
    activity: Tensor  # [n, ACTIVITY_FEATURES]
    warmth: Tensor  # [B] log interactions of the subject
    n: int

    def of(self, place: Tensor) -> Tensor:
        """Features of the entries at flat places query * n + candidate, [U, …]."""
        query, candidate = place // self.n, place % self.n
        kind = self.kind[query]
        parts = (
            self.planes.at(kind * self.n + candidate),
            self.activity[candidate],
            self.embedded[kind],
            self.warmth[query].unsqueeze(1),
        )
        return torch.cat(parts, 1)


def counted(slots: Slots) -> tuple[Tensor, ...]:
    """What is known of each slot, in BASE_FEATURES columns."""
    return (
        torch.ones_like(slots.count),
        torch.log1p(slots.count),
        torch.log1p(slots.fast),
        torch.log1p(slots.slow),
        1 / (1 + slots.age),
    )
