"""All families of evidence together: what a commit writes, and the candidates and features that a query gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from adatkg_core.evidence import name_groups, transitions, two_hops, windows
from adatkg_core.evidence.own_sources import Neighbours, OwnSources
from adatkg_core.evidence.questions import Questions
from adatkg_core.state import GraphState, distinct_places, rank_in_group

FEATURES = two_hops.FEATURES + name_groups.FEATURES + windows.FEATURES


def observe_evidence(state: GraphState, entity: Tensor, relation: Tensor, other: Tensor, time: int) -> None:
    """Take interactions [I] of one time into the tables, before those of the recall head itself."""
    transitions.observe(state, entity, relation, other)
    two_hops.observe(state, entity, relation, other, time)
    name_groups.observe(state, entity, relation, other, time)


if TYPE_CHECKING:
    from adatkg_core.evidence.compiled import KeptFarEnd


@dataclass(frozen=True)
class Evidence:
    """What the families say about some queries."""

    questions: Questions
    hops: two_hops.TwoHops
    groups: name_groups.NameGroups
    windows: windows.Windows
    seen: Tensor  # [n] whether a fact has named the candidate

    def places(self, most: int) -> Tensor:
        """Flat places query * n + candidate that have something to say for them: all pairs seen, and proposals."""
        return torch.cat((self.windows.exact_place, self.windows.any_place, self._proposed(most)))

    def at(self, place: Tensor, number: Tensor) -> Tensor:
        """Features [U, FEATURES] of distinct places, which hold at least `places`; `number` [B * n] has their rows."""
        return torch.cat((self.hops.at(place), self.groups.at(place), self.windows.at(place, number)), 1)

    def _proposed(self, most: int) -> Tensor:
        """The `most` candidates of each query with the largest sum of each term's share of its largest value.

        Whom no fact has named comes in addition if it is as good as the last of these, and takes nobody's place: so
        names that only queries mention, or that came with facts of the very time, change nothing for the others.
        """
        n, worth = self.questions.n, self._worth().mul_(1e5).round_()  # whole numbers: ties are the same everywhere
        by_name = self.groups.place[~self.seen[self.groups.place % n]]
        theirs = worth.view(-1)[by_name]
        worth.view(-1)[by_name] = 0
        least = worth.topk(min(most, n), dim=1).values[:, -1].clamp_(min=1)  # [B]
        place = (worth >= least.unsqueeze(1)).view(-1).nonzero().squeeze(1)
        query = place // n
        last = worth.view(-1)[place] == least[query]  # who ties for the last places: the older entities have them
        room = most - torch.bincount(query[~last], minlength=least.shape[0])
        fits = ~last
        fits[last] = rank_in_group(query[last]) < room[query[last]]
        return torch.cat((place[fits], by_name[theirs >= least[by_name // n]]))

    def _worth(self) -> Tensor:
        """The sums [B, n] of shares; the largest value of a term is that of a candidate that a fact has named."""
        rows, n = self.questions.subject.shape[0], self.questions.n
        worth = self.hops.by_query[0].new_zeros(rows, n)
        for plane in (*self.hops.worth(), *self.groups.worth()):
            worth += plane * (1 / plane.amax(1, keepdim=True).clamp(min=1e-9))  # two roundings, on every device
        place, seen = self.groups.place, self.seen[self.groups.place % n]
        for plane in self.groups.inside:
            value, query = plane[place], place // n
            largest = worth.new_zeros(rows).scatter_reduce_(0, query[seen], value[seen], "amax").clamp_(min=1e-9)
            worth.view(-1)[place] += (value * (1 / largest)[query]).clamp_(max=1)
        return worth


@dataclass(frozen=True)
class Gathered:
    """The candidates of some queries, all that their subjects have met and those proposed, in rows."""

    place: Tensor  # [U] flat places query * n + candidate, each once
    entry: Tensor  # [M] the row of each slot that the subjects have in the table of pairs
    features: Tensor  # [U, FEATURES]


def gather_evidence(state: GraphState, questions: Questions, most: int) -> Gathered:
    """What there is to say about queries of one time, with `most` proposals for each."""
    if state.device.type != "cpu":
        return gather_by_planes(state, questions, most)
    from adatkg_core.evidence.compiled import gather  # not at the top: numba takes half a second

    return Gathered(*gather(state, questions, most))


def own_features(
    state: GraphState, questions: Questions, place: Tensor, entry: Tensor, wider: Tensor | None, known: OwnSources
) -> Tensor:
    """What subjects did with the candidates at places [U], and what else is known of both, in one pass on a CPU."""
    from adatkg_core.evidence.compiled import own_features as compiled_pass

    return compiled_pass(state, questions, place, entry, wider, known)


def activity_features(state: GraphState, rows: Tensor, time: int) -> Tensor:
    """How busy entities [n] are as of a time [n, 4], on a CPU."""
    from adatkg_core.evidence.compiled import activity_features as compiled_pass

    return compiled_pass(state, rows, time)


def alike_sums(state: GraphState, read: Neighbours, time: int, n: int) -> tuple[Tensor, Tensor]:
    """What neighbours did: places query * n + candidate [U], and the logarithms of sums [U, …], on a CPU."""
    from adatkg_core.evidence.compiled import alike_sums as compiled_pass

    return compiled_pass(state, read, time, n)


def keep_far_end() -> KeptFarEnd:
    """Nothing known yet of the slots of a table of relations."""
    from adatkg_core.evidence.compiled import KeptFarEnd

    return KeptFarEnd()


def count_recurrence(
    state: GraphState, subject: Tensor, relation: Tensor, time: int, n: int, same_pair: float, same_relation: float
) -> Tensor:
    """Queries [B] -> scores [B, n] by counts alone, of a state on a CPU."""
    from adatkg_core.evidence.compiled import count_recurrence as compiled_pass

    return compiled_pass(state, subject, relation, time, n, same_pair, same_relation)


def compile_evidence() -> None:
    """Have everything compiled, which takes seconds once on a machine, before anybody waits for it."""
    from adatkg_core.evidence.compiled import prepare

    prepare()


def gather_by_planes(state: GraphState, questions: Questions, most: int) -> Gathered:
    """The same with whole planes [B, n] in tensor operations, for any device."""
    evidence = read_evidence(state, questions)
    owner, slot = state.pair_table.slots(state, questions.subject)
    seen = owner * questions.n + state.tensors["pair_other"][slot]
    known = torch.cat((seen, evidence.places(most)))
    place, number = distinct_places(known, questions.subject.shape[0] * questions.n)
    return Gathered(place, number[seen], evidence.at(place, number))


def read_evidence(state: GraphState, questions: Questions) -> Evidence:
    """All of it, for queries of one time."""
    with torch.no_grad():
        return Evidence(
            questions,
            two_hops.read(state, questions),
            name_groups.read(state, questions),
            windows.read(state, questions),
            state.tensors["interactions"][: questions.n] > 0,
        )
