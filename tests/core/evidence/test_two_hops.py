"""Two hops against their definition, fact by fact in plain Python."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.evidence import two_hops
from tests.support.evidence_history import (
    EVERY_QUERY,
    EVERYONE,
    FAST,
    NAMES,
    RELATIONS,
    SLOW,
    Commit,
    Happened,
    Triple,
    ask,
    assert_features,
    commits,
    empty_state,
    every_place,
    lively,
    remember,
    write,
)

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Oracle:
    """The terms as their definitions say, from a list of all that happened."""

    past: list[Happened]

    def close(self, time: int, span: float) -> dict[int, dict[int, float]]:
        """A: how close each is to each of its partners."""
        times: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for one in self.past:
            if one.time <= time:
                times[one.entity][one.other].append(one.time)
        return {e: {x: damped(lively(when, time, span)) for x, when in row.items()} for e, row in times.items()}

    def pairs(self, relation: int, time: int, span: float) -> dict[tuple[int, int], float]:
        """B of one relation."""
        times: dict[tuple[int, int], list[int]] = defaultdict(list)
        for one in self.past:
            if one.relation == relation:
                times[one.entity, one.other].append(one.time)
        return {pair: damped(lively(when, time, span)) for pair, when in times.items()}

    def rarity(self, entity: int, time: int) -> float:
        return 1 / (1 + len({one.other for one in self.past if one.entity == entity and one.time <= time}))

    def length(self, entity: int) -> float:
        latest = max(one.time for one in self.past if one.entity == entity)
        row = self.close(latest, SLOW)[entity]
        return math.sqrt(sum(close**2 * self.rarity(y, latest) for y, close in row.items()))

    def likeness(self, s: int, time: int) -> dict[int, float]:
        close = self.close(time, SLOW)
        shared: dict[int, float] = defaultdict(float)
        for y, near in close.get(s, {}).items():
            for x, far in close[y].items():
                shared[x] += near * far * self.rarity(y, time)
        return {x: sum_ / (self.length(s) * self.length(x)) for x, sum_ in shared.items() if x != s}

    def planes(self, s: int, relation: int, time: int) -> list[dict[int, float]]:
        """as, as', cf, cn and cn' of a query, by candidate."""
        found: list[dict[int, float]] = []
        for span in (SLOW, FAST):
            share = shares(self.close(time, span).get(s, {}))
            plane: dict[int, float] = defaultdict(float)
            for (x, o), weight in self.pairs(relation, time, span).items():
                plane[o] += share.get(x, 0.0) * weight
            found.append(plane)
        like, resembling = self.likeness(s, time), defaultdict[int, float](float)
        for (x, o), weight in self.pairs(relation, time, SLOW).items():
            resembling[o] += like.get(x, 0.0) ** 2 * weight
        found.append(resembling)
        for span in (SLOW, FAST):
            close, plane = self.close(time, span), defaultdict(float)
            for x, share_of_x in shares(close.get(s, {})).items():
                for o, weight in close[x].items():
                    plane[o] += share_of_x * math.sqrt(self.rarity(x, time)) * weight
            found.append(plane)
        return found


def damped(count: float) -> float:
    return count / (1 + 0.25 * count)


def shares(row: dict[int, float]) -> dict[int, float]:
    total = max(sum(row.values()), 1e-9)
    return {x: weight / total for x, weight in row.items()}


def features(oracle: Oracle, queries: list[tuple[int, int]], time: int, n: int) -> list[list[float]]:
    rows = []
    for s, relation in queries:
        planes = oracle.planes(s, relation, time)
        rows += [[math.log1p(20 * plane.get(o, 0.0)) for plane in planes] for o in range(n)]
    return rows


@quick
@given(story=commits(5), later=st.sampled_from([1, 2, 40]), data=st.data())
def test_the_terms_are_those_of_their_definition(story: list[Commit], later: int, data: st.DataObject) -> None:
    history = remember(story)
    time = history.now + later
    queries = data.draw(st.lists(st.sampled_from(EVERY_QUERY), min_size=1, max_size=12))
    questions = ask(queries, time, len(EVERYONE))
    found = two_hops.read(history.state, questions)
    assert_features(found.at(every_place(questions)), features(Oracle(history.past), queries, time, len(EVERYONE)))


def test_a_partner_of_a_partner_and_what_it_does_are_found() -> None:
    """Without this the oracle and the code could agree upon nothing but zeros."""
    history = remember([(1, [(0, 0, 1), (1, 1, 2)])])
    questions = ask([(0, 1)], 2, len(EVERYONE))
    found = two_hops.read(history.state, questions).at(every_place(questions))
    assert bool((found[2] > 0)[[0, 1, 3, 4]].all()), "2 is what 1 does under relation 1, and a partner of it"
    assert bool((found[5:] == 0).all())


def test_without_a_past_there_is_nothing_to_say() -> None:
    questions = ask(EVERY_QUERY, 5, len(EVERYONE))
    found = two_hops.read(empty_state(), questions)
    assert bool((found.at(every_place(questions)) == 0).all())


@quick
@given(story=commits(4), n=st.integers(1, len(NAMES)))
def test_what_is_said_about_the_first_entities_does_not_depend_on_how_many_are_asked_about(
    story: list[Commit], n: int
) -> None:
    """Candidates are cut off; of pairs with an end behind the cut only those of the second step still count."""
    history = remember(story)
    time = history.now + 1
    few, whole = (ask(EVERY_QUERY, time, size) for size in (n, len(EVERYONE)))
    inside = every_place(few) // n * len(EVERYONE) + every_place(few) % n
    cut = two_hops.read(history.state, few).at(every_place(few))
    full = two_hops.read(history.state, whole).at(inside)
    assert torch.equal(cut[:, 3:], full[:, 3:])
    assert bool((cut[:, :3] <= full[:, :3] + 1e-6).all())
    known = Oracle(history.past)
    for (s, relation), row in zip(EVERY_QUERY, cut.view(len(EVERY_QUERY), n, -1), strict=True):
        share = shares(known.close(time, SLOW).get(s, {}))
        pairs = known.pairs(relation, time, SLOW)
        for o in range(n):
            wanted = sum(share.get(x, 0.0) * weight for (x, y), weight in pairs.items() if y == o and x < n)
            assert float(row[o, 0]) == pytest.approx(math.log1p(20 * wanted), rel=1e-4, abs=1e-5)


# -- bounds -------------------------------------------------------------------------------------------------------


def test_an_entity_keeps_its_liveliest_partners_and_a_relation_its_liveliest_pairs() -> None:
    names = [f"entity {i}" for i in range(60)]
    bounds = {"recall.partner_slots": 16, "recall.fact_slots": 32}
    state = empty_state(names, bounds)
    write(state, [(0, 0, other) for other in range(1, 11)] * 3, 1)  # ten that are lively
    for time, other in enumerate(range(11, 50), start=2):
        write(state, [(0, 0, other)], time)
    time = 52
    assert int(state.tensors["partner_fill"].max()) == 16 and int(state.tensors["fact_fill"].max()) == 32
    kept = set(state.partner_table.read(state, torch.tensor([0]), time).other.tolist())
    # Six slots were left for the others: the latest of these, decayed the least, are there.
    assert kept == liveliest([(0, other) for other in range(1, 50)], 16)
    pairs = state.fact_table.read(state, torch.tensor([0]), time)
    assert set(pairs.relation.tolist()) == {0}
    assert set(pairs.other.tolist()) == liveliest([(0, other) for other in range(1, 50)], 32)
    # And no more than these take part.
    questions = ask([(0, 0), (30, 0)], time, len(names))
    assert int((two_hops.read(state, questions).by_query[0].view(2, -1) > 0).sum(1).max()) <= 32


def liveliest(pairs: list[tuple[int, int]], most: int) -> set[int]:
    """As the table keeps them: one at a time comes, and where there is no room the least lively goes."""
    kept: dict[int, tuple[float, int]] = {}
    for _, other in pairs:
        time, count = (1, 3.0) if other <= 10 else (other - 9, 1.0)
        if len(kept) == most:
            left = {one: amount * math.exp(-(time - last) / SLOW) for one, (amount, last) in kept.items()}
            del kept[min(left, key=left.__getitem__)]
        kept[other] = (count, time)
    return set(kept)


@quick
@given(story=commits(6))
def test_full_tables_stay_within_their_bounds_and_what_they_say_is_finite(story: list[Commit]) -> None:
    bounds = {"recall.partner_slots": 16, "recall.fact_slots": 16, "recall.hops": 2}
    state, time = empty_state(changes=bounds), 0
    for step, facts in story:
        time += step
        write(state, facts, time)
    for table in ("partner", "fact"):
        assert int(state.tensors[f"{table}_fill"].max()) <= 16
        assert state.pages[table] <= state.tensors[f"{table}_fill"].shape[0]
    questions = ask(EVERY_QUERY, time + 1, len(EVERYONE))
    found = two_hops.read(state, questions).at(every_place(questions))
    assert bool(torch.isfinite(found).all()) and bool((found >= 0).all())


def test_the_second_step_is_taken_from_the_closest_partners_and_of_equals_from_the_older() -> None:
    bounds = {"recall.hops": 2}
    state = empty_state(changes=bounds)
    facts: list[Triple] = [(0, 0, 4), (0, 0, 3), (0, 0, 2), (0, 1, 3), (2, 0, 6), (3, 0, 7), (4, 0, 8)]
    write(state, facts, 1)
    questions = ask([(0, 0)], 2, len(NAMES))
    friends = two_hops.read(state, questions).by_subject[0]
    # 3 is the closest; 2 and 4 are as close as each other, and 2 is older.
    assert (friends[[6, 7, 8]] > 0).tolist() == [True, True, False]


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.5, 0.5, 1.0, 2.0])), max_size=40),
    most=st.integers(1, 6),
    data=st.data(),
)
def test_the_closest_are_those_of_a_sort_by_closeness_and_age(
    rows: list[tuple[int, float]], most: int, data: st.DataObject
) -> None:
    partners = data.draw(st.permutations(range(len(rows))))
    entries = sorted((owner, i) for i, (owner, _) in enumerate(rows))  # owners ascend, as tables give them
    owner = torch.tensor([one for one, _ in entries], dtype=torch.int64)
    partner = torch.tensor([partners[i] for _, i in entries], dtype=torch.int64)
    close = torch.tensor([rows[i][1] for _, i in entries])
    chosen = two_hops._closest(owner, partner, close, most)
    found = [(int(owner[i]), int(partner[i])) for i in chosen]
    wanted = []
    for one in sorted({owner for owner, _ in rows}):
        mine = sorted((-weight, partners[i]) for i, (who, weight) in enumerate(rows) if who == one)
        wanted += [(one, partner) for _, partner in mine[:most]]
    assert found == wanted


def test_relations_have_two_directions_in_this_history() -> None:
    history = remember([(1, [(0, 1, 2)])])
    assert {(one.entity, one.relation, one.other) for one in history.past} == {(0, 1, 2), (2, 1 + RELATIONS, 0)}
