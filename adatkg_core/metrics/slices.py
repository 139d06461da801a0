"""The slices of a data set by whether its entities had been seen before."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from adatkg_core.metrics.ranks import as_facts, size_of

NEVER = torch.iinfo(torch.int64).max


class SliceIndex:
    """Knows when each entity first appears and whether training saw it, the stuff of the slices."""

    def __init__(
        self,
        facts: Tensor | np.ndarray,
        train: Tensor | np.ndarray,
        n_entities: int | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        facts = as_facts(facts, device)
        train = as_facts(train, facts.device)
        entities = facts[:, [0, 2]].flatten()  # [2M]
        times = facts[:, 3].repeat_interleave(2)  # [2M]
        if n_entities is None:
            n_entities = max(size_of(entities), size_of(train[:, [0, 2]]))
        never = torch.full((n_entities,), NEVER, dtype=torch.int64, device=facts.device)
        self.first_seen = never.scatter_reduce(0, entities, times, "amin")  # [E], largest int64: never
        self.in_train = torch.zeros(n_entities, dtype=torch.bool, device=facts.device)  # [E]
        self.in_train[train[:, [0, 2]].flatten()] = True

    def masks(self, subject: Tensor, obj: Tensor, time: Tensor) -> dict[str, Tensor]:
        """Which queries [B] fall into each slice; `subject` is the entity asked about (an inverse query's is
        its fact's object) and `obj` the answer. A query whose two ends are both unseen is in both parts."""
        new_subject, new_object = self.first_seen[subject] == time, self.first_seen[obj] == time
        strange_subject, strange_object = ~self.in_train[subject], ~self.in_train[obj]
        return {
            "all": torch.ones_like(new_subject),
            "emerging": new_subject | new_object,
            "emerging_subject_unseen": new_subject,
            "emerging_object_unseen": new_object,
            "unknown": strange_subject | strange_object,
            "unknown_subject_unseen": strange_subject,
            "unknown_object_unseen": strange_object,
        }
