"""Facts of a tick that come one by one, with questions between them, are a state and answers as if nobody had asked."""

from __future__ import annotations

from random import Random

import pytest
import torch
from torch import Tensor

from adatkg_core.engine import Engine
from adatkg_core.events import Fact, Query, Ranking
from adatkg_core.model import AdaTKG, View
from adatkg_core.state import GraphState
from tests.core.engine.live_commit.test_live_memory import MEMORIES, NOW, each_memory, empty_engine
from tests.core.engine.test_engine import KNOWN, NEW, RELATIONS
from tests.support.small_graph import (
    CONFIGURATIONS,
    EVERYTHING,
    Event,
    assert_same_answers,
    assert_same_snapshot,
    engine_with_past,
    named,
    play,
    small_graph,
)

GRAPH = small_graph()
BUSY = [KNOWN[0]] * 4 + [*KNOWN, *NEW]  # one has more facts in a tick than its ring holds


def start(memory: str, prior: bool) -> Engine:
    engine = empty_engine(memory, prior)
    engine.observe(named(small_graph().facts.tolist()))
    return engine


def question(choose: Random, time: int) -> Query:
    asked, relation = choose.choice([*BUSY, "Nobody at all"]), choose.choice(RELATIONS)
    if choose.random() < 0.5:
        return Query(relation, time, s=asked, k=EVERYTHING)
    return Query(relation, time, o=asked, k=EVERYTHING, rank_of=(NEW[0],))


def log_of(seed: int, ticks: int = 3) -> list[Event]:
    """Ticks of a dozen facts each, with questions about later times, and now and then about their own, between them."""
    choose = Random(seed)
    log: list[Event] = []
    for time in range(NOW, NOW + ticks):
        for _ in range(12):
            log.append(Fact(choose.choice(BUSY), choose.choice(RELATIONS), choose.choice(BUSY), time))
            if choose.random() < 0.7:
                log.append(question(choose, time + choose.choice((0, 1, 1, 1, 4))))
    return log


@each_memory
def test_questions_between_the_facts_of_a_tick_change_no_bit_of_the_state_and_no_answer(
    memory: str, prior: bool
) -> None:
    log, asked = log_of(len(memory) + prior), start(memory, prior)
    calm = start(memory, prior)
    for event in log:
        answers = play(asked, [event])
        if not isinstance(event, Query):
            play(calm, [event])
            continue
        never_asked = empty_engine(memory, prior)
        never_asked.restore(calm.snapshot())
        assert_same_answers(answers, never_asked.predict([event]))
    assert_same_snapshot(asked.snapshot(), calm.snapshot())
    for engine in (asked, calm):
        engine.advance(NOW + 9)
    assert_same_snapshot(asked.snapshot(), calm.snapshot())


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_restart_in_the_middle_of_a_tick_that_was_read_changes_no_bit_and_no_answer(memory: str) -> None:
    log = log_of(5, ticks=2)
    for place in (4, 9, len(log) - 3):
        steady, first, second = start(memory, True), start(memory, True), empty_engine(memory, True)
        wanted, found = play(steady, log), play(first, log[:place])
        first.predict([question(Random(1), NOW + 5)])  # so that the tick stands in the state
        second.restore(first.snapshot())
        assert_same_answers(found + play(second, log[place:]), wanted)
        assert_same_answers(found + play(first, log[place:]), wanted)
        assert_same_snapshot(second.snapshot(), steady.snapshot())
        assert_same_snapshot(first.snapshot(), steady.snapshot())


def test_a_question_behind_a_fact_reads_only_what_the_fact_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, view = engine_with_past(), AdaTKG.view
    names = engine.catalog.names
    few = 2, 5  # of a cluster that less than half of all belong to
    cluster = engine.state.tensors["cluster"][: engine.state.entities]
    ask = [Query(RELATIONS[0], NOW + 2, s=KNOWN[2])]
    engine.advance(NOW + 1)
    engine.observe([Fact(KNOWN[2], RELATIONS[0], KNOWN[3], NOW + 1)])
    engine.predict(ask)
    computed: list[int] = []

    def noted(model: AdaTKG, state: GraphState, ids: Tensor, **rest: Tensor) -> View:
        computed.extend(ids.tolist())
        return view(model, state, ids, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(AdaTKG, "view", noted)
    engine.predict(ask)
    assert not computed
    engine.observe([Fact(names[few[0]], RELATIONS[1], names[few[1]], NOW + 1)])
    engine.predict(ask)
    assert {*computed} == {*torch.isin(cluster, cluster[[*few]]).nonzero().squeeze(1).tolist()}
    assert len({*computed}) < engine.state.entities / 2


@pytest.mark.parametrize("name", ["default", "constant-gate", "recall-alone", "model-alone"])
def test_a_fact_that_fails_behind_a_read_leaves_nothing_of_the_tick_in_what_was_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    engine, steady = engine_with_past(name), engine_with_past(name)
    log = [Fact(KNOWN[0], RELATIONS[i % 2], name, NOW + 1) for i, name in enumerate((KNOWN[1], NEW[0]))]
    later, now = (Query(RELATIONS[0], NOW + t, s=KNOWN[0], k=EVERYTHING) for t in (2, 1))
    play(engine, [log[0], later, log[1]])
    steady.observe(log)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr("adatkg_core.engine.live_commit.live_commit.count_entities", fail)
        patch.setattr("adatkg_core.engine.commit._count", fail)
        engine.predict([later])
    assert_same_answers(engine.predict([now, later]), steady.predict([now, later]))
    assert_same_snapshot(engine.snapshot(), steady.snapshot())


def test_a_tick_that_fails_when_it_is_taken_in_as_a_whole_can_be_taken_in_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    engine, steady = engine_with_past(), engine_with_past()
    log = [Fact(KNOWN[0], RELATIONS[i % 2], name, NOW + 1) for i, name in enumerate((KNOWN[1], NEW[0], KNOWN[2]))]
    later = Query(RELATIONS[0], NOW + 2, s=KNOWN[0], k=EVERYTHING)
    found = play(engine, [log[0], later, log[1], later, log[2], later])[-1]
    steady.observe(log)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr("adatkg_core.engine.live_commit.live_commit.count_entities", fail)
        engine.advance(NOW + 2)
    assert engine.watermark == NOW + 1
    assert isinstance(found, Ranking)
    assert_same_answers(engine.predict([later]), [found])
    for one in (engine, steady):
        one.advance(NOW + 2)
    assert_same_snapshot(engine.snapshot(), steady.snapshot())


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_whom_a_fact_has_changed_is_read_again_though_another_fact_has_its_place(name: str) -> None:
    engine = engine_with_past(name)
    time = (engine.watermark or 0) + 1
    asked = [Query(GRAPH.relations[0], time + 3, s=subject, k=EVERYTHING) for subject in GRAPH.entities[:3]]
    play(engine, asked)
    for step, (s, o) in enumerate([(0, 5), (7, 9), (11, 3)]):  # each in a tick of its own, and nobody asks between
        engine.observe([Fact(GRAPH.entities[s], GRAPH.relations[1], GRAPH.entities[o], time + step)])
    kept = play(engine, asked)
    engine.read_anew()
    assert_same_answers(kept, play(engine, asked))
