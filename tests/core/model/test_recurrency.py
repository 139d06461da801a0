"""The recurrency heuristic beside a prediction: read from the same state, by the same rules, and without a trace."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from msgspec import structs

from adatkg_core.engine import Engine
from adatkg_core.events import Query, Ranking, Recurrent
from adatkg_core.model import score_recurrency
from tests.support.small_graph import (
    CONFIGURATIONS,
    EVERYTHING,
    assert_same_answers,
    assert_same_snapshot,
    engine_with_past,
    fresh_engine,
    named,
    small_graph,
)

GRAPH = small_graph()
LAST = int(GRAPH.facts[-1, 3])
NAMES = (*GRAPH.entities[:6], "A stranger")


def questions(time: int) -> list[Query]:
    """In both directions, about known and unknown, with ranks to tell and candidates to leave out."""
    asked = []
    for i, name in enumerate(NAMES):
        relation = GRAPH.relations[i % len(GRAPH.relations)]
        asked.append(Query(relation, time, s=name, rank_of=(GRAPH.entities[i + 3], "Nobody", NAMES[0]), k=3))
        asked.append(Query(relation, time, o=name, exclude=GRAPH.entities[i : i + 4], rank_of=(GRAPH.entities[i],)))
    return asked


def predicted(engine: Engine, queries: list[Query], depth: int, heuristic: bool = True) -> list[Ranking]:
    answers = engine.predict(queries, depth=depth, heuristic=heuristic)
    assert all(isinstance(answer, Ranking) for answer in answers)
    return [answer for answer in answers if isinstance(answer, Ranking)]


def by_definition(engine: Engine, query: Query, depth: int) -> Recurrent:
    """From all scores, in plain Python; ranks as the mean of the best and the worst place."""
    visible = engine.turn_to(query.t)
    names = engine.catalog.names[:visible]
    name = query.s if query.s is not None else query.o
    assert name is not None
    row = engine.catalog.rows([name])[0]
    relation = engine.relations[query.r] + (query.s is None) * len(engine.relations)
    empty = engine.state.entities  # a row without a past
    engine.state.reserve(empty + 1)
    subject = torch.tensor([row if row >= 0 else empty])
    scores = score_recurrency(engine.state, subject, torch.tensor([relation]), query.t, empty + 1)[0].tolist()
    score = dict(zip(names, scores, strict=False))
    left = {one: value for one, value in score.items() if one not in query.exclude}
    ranks = {}
    for wanted in query.rank_of:
        own = score.get(wanted, 0.0)
        others = [value for one, value in left.items() if one != wanted]
        ranks[wanted] = 1 + sum(value > own for value in others) + sum(value == own for value in others) / 2
    ordered = sorted((-value, one) for one, value in left.items() if value > 0)
    if len(ordered) > depth:
        ordered = [one for one in ordered if one[0] < ordered[depth][0]]
    heights = sorted({value for value, _ in ordered})
    return Recurrent(tuple(one for _, one in ordered), bytes(heights.index(value) for value, _ in ordered), ranks)


@pytest.mark.parametrize("time", [LAST, LAST + 1, LAST + 9])
@pytest.mark.parametrize("depth", [3, 10, 50])
def test_it_says_what_its_definition_says(time: int, depth: int) -> None:
    engine = engine_with_past()
    queries = questions(time)
    found = [one.recurrent for one in predicted(engine, queries, depth)]
    wanted = [by_definition(engine, query, depth) for query in queries]
    assert any(one.names for one in wanted) and any(len(set(one.levels)) > 1 for one in wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine is not None
        assert mine.levels == theirs.levels and mine.ranks == theirs.ranks
        # Candidates that tie have no order.
        assert sorted(zip(mine.levels, mine.names, strict=True)) == sorted(
            zip(theirs.levels, theirs.names, strict=True)
        )


def test_a_tie_that_the_end_of_the_list_would_cut_is_left_out() -> None:
    engine = fresh_engine()
    subject, relation = GRAPH.entities[0], GRAPH.relations[0]
    facts = [structs.replace(named([(0, 0, other, 0)])[0], t=0) for other in (1, 2, 3, 4)]
    engine.observe([*facts, structs.replace(facts[0], t=1)])
    query = Query(relation, 2, s=subject)
    whole = predicted(engine, [query], 4)[0].recurrent
    assert whole is not None and whole.names[0] == GRAPH.entities[1] and whole.levels == bytes([0, 1, 1, 1])
    cut = predicted(engine, [query], 2)[0].recurrent
    assert cut is not None and cut.names == (GRAPH.entities[1],) and cut.levels == bytes([0])


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_asking_for_it_changes_no_prediction_and_no_state(name: str) -> None:
    alone, beside = engine_with_past(name), engine_with_past(name)
    for time in (LAST, LAST + 1):
        queries = questions(time)
        found = predicted(beside, queries, 50)
        assert_same_answers(found, predicted(alone, queries, 0, heuristic=False))
        counted = CONFIGURATIONS[name].get("recall.enabled", True)
        assert all((one.recurrent is not None) == counted for one in found)
    assert_same_snapshot(beside.snapshot(), alone.snapshot())


def test_the_names_that_follow_are_those_of_a_longer_list() -> None:
    engine = engine_with_past()
    queries = questions(LAST + 1)
    for depth in (2, 8, 50):
        whole = predicted(engine, [replace(query, k=EVERYTHING) for query in queries], 0)
        for query, short, long in zip(queries, predicted(engine, queries, depth), whole, strict=True):
            assert short.top == long.top[: query.k]
            assert list(short.deep) == [one.entity for one in long.top[: max(depth, query.k)]]


def test_without_a_past_nobody_recurs() -> None:
    engine = fresh_engine()
    (answer,) = predicted(engine, [Query(GRAPH.relations[0], 0, s="x", rank_of=("y",))], 50)
    assert answer.recurrent == Recurrent((), b"", {"y": 1.0}) and answer.memory_norm == 0
