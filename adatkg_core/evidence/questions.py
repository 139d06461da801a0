"""Queries of one time, with what every family of evidence wants to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

OLDEST = 4096  # ticks; what is older has decayed to nothing


@dataclass(frozen=True)
class Questions:
    """Queries (subject, relation) [B] at one time, about the first n entities."""

    subject: Tensor  # [B]
    relation: Tensor  # [B]
    kinds: Tensor  # [Q] the distinct relations
    kind: Tensor  # [B] place of the relation among them
    time: int
    n: int

    @classmethod
    def of(cls, subject: Tensor, relation: Tensor, time: int, n: int) -> Questions:
        """With the distinct relations found."""
        if relation.shape[0] == 1:  # asked alone
            return cls(subject, relation, relation, torch.zeros_like(relation), time, n)
        kinds, kind = torch.unique(relation, return_inverse=True)
        return cls(subject.contiguous(), relation.contiguous(), kinds, kind, time, n)  # compiled code goes by addresses


def decayed(stored: Tensor, last: Tensor, time: int, span: float) -> Tensor:
    """Counts [M] as stored at the times `last` [M], as they are at `time`; equal ages decay by equal bits."""
    return stored * shares_left(span, stored.device)[(time - last.long()).clamp(0, OLDEST - 1)]


@cache
def shares_left(span: float, device: torch.device) -> Tensor:
    """What is left of a count at each age [OLDEST]."""
    share = torch.exp(-torch.arange(OLDEST, device=device) / span)
    share[-1] = 0
    return share


def damped(count: Tensor) -> Tensor:
    """Grows like the logarithm of a count at first and ends at 4; a quotient, so that every element rounds alike."""
    return count / (1 + 0.25 * count)
