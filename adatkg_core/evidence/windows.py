"""Windows: at how many of the latest ticks a pair was seen, how often in all, and whether it is due again.

For (s, r, o) and for (s, any relation, o), each from the pair's slot: distinct ticks with a fact that are at most 1, 3,
7 and 30 ticks before the time of reading (the slot remembers the 62 before its latest), distinct ticks ever, and
the age of the latest against the mean gap between them. Counts are given as log(1 + count), age / (gap + 1) likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from adatkg_core.evidence.questions import Questions
from adatkg_core.state import GraphState, PagedTable

SPANS = (1, 3, 7, 30)
OF_A_PAIR = len(SPANS) + 2
FEATURES = 2 * OF_A_PAIR


@dataclass(frozen=True)
class Windows:
    """Features of the pairs that were seen, by flat place query * n + candidate."""

    exact_place: Tensor  # [M]
    exact: Tensor  # [M, OF_A_PAIR]
    any_place: Tensor  # [M']
    any: Tensor  # [M', OF_A_PAIR]

    def at(self, place: Tensor, number: Tensor) -> Tensor:
        """Features [U, FEATURES] of places [U] that hold those of all pairs; `number` [B * n] has the row of each."""
        found = self.exact.new_zeros(place.shape[0], FEATURES)
        for start, where, features in ((0, self.exact_place, self.exact), (OF_A_PAIR, self.any_place, self.any)):
            found[number[where], start : start + OF_A_PAIR] = features
        return found


def read(state: GraphState, questions: Questions) -> Windows:
    """What the subjects' own pairs say."""
    owner, slot = state.pair_table.slots(state, questions.subject)
    same = state.tensors["pair_relation"][slot] == questions.relation[owner]
    exact = _of_slots(state, state.pair_table, owner[same], slot[same], questions)
    owner, slot = state.partner_table.slots(state, questions.subject)
    return Windows(*exact, *_of_slots(state, state.partner_table, owner, slot, questions))


def _of_slots(
    state: GraphState, table: PagedTable, owner: Tensor, slot: Tensor, questions: Questions
) -> tuple[Tensor, Tensor]:
    get = state.tensors
    other = get[f"{table.name}_other"][slot].long()
    inside = other < questions.n
    owner, slot, other = owner[inside], slot[inside], other[inside]
    last, first, times = (get[f"{table.name}_{part}"][slot] for part in ("last", "first", "times"))
    age = (questions.time - last).clamp(min=0).long()
    ticks = get[f"{table.name}_ticks"][slot]
    counts = [torch.log1p(_bits(ticks & _lately(span, age)).float()) for span in SPANS]
    gap = (last - first).float() / (times - 1).clamp(min=1)
    due = torch.log1p(age.float() / (gap + 1))
    return owner * questions.n + other, torch.stack((*counts, torch.log1p(times.float()), due), 1)


def _lately(span: int, age: Tensor) -> Tensor:
    """The bits of the ticks that are at most `span` old when the latest, bit 0, is `age` old."""
    kept = (span - age + 1).clamp(0, 62)
    return (torch.ones_like(age) << kept) - 1


def _bits(number: Tensor) -> Tensor:
    """How many bits of non-negative whole numbers are set, counted in pairs, fours, eights and then bytes."""
    number = number - ((number >> 1) & 0x5555555555555555)
    number = (number & 0x3333333333333333) + ((number >> 2) & 0x3333333333333333)
    number = (number + (number >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (number * 0x0101010101010101) >> 56
