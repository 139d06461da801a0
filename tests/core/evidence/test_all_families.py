"""All families together: what is proposed, and that no batch, order or stranger changes a bit of it."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from adatkg_core.datasets import facts_by_time, load_dataset
from adatkg_core.engine import Engine
from adatkg_core.evidence import FEATURES, Questions, follow, lift_of
from adatkg_core.evidence.all_families import Evidence, read_evidence
from adatkg_core.model import AdaTKG
from adatkg_core.state import GraphState, distinct_places
from tests.support.evidence_history import (
    EVERY_QUERY,
    EVERYONE,
    NAMES,
    Commit,
    ask,
    commits,
    empty_state,
    every_place,
    remember,
    write,
)
from tests.support.small_graph import ENCODER, bits, small_config

quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MOST = 3
Said = dict[int, bytes]  # for each candidate with something to say for it, the bits of its features


def said(state: GraphState, questions: Questions, most: int = MOST) -> list[Said]:
    """What a query gets to know, each by itself."""
    evidence = read_evidence(state, questions)
    slots = state.pair_table.read(state, questions.subject, questions.time)
    seen = slots.owner * questions.n + slots.other
    place, number = distinct_places(torch.cat((seen, evidence.places(most))), len(questions.subject) * questions.n)
    lift = lift_of(state, questions.kinds)[questions.kind[slots.owner], slots.relation]
    features = torch.cat((evidence.at(place, number), follow(lift, slots, number[seen], len(place))), 1)
    found: list[Said] = [{} for _ in range(len(questions.subject))]
    for at, row in zip(place.tolist(), features, strict=True):
        found[at // questions.n][at % questions.n] = bits(row)
    return found


def proposed(evidence: Evidence, most: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(len(evidence.questions.subject))]
    for at in evidence._proposed(most).tolist():
        found[at // evidence.questions.n].append(at % evidence.questions.n)
    return found


# -- proposals ----------------------------------------------------------------------------------------------------


def planes_of(evidence: Evidence) -> list[list[list[float]]]:
    """The terms that propose: as, as', cf, cn, gb, ga, rb, and by names alone ig and ir."""
    own = [plane.view(-1, evidence.questions.n) for plane in evidence.hops.by_query]
    friends = evidence.hops.by_subject[0].view(-1, evidence.questions.n)[evidence.hops.which]
    groups = [plane.view(-1, evidence.questions.n) for plane in (*evidence.groups.counts, *evidence.groups.inside)]
    return [plane.tolist() for plane in (*own, friends, *groups)]


@quick
@given(story=commits(5), queries=st.lists(st.sampled_from(EVERY_QUERY), min_size=1, max_size=6))
def test_the_candidates_with_the_largest_shares_are_proposed_and_of_equals_the_older(
    story: list[Commit], queries: list[tuple[int, int]]
) -> None:
    history = remember(story)
    named = {one.other for one in history.past}
    evidence = read_evidence(history.state, ask(queries, history.now + 1, len(EVERYONE)))
    planes, found = planes_of(evidence), proposed(evidence, MOST)
    for i in range(len(queries)):
        worth = [0.0] * len(EVERYONE)
        for plane in planes:
            largest = max((plane[i][o] for o in named), default=0.0)
            for o, value in enumerate(plane[i]):
                worth[o] += min(value / max(largest, 1e-9), 1.0)
        place = {o: (-round(worth[o] * 1e5), o) for o in range(len(EVERYONE)) if round(worth[o] * 1e5)}
        best = sorted(named & place.keys(), key=place.__getitem__)[:MOST]
        others = [o for o in place.keys() - named if len(best) < MOST or place[o][0] <= place[best[-1]][0]]
        # Rounding may tip a tie between sums that are equal in theory; the worth of what is chosen tells.
        wanted = sorted(worth[o] for o in [*best, *others])
        assert sorted(worth[o] for o in found[i]) == pytest.approx(wanted, abs=3e-5)
        assert len(set(found[i])) == len(found[i])


def test_of_candidates_that_are_worth_the_same_the_older_are_proposed() -> None:
    state = empty_state([f"entity {i}" for i in range(40)])
    write(state, [(0, 0, 1)], 1)
    write(state, [(1, 0, other) for other in range(39, 9, -1)], 2)  # all alike
    evidence = read_evidence(state, ask([(0, 0), (0, 2)], 3, 40))
    assert sorted(proposed(evidence, 6)[0]) == [10, 11, 12, 13, 14, 15]
    assert len(proposed(evidence, 40)[0]) > 30 and len(proposed(evidence, 1)[0]) == 1


def test_nobody_is_proposed_for_nothing() -> None:
    evidence = read_evidence(empty_state(), ask(EVERY_QUERY, 3, len(EVERYONE)))
    assert evidence.places(50).tolist() == []
    assert evidence.at(*distinct_places(torch.zeros(0, dtype=torch.int64), 1)).shape == (0, FEATURES)


@quick
@given(story=commits(5), later=st.sampled_from([1, 9]))
def test_a_stranger_takes_nobodys_place_and_changes_nothing_for_others(story: list[Commit], later: int) -> None:
    """As when another query of the batch mentions it, or a fact of the very time has brought its name."""
    history = remember(story)
    queries = [(s, r) for s, r in EVERY_QUERY if s < len(NAMES)]
    alone = said(history.state, ask(queries, history.now + later, len(NAMES)))
    crowded = said(history.state, ask(queries, history.now + later, len(EVERYONE)))
    for one, other in zip(alone, crowded, strict=True):
        assert one == {o: row for o, row in other.items() if o < len(NAMES)}


def test_a_stranger_is_proposed_for_its_name() -> None:
    history = remember([(1, [(0, 0, 2), (3, 0, 4)])])  # citizens to the heads of their countries
    guard, chad = EVERYONE.index("Guard (Chad)"), EVERYONE.index("Chad")
    evidence = read_evidence(history.state, ask([(guard, 0)], 2, len(EVERYONE)))
    assert proposed(evidence, MOST) == [[chad]]


# -- batches ------------------------------------------------------------------------------------------------------


@quick
@given(story=commits(5), order=st.permutations(EVERY_QUERY), size=st.sampled_from([1, 3, 17, 256]))
def test_no_batch_and_no_order_changes_a_bit(story: list[Commit], order: list[tuple[int, int]], size: int) -> None:
    history = remember(story, {"recall.hops": 2, "recall.partner_slots": 16, "recall.kin_slots": 16})
    time = history.now + 1
    whole = dict(zip(EVERY_QUERY, said(history.state, ask(EVERY_QUERY, time, len(EVERYONE))), strict=True))
    parts: list[Said] = []
    for start in range(0, 40, size):
        parts += said(history.state, ask(order[start : start + size], time, len(EVERYONE)))
    for query, found in zip(order, parts, strict=False):
        assert found == whole[query]


@functools.cache
def weeks() -> tuple[Engine, int, Tensor]:
    """Five weeks of ICEWS14 in an engine, with small tables; the time after them and its queries."""
    dataset = load_dataset("icews14")
    changes = {"model.names": "brackets", "model.enabled": False, "recall.partner_slots": 64, "recall.fact_slots": 512}
    config = small_config({**changes, "recall.kin_slots": 256, "recall.pair_slots": 128, "recall.hops": 16})
    names = list(dataset.relations)
    engine = Engine(AdaTKG(config, ENCODER.encode(names), 0).eval(), names, ENCODER, entities=dataset.entities)
    for time, rows in facts_by_time(dataset.facts[dataset.facts[:, 3] <= 36]):
        facts = torch.from_numpy(rows)
        if time == 36:
            break
        engine.observe_rows(facts)
    engine.turn_to(time)
    return engine, time, facts


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 17, 256])
@pytest.mark.parametrize("threads", [1, 2])
def test_no_batch_and_no_order_changes_a_bit_in_a_real_graph(size: int, threads: int) -> None:
    engine, time, facts = weeks()
    state, n = engine.state, engine.state.entities
    asked = [(int(s), int(r)) for s, r, *_ in facts.tolist()][:160]
    asked += [(int(o), int(r) + state.n_relations) for _, r, o, *_ in facts.tolist()][:96]
    assert len(asked) == 256
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        whole = said(state, ask(asked, time, n), most=24)
        assert sum(map(len, whole)) > 256 * 24
        shuffled = torch.randperm(256, generator=torch.Generator().manual_seed(size)).tolist()
        for part in pieces(shuffled, size):
            for i, found in zip(part, said(state, ask([asked[i] for i in part], time, n), most=24), strict=True):
                assert found.keys() == whole[i].keys(), "other candidates"
                assert found == whole[i]
    finally:
        torch.set_num_threads(before)


def pieces(order: Sequence[int], size: int) -> list[Sequence[int]]:
    """Some of the batches of this size, the last one shorter where it does not fit."""
    return [order[start : start + size] for start in range(0, 256, size)][-12:]


def test_every_place_has_all_features() -> None:
    history = remember([(1, [(0, 0, 1), (1, 1, 2)]), (2, [(0, 0, 1)])])
    questions = ask(EVERY_QUERY, 4, len(EVERYONE))
    found = read_evidence(history.state, questions).at(*[every_place(questions)] * 2)
    assert found.shape == (len(EVERY_QUERY) * len(EVERYONE), FEATURES)
    assert bool((found != 0).any(0).all()), "some feature is zero everywhere"
