"""Facts as the two entities of each see them."""

from __future__ import annotations

import torch
from torch import Tensor


def both_sides(facts: Tensor, n_relations: int) -> tuple[Tensor, Tensor, Tensor]:
    """Facts [n, 3] as interactions (entity, relation, other) [2n], seen from the subject, then from the object."""
    subject, relation, other = facts.unbind(1)
    return (
        torch.cat((subject, other)),
        torch.cat((relation, relation + n_relations)),
        torch.cat((other, subject)),
    )
