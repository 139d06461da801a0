"""Two hops: whom the partners of a subject know, and what those who resemble it do.

With A[e, x] = damped(decayed count of facts between e and x, under whatever relation), B_r[x, o] likewise under r
alone, each by the slow count or (A', B') by the fast one, P and P' the rows of A and A' divided by their sums (by 1e-9
at least: a row that has decayed so far falls silent), d_x the number of x's partners, and w_x = 1 / (1 + d_x):

  as[s, r, o]  = sum over x of P[s, x] B_r[x, o]                      what partners do under the relation asked
  as'[s, r, o] = sum over x of P'[s, x] B'_r[x, o]                    the same, lately
  cf[s, r, o]  = sum over x of like(s, x)^2 B_r[x, o], x not s        what those with the same partners do
  cn[s, o]     = sum over x of P[s, x] sqrt(w_x) A[x, o]              partners of partners
  cn'[s, o]    = sum over x of P'[s, x] sqrt(w_x) A'[x, o]            the same, lately
  like(s, x)   = sum over y of A[s, y] A[y, x] w_y / (|s| |x|)        how much s and x share their partners

where |x|^2 = sum over y of A[x, y]^2 w_y as of x's latest fact. B reaches as far as the `fact_slots` liveliest pairs of
the relation and joins only entities that are asked about, A reaches as far as the `partner_slots` liveliest partners of
an entity, and the second step of cn and like is taken from the `hops` closest partners.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from adatkg_core.evidence.questions import Questions, damped, decayed
from adatkg_core.state import GraphState, PagedTable, ragged, rank_in_group

FEATURES = 5
SCALE = 20.0
SPEEDS = ("slow", "fast")


def observe(state: GraphState, entity: Tensor, relation: Tensor, other: Tensor, time: int) -> None:
    """Count interactions [I], and measure the rows that they changed."""
    state.partner_table.add(state, entity, torch.zeros_like(relation), other, time)
    state.fact_table.add(state, relation, entity, other, time)
    who = torch.unique(entity)
    owner, partner, close, _ = _partners(state, who, time)
    square = close * close * _rarity(state, partner)
    total = square.new_zeros(who.shape[0]).index_add_(0, owner, square)
    state.put("row_length", who, total.double().sqrt().float())  # by way of doubles every library has the same bits


@dataclass(frozen=True)
class TwoHops:
    """The terms as planes; those of cn are by distinct subject."""

    questions: Questions
    which: Tensor  # [B] place of the subject among the distinct ones
    by_query: tuple[Tensor, Tensor, Tensor]  # as, as', cf [B * n]
    by_subject: tuple[Tensor, Tensor]  # cn, cn' [S * n]

    def at(self, place: Tensor) -> Tensor:
        """Features [U, 5] of the entries at flat places query * n + candidate."""
        n = self.questions.n
        mine = self.which[place // n] * n + place % n
        columns = [plane[place] for plane in self.by_query] + [plane[mine] for plane in self.by_subject]
        return torch.log1p(SCALE * torch.stack(columns, 1))

    def worth(self) -> list[Tensor]:
        """Planes [B, n] by which candidates are proposed."""
        n = self.questions.n
        own = [plane.view(-1, n) for plane in self.by_query]
        return [*own, self.by_subject[0].view(-1, n)[self.which]]


def read(state: GraphState, questions: Questions) -> TwoHops:
    """What two hops say about the queries."""
    n, time = questions.n, questions.time
    subjects, which = torch.unique(questions.subject, return_inverse=True)
    owner, partner, close, quick = _partners(state, subjects, time)
    share, quick_share = _shares(close, owner, subjects.shape[0]), _shares(quick, owner, subjects.shape[0])
    size = subjects.shape[0] * n
    asked = partner < n
    direct, lately = (_plane(size, (owner * n + partner)[asked], part[asked]) for part in (share, quick_share))

    near = _closest(owner, partner, close, state.config.recall.hops)
    step, reached, far_slow, far_fast = _partners(state, partner[near], time)
    via = near[step]
    inside = reached < n
    reached, via, far_slow, far_fast = reached[inside], via[inside], far_slow[inside], far_fast[inside]
    rarity = _rarity(state, partner)
    place = owner[via] * n + reached
    thin = thinned(state.partner_table.max_slots, partner.device)[state.tensors["partner_fill"][partner]]
    friends = _plane(size, place, (share * thin)[via] * far_slow)
    quick_friends = _plane(size, place, (quick_share * thin)[via] * far_fast)
    common = _plane(size, place, (close * rarity)[via] * far_slow)
    alike = _alike(state, subjects, common.view(-1, n))

    pairs = _Pairs.read(state, questions)
    query, entry = ragged(pairs.size[questions.kind])
    entry = pairs.start[questions.kind][query] + entry
    seen = which[query] * n + pairs.one[entry]
    some = (direct + alike)[seen].nonzero().squeeze(1)  # most pairs have no end that the subject knows or resembles
    query, entry, seen = query[some], entry[some], seen[some]
    target = query * n + pairs.other[entry]
    slow, fast = pairs.slow[entry], pairs.fast[entry]
    size = questions.subject.shape[0] * n
    by_query = (
        _plane(size, target, direct[seen] * slow),
        _plane(size, target, lately[seen] * fast),
        _plane(size, target, alike[seen] * slow),
    )
    return TwoHops(questions, which, by_query, (friends, quick_friends))


def _plane(size: int, place: Tensor, weight: Tensor) -> Tensor:
    return weight.new_zeros(size).index_add_(0, place, weight)


def _alike(state: GraphState, subjects: Tensor, common: Tensor) -> Tensor:
    """like(s, x)^2, flat [S * n]; nobody is like himself."""
    n = common.shape[1]
    lengths = state.tensors["row_length"]
    alike = common / (lengths[subjects].unsqueeze(1) * lengths[:n]).clamp(min=1e-6)
    real = (subjects < n).nonzero().squeeze(1)
    alike[real, subjects[real]] = 0
    return (alike * alike).view(-1)


@dataclass(frozen=True)
class _Pairs:
    """The pairs of each of the distinct relations, one after the other."""

    size: Tensor  # [Q]
    start: Tensor  # [Q]
    one: Tensor  # [M]
    other: Tensor  # [M]
    slow: Tensor  # [M] B
    fast: Tensor  # [M] B'

    @classmethod
    def read(cls, state: GraphState, questions: Questions) -> _Pairs:
        slots = state.fact_table.read(state, questions.kinds, questions.time)
        inside = (slots.relation < questions.n) & (slots.other < questions.n)
        size = torch.bincount(slots.owner[inside], minlength=questions.kinds.shape[0])
        weights = (_weight(state, state.fact_table, speed, slots.slot[inside], questions.time) for speed in SPEEDS)
        return cls(size, size.cumsum(0) - size, slots.relation[inside], slots.other[inside], *weights)


def _partners(state: GraphState, rows: Tensor, time: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The partners of each row [n], flat: which row, the partner, and A by slow and by fast counts."""
    table = state.partner_table
    owner, slot = table.slots(state, rows)
    partner = state.tensors["partner_other"][slot].long()
    slow, fast = (_weight(state, table, speed, slot, time) for speed in SPEEDS)
    return owner, partner, slow, fast


def _weight(state: GraphState, table: PagedTable, speed: str, slot: Tensor, time: int) -> Tensor:
    get = state.tensors
    span = table.slow if speed == "slow" else table.fast
    return damped(decayed(get[f"{table.name}_{speed}"][slot], get[f"{table.name}_last"][slot], time, span))


def _rarity(state: GraphState, entity: Tensor) -> Tensor:
    return 1 / (1 + state.tensors["partner_fill"][entity].float())


@cache
def thinned(most: int, device: torch.device) -> Tensor:
    """sqrt(w_x) by the number of x's partners, which is at most `most`: looked up, so that every way has the same."""
    return (1 / torch.arange(1, most + 2, dtype=torch.float64, device=device).sqrt()).float()


def _shares(weight: Tensor, owner: Tensor, rows: int) -> Tensor:
    total = weight.new_zeros(rows).index_add_(0, owner, weight)
    return weight / total.clamp(min=1e-9)[owner]


def _closest(owner: Tensor, partner: Tensor, close: Tensor, most: int) -> Tensor:
    """Which of the partners of each owner [M] are among its closest; ties go to the older entity."""
    order = torch.argsort(partner, stable=True)
    order = order[torch.argsort(close[order], descending=True, stable=True)]
    order = order[torch.argsort(owner[order], stable=True)]
    return order[rank_in_group(owner[order]) < most]
