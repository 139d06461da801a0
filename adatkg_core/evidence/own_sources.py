"""What is known of queries besides their subjects' own slots."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class OwnSources:
    """What is known besides the slots of the subjects themselves; all of it on a CPU, in single precision."""

    near: Tensor  # [2R, 2R] how alike relations are
    affinity: Tensor  # [Q, 2R, heads] how much each says about those asked for
    lift: Tensor | None  # [Q, 2R]
    embedded: Tensor  # [Q, …]
    far: tuple[Tensor, Tensor, Tensor]  # owner [M], other [M], features [M, 5] of the far ends
    activity: Tensor  # [n, …]
    warmth: Tensor  # [B]


@dataclass(frozen=True)
class Neighbours:
    """Whom the queries of newcomers read instead of their subjects, and what relations say to them."""

    row: Tensor  # [C, k]
    weight: Tensor  # [C, k] how alike their names are
    relation: Tensor  # [C]
    kind: Tensor  # [C] place of the relation among the distinct ones
    near: Tensor  # [2R, 2R] how alike relations are
    affinity: Tensor  # [Q, 2R, heads] how much each says about those asked for
