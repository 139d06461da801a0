"""Transitions: which relation tends to follow which between the same two entities.

followed[r', r] counts, for each fact (s, r, o), the relations r' under which s and o had been seen before it. The lift
of r' for r is the logarithm of how much more often r came after r' than its share of all that followed would say:

  lift[r', r] = log((followed[r', r] + 5) / (followed[r', .] followed[., r] / followed[., .] + 5))

A pair that has seen several relations has the mean of their lifts by slow and by fast counts (over their sum plus 0.1,
so that what has faded says little), and the largest.
"""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.state import GraphState, Slots

FEATURES = 3  # the lift of what a pair has seen: weighted by slow and by fast counts, and the largest
PRIOR = 5.0  # counts that are added to either side, so that few say little


def observe(state: GraphState, entity: Tensor, relation: Tensor, other: Tensor) -> None:
    """Count interactions [I] after what their pairs had seen; before the pair table takes them in."""
    owner, slot = state.pair_table.slots(state, entity)
    mine = state.tensors["pair_other"][slot] == other[owner]
    before, now = state.tensors["pair_relation"][slot[mine]].long(), relation[owner[mine]]
    if before.shape[0] == 0:
        return
    both = state.tensors["followed"].shape[1]
    key, count = torch.unique(before * both + now, return_counts=True)
    place = (key // both, key % both)
    state.put("followed", place, state.tensors["followed"][place] + count)


def totals_of(state: GraphState) -> tuple[Tensor, Tensor]:
    """How often each relation was followed [2R], and how often any was, at least once []."""
    before = state.tensors["followed"].sum(1)
    return before, before.sum().clamp(min=1)


def lift_of(state: GraphState, kinds: Tensor, totals: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """The lift of every relation for each of those asked [Q], [Q, 2R]; zero where nothing is known.

    `totals` are those of the state, if the caller has them already.
    """
    before, all_that_followed = totals or totals_of(state)
    followed = state.tensors["followed"][:, kinds].T  # [Q, 2R]
    # Exact, in whatever order: single precision may no longer add such counts up.
    share = (followed.sum(1, keepdim=True, dtype=torch.float64) / all_that_followed).float()
    return torch.log((followed + PRIOR) / (before * share + PRIOR))


def follow(lift: Tensor, slots: Slots, entry: Tensor, entries: int) -> Tensor:
    """Features [entries, 3] of pairs from the lift [M] of each of their slots, which `entry` [M] assigns to them."""
    columns = torch.stack((lift * slots.slow, slots.slow, lift * slots.fast, slots.fast), 1)
    slow, all_slow, fast, all_fast = columns.new_zeros(entries, 4).index_add(0, entry, columns).unbind(1)
    largest = lift.new_zeros(entries).scatter_reduce(0, entry, lift, "amax", include_self=False)
    return torch.stack((slow / (all_slow + 0.1), fast / (all_fast + 0.1), largest), 1)
