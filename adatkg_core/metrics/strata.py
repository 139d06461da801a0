"""The strata of a data set: its queries parted by what of each was known strictly before its time.

A query (s, r, ?, t) with the answer o is in the first of these that holds; a relation r + R asks backwards, so a fact
is known from both its sides, and the same relation the other way round is another one:

  subject_unseen       s is in no fact before t
  object_unseen        o is in no fact before t
  exact_repeat         (s, r, o) was there before t
  pair_other_relation  s and o were in a fact together, but never so
  object_at_relation   never together, but o was at the far end of r: (·, r, o)
  other_new_pair       never together, and o never was there
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from adatkg_core.constants import STRATA
from adatkg_core.metrics.ranks import as_facts, find_sorted, size_of
from adatkg_core.metrics.slices import NEVER


class StrataIndex:
    """Knows when each entity, pair, triple and far end of a relation was first seen, from all facts of a data set."""

    def __init__(
        self,
        facts: Tensor | np.ndarray,
        n_relations: int,
        device: torch.device | str | None = None,
    ) -> None:
        facts = as_facts(facts, device)
        subject, relation, obj, time = facts.unbind(dim=1)
        subject, obj = torch.cat([subject, obj]), torch.cat([obj, subject])  # [2M], [2M]
        relation, time = torch.cat([relation, relation + n_relations]), time.repeat(2)
        self._n_entities, self._n_relations = size_of(subject), 2 * n_relations
        if self._n_entities * max(self._n_entities, self._n_relations) > NEVER:
            raise ValueError("entity ids are too large for strata; number the entities from 0")
        self._entities = _FirstSeen(subject, time)
        self._pairs = _FirstSeen(subject * self._n_entities + obj, time)
        self._ends = _FirstSeen(relation * self._n_entities + obj, time)
        # A pair's dense number times the relations cannot overflow, as the ids themselves could.
        self._triples = _FirstSeen(self._pairs.places * self._n_relations + relation, time)

    def masks(self, subject: Tensor, relation: Tensor, obj: Tensor, time: Tensor) -> dict[str, Tensor]:
        """Which queries [B] fall into each stratum: each into exactly one. `obj` are the answers."""
        pair, pair_time = self._pairs.find(self._key(subject, obj))
        triple = torch.where(pair_time < NEVER, pair * self._n_relations + relation, -1)
        holds = {
            "subject_unseen": self._entities.find(subject)[1] >= time,
            "object_unseen": self._entities.find(obj)[1] >= time,
            "exact_repeat": self._triples.find(triple)[1] < time,
            "pair_other_relation": pair_time < time,
            "object_at_relation": self._ends.find(self._key(relation, obj))[1] < time,
            "other_new_pair": torch.ones_like(subject, dtype=torch.bool),
        }
        left = torch.ones_like(subject, dtype=torch.bool)
        masks = {}
        for name, mask in holds.items():
            masks[name] = mask & left
            left = left & ~mask
        return {name: masks[name] for name in STRATA}

    def _key(self, first: Tensor, obj: Tensor) -> Tensor:
        """Two ids in one number; an entity that is in no fact must not be taken for a neighbour's."""
        return torch.where(obj < self._n_entities, first * self._n_entities + obj, -1)


class _FirstSeen:
    """The distinct keys of some facts, sorted, and when each first occurred."""

    def __init__(self, keys: Tensor, times: Tensor) -> None:
        self._keys, self.places = torch.unique(keys, return_inverse=True)  # places: of each key given, [2M]
        never = torch.full_like(self._keys, NEVER)
        self._first = never.scatter_reduce(0, self.places, times, "amin")

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """The place of each key [B], and when it was first seen: the largest int64 for never."""
        place, there = find_sorted(self._keys, keys)
        if not len(self._keys):
            return place, torch.full_like(keys, NEVER)
        return place, torch.where(there, self._first[place], NEVER)
