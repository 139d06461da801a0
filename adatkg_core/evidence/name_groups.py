"""Groups in names: "Citizen (Kenya)" has the role Citizen and the group Kenya, whose head is Kenya itself.

With g_e and q_e the group and role of e, and counts that decay with the slow span:

  gb[s, r, o]   facts (s', r, o) of all s' in the group of s           what the group does under the relation asked
  ga[s, o]      the same under whatever relation
  rb[s, r, o]   facts (s', r, o) of all s' with the role of s          what its like does
  ig[s, r, o]   where s and o share a group: facts of r inside any group whose far end has the role of o
  ir[s, r, o]   of these, the ones whose near end has the role of s
besides: whether s and o share a group, and whether o is then its head.

Names without such a structure have no group, and all of this is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from adatkg_core.evidence.questions import Questions, decayed
from adatkg_core.state import HEAD, GraphState, PagedTable

FEATURES = 7


def observe(state: GraphState, entity: Tensor, relation: Tensor, other: Tensor, time: int) -> None:
    """Count interactions [I] for the groups and roles of their ends."""
    group, role = state.tensors["group"], state.tensors["role"]
    for kin, table in ((group, state.group_fact_table), (role, state.role_fact_table)):
        some = kin[entity] >= 0
        if bool(some.any()):
            table.add(state, kin[entity[some]], relation[some], other[some], time)
    inside = (group[entity] >= 0) & (group[entity] == group[other])
    if bool(inside.any()):
        near, far = role[entity[inside]], role[other[inside]]
        state.inside_table.add(state, relation[inside], near, far, time)


@dataclass(frozen=True)
class NameGroups:
    """The terms as planes [B * n]; those inside a group are sparse."""

    questions: Questions
    counts: tuple[Tensor, Tensor, Tensor]  # gb, ga, rb [B * n]
    member: Tensor  # [B * n] of the subject's group
    head: Tensor  # [n]
    inside: tuple[Tensor, ...]  # ig, ir [B * n]
    place: Tensor  # [U] where these may be more than zero, also for whom no fact has named: the members

    def at(self, place: Tensor) -> Tensor:
        """Features [U, 7] of the entries at flat places query * n + candidate."""
        counts = torch.log1p(torch.stack([plane[place] for plane in (*self.counts, *self.inside)], 1))
        member = self.member[place]
        flags = torch.stack((member, member & self.head[place % self.questions.n]), 1).float()
        return torch.cat((counts, flags), 1)

    def worth(self) -> list[Tensor]:
        """Planes [B, n] by which candidates are proposed, zero for whom no fact has named."""
        return [plane.view(-1, self.questions.n) for plane in self.counts]


def read(state: GraphState, questions: Questions) -> NameGroups:
    """What groups and roles say about the queries."""
    n = questions.n
    group, role = state.tensors["group"], state.tensors["role"]
    mine = group[questions.subject]
    by_group, at_all = _counted(state, state.group_fact_table, mine, questions)
    by_role, _ = _counted(state, state.role_fact_table, role[questions.subject], questions)
    member = (group[:n] == mine.unsqueeze(1)) & (mine >= 0).unsqueeze(1)  # [B, n]
    place = member.view(-1).nonzero().squeeze(1)
    whole, alike = _inside(state, questions, place)
    inside = (
        torch.zeros_like(by_group).index_copy_(0, place, whole),
        torch.zeros_like(by_group).index_copy_(0, place, alike),
    )
    return NameGroups(questions, (by_group, at_all, by_role), member.view(-1), role[:n] == HEAD, inside, place)


def _counted(state: GraphState, table: PagedTable, kin: Tensor, questions: Questions) -> tuple[Tensor, Tensor]:
    """Decayed counts of what each query's kin [B] did, under its relation and at all: two planes [B * n]."""
    some = (kin >= 0).nonzero().squeeze(1)
    owner, slot = table.slots(state, kin[some])
    get = state.tensors
    relation, other = get[f"{table.name}_relation"][slot], get[f"{table.name}_other"][slot].long()
    inside = other < questions.n
    owner, slot, relation, other = owner[inside], slot[inside], relation[inside], other[inside]
    count = decayed(get[f"{table.name}_slow"][slot], get[f"{table.name}_last"][slot], questions.time, table.slow)
    query = some[owner]
    place = query * questions.n + other
    exact = relation == questions.relation[query]
    size = kin.shape[0] * questions.n
    asked = count.new_zeros(size).index_add_(0, place[exact], count[exact])
    return asked, count.new_zeros(size).index_add_(0, place, count)


def _inside(state: GraphState, questions: Questions, place: Tensor) -> tuple[Tensor, Tensor]:
    """For entries [U] whose two ends share a group: how lively their roles are under the relation inside groups."""
    table, get = state.inside_table, state.tensors
    owner, slot = table.slots(state, questions.kinds)
    near, far = get["inside_relation"][slot].long(), get["inside_other"][slot].long()
    count = decayed(get["inside_slow"][slot], get["inside_last"][slot], questions.time, table.slow)
    roles = int(max(get["role"].max().item(), 0)) + 1
    query, candidate = place // questions.n, place % questions.n
    kind, wanted = questions.kind[query], get["role"][candidate]
    whole = count.new_zeros(questions.kinds.shape[0] * roles).index_add_(0, owner * roles + far, count)
    # The entry of (relation, near, far) by its place among the sorted keys of what was counted.
    key = (owner * roles + near) * roles + far
    order = torch.argsort(key)
    mine = (kind * roles + get["role"][questions.subject[query]]) * roles + wanted
    if key.shape[0] == 0:
        return whole[kind * roles + wanted], torch.zeros_like(whole[kind * roles + wanted])
    at = torch.searchsorted(key[order], mine).clamp(max=key.shape[0] - 1)
    found = key[order][at] == mine
    return whole[kind * roles + wanted], torch.where(found, count[order][at], 0.0)
