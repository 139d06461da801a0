"""An entity's portrait is what the log says of it, and looking changes nothing."""

from __future__ import annotations

import pytest

from adatkg_core.engine import Engine, profile_entity
from adatkg_core.engine.entity_profile import FACTS, MEMBERS
from adatkg_core.events import Fact, Query, Ranking
from tests.support.small_graph import (
    CONFIGURATIONS,
    assert_same_snapshot,
    engine_with_past,
    fresh_engine,
    named,
    small_graph,
)

GRAPH = small_graph()
LOG = named(GRAPH.facts.tolist())
BUSY = max(GRAPH.entities, key=lambda name: sum((fact.s == name) + (fact.o == name) for fact in LOG))


def predicted(engine: Engine, name: str, time: int) -> Ranking:
    (answer,) = engine.predict([Query(GRAPH.relations[0], time, s=name)])
    assert isinstance(answer, Ranking)
    return answer


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("entity", [BUSY, 'Nobody "ever" <b> 😀'])
@pytest.mark.parametrize("asked_before", [False, True])
def test_looking_changes_neither_state_nor_answers(name: str, entity: str, asked_before: bool) -> None:
    looked, left = engine_with_past(name), engine_with_past(name)
    time = int(GRAPH.facts[-1, 3]) + 1
    if asked_before:
        assert predicted(looked, BUSY, time) == predicted(left, BUSY, time)
    profile_entity(looked, entity)
    assert predicted(looked, BUSY, time) == predicted(left, BUSY, time)
    assert predicted(looked, entity, time) == predicted(left, entity, time)
    assert_same_snapshot(looked.snapshot(), left.snapshot())


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_gate_memory_and_counts_are_those_of_a_prediction(name: str) -> None:
    engine = engine_with_past(name)
    time = int(GRAPH.facts[-1, 3]) + 1
    for entity in GRAPH.entities[:8]:
        answer, found = predicted(engine, entity, time), profile_entity(engine, entity)
        assert found.known and found.interactions == answer.interactions
        assert found.gate == pytest.approx(answer.gate, abs=1e-6)
        assert found.memory_norm == pytest.approx(answer.memory_norm, abs=1e-6)
        assert (found.updates == 0) == answer.cold_start or engine.model.memory is None


@pytest.mark.parametrize("committed", [False, True])
def test_facts_are_the_latest_of_the_log_whether_they_are_committed_or_wait(committed: bool) -> None:
    engine = engine_with_past()
    capacity = engine.model.config.model.chain_capacity
    if committed:
        engine.advance(int(GRAPH.facts[-1, 3]) + 1)
    waiting = [] if committed else [fact for fact in LOG if fact.t == LOG[-1].t]
    for entity in GRAPH.entities:
        mine = [fact for fact in LOG if entity in (fact.s, fact.o)]
        found = profile_entity(engine, entity)
        newest = [fact.t for fact in reversed(mine)]
        # The facts of one commit stand in the ring from one side, then from the other: only their times are in order.
        assert [fact.t for fact in found.facts] == newest[: len(found.facts)]
        with_itself = sum(fact.s == fact.o for fact in mine)
        held = [fact for fact in mine if fact not in waiting]
        assert len(found.facts) >= min(len(held), capacity - with_itself) + len(mine) - len(held)
        oldest = found.facts[-1].t
        assert {fact for fact in found.facts if fact.t > oldest} == {fact for fact in mine if fact.t > oldest}
        assert set(found.facts) <= set(mine)
        assert found.interactions == sum((fact.s == entity) + (fact.o == entity) for fact in LOG)


def test_a_fact_of_an_entity_with_itself_is_shown_once_and_counts_twice() -> None:
    engine = fresh_engine()
    alone = Fact("Echo", GRAPH.relations[0], "Echo", 0)
    engine.observe([alone])
    assert profile_entity(engine, "Echo").facts == (alone,) and profile_entity(engine, "Echo").interactions == 2
    engine.advance(1)
    assert profile_entity(engine, "Echo").facts == (alone,) and profile_entity(engine, "Echo").interactions == 2


def test_many_waiting_facts_are_cut_to_the_latest() -> None:
    engine = fresh_engine()
    facts = [Fact("Hub", GRAPH.relations[0], f"Spoke {i}", 3) for i in range(100)]
    engine.observe(facts)
    found = profile_entity(engine, "Hub")
    assert found.facts == tuple(reversed(facts))[:FACTS] and found.interactions == 100 and found.updates == 0


def test_a_stranger_has_the_cluster_of_its_name_and_nothing_else() -> None:
    engine = engine_with_past()
    found = profile_entity(engine, "A stranger")
    assert not found.known and found.interactions == found.updates == 0 and found.gate == found.memory_norm == 0
    assert found.facts == () and found.cluster is not None
    engine.observe([Fact("A stranger", GRAPH.relations[0], BUSY, int(GRAPH.facts[-1, 3]))])
    assert profile_entity(engine, "A stranger").cluster == found.cluster


def test_the_members_of_clusters_are_all_entities_and_the_busiest_are_named() -> None:
    engine = engine_with_past()
    portraits = {name: profile_entity(engine, name) for name in engine.catalog.names}
    groups: dict[int | None, set[str]] = {}
    for name, found in portraits.items():
        groups.setdefault(found.cluster, set()).add(name)
    for name, found in portraits.items():
        group = groups[found.cluster]
        assert found.cluster_size == len(group)
        assert set(found.cluster_members) <= group - {name}
        assert len(found.cluster_members) == min(MEMBERS, len(group) - 1)


def test_without_entities_or_clusters_there_is_nobody_to_name() -> None:
    assert profile_entity(fresh_engine(), "x").cluster_members == ()
    assert profile_entity(fresh_engine("recall-alone"), "x").cluster is None
