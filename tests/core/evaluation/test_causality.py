"""The check of causality passes what is causal, and notices every kind of leak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from adatkg_core.engine import Engine
from adatkg_core.errors import InputError
from adatkg_core.evaluation import Asked, Candidates, CausalityCheck, measure
from adatkg_core.settings import Protocol
from tests.core.evaluation.graph import empty, fresh, graph, queries, rows
from tests.support.small_graph import CONFIGURATIONS, ENCODER, PER_ENTITY, shared_model

EVERY = 1_000  # more than there are
SOME = 25


def checked(
    engine: Engine,
    reference: Engine,
    count: int = SOME,
    protocol: Protocol = "streaming",
    candidates: Candidates = "all",
) -> dict[str, Any]:
    """What the check says of a measurement by one engine beside another."""
    check = CausalityCheck(graph(), "test", count, seed=3)
    for _ in check.follow(measure(engine, graph(), "test", protocol, candidates=candidates), engine):
        pass
    return check.compare(reference)


# -- nothing leaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_an_engine_with_all_names_says_bitwise_what_one_without_a_future_says(name: str) -> None:
    result = checked(fresh(name), fresh(name))
    assert (result["checked"], result["different"], result["examples"]) == (SOME, 0, [])


@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name not in PER_ENTITY])
def test_one_whose_catalog_grows_says_what_one_says_that_never_heard_of_those_who_come_later(name: str) -> None:
    reference = empty(name)
    result = checked(empty(name), reference, candidates="causal")
    assert (result["checked"], result["different"]) == (SOME, 0)
    assert reference.watermark == 14
    past = [row for row in rows(graph()) if row[3] < 15]
    assert set(reference.catalog.names) == {graph().entities[e] for s, _, o, _ in past for e in (s, o)}


def test_the_other_engine_has_nothing_of_a_querys_time_or_later_when_it_is_asked() -> None:
    reference = Watched(shared_model("recall-alone"), graph().relations, ENCODER)
    assert checked(empty("recall-alone"), reference, EVERY, candidates="causal")["different"] == 0
    assert len(reference.asked) == len(queries("test"))
    for time, newest, taken in reference.asked:
        assert newest < time
        assert taken == sum(t < time for *_, t in rows(graph()))


class Watched(Engine):
    """Writes down what it had been given whenever it was asked."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.asked: list[tuple[int, int, int]] = []
        self.taken = 0

    def observe_rows(self, facts: Tensor, known: int | None = None) -> None:
        self.taken += len(facts)
        super().observe_rows(facts, known)

    def predict(self, queries: Any, **options: Any) -> Any:
        assert self.watermark is not None
        self.asked.append((queries[0].t, self.watermark, self.taken))
        return super().predict(queries, **options)


# -- what leaks is noticed ----------------------------------------------------------------------------------------


class Clairvoyant(Engine):
    """Holds all facts of the data set, and takes whoever is about to appear for a little busier."""

    def turn_to(self, time: int) -> int:
        visible = super().turn_to(time)
        soon = {e for s, _, o, t in rows(graph()) if t == time for e in (s, o)}
        self.state.tensors["activity_fast"][list(soon)] += 1e-3
        return visible


def test_an_engine_that_sees_a_little_of_the_future_is_noticed() -> None:
    leaking = Clairvoyant(shared_model("recall-alone"), graph().relations, ENCODER, entities=graph().entities)
    result = checked(leaking, fresh("recall-alone"))
    assert result["different"] > 0.9 * result["checked"]
    assert len(result["examples"]) == 5
    first = result["examples"][0]
    assert first["time"] >= 11 and (first["subject"] is None) != (first["object"] is None)


def test_one_fact_that_came_too_early_is_noticed_from_there_on() -> None:
    engine, check = fresh("recall-alone"), CausalityCheck(graph(), "test", EVERY, seed=0)

    def early() -> Iterator[Asked]:
        for one in measure(engine, graph(), "test"):
            if one.time == 13:
                fact = torch.from_numpy(graph().facts[graph().facts[:, 3] == 13][:1].copy())
                fact[:, 3] = 12
                engine.observe_rows(fact)
            yield one

    for _ in check.follow(early(), engine):
        pass
    result = check.compare(fresh("recall-alone"))
    late = sum(row[3] >= 13 for row in queries("test"))
    assert late / 2 < result["different"] <= late
    assert {one["time"] for one in result["examples"]} == {13}


def test_names_known_before_their_first_fact_are_noticed() -> None:
    assert checked(fresh(), empty(), candidates="causal")["different"] == SOME


def test_figures_with_candidates_from_the_future_are_noticed() -> None:
    """The engine itself is causal; whoever ranked its answers counted those in who came at the time itself."""
    assert checked(empty("recall-alone"), empty("recall-alone"), EVERY)["different"] > 0


def test_queries_of_a_time_that_see_each_other_are_noticed() -> None:
    """The snapshot protocol, whose ranks no query asked alone would have."""
    assert checked(fresh("model-alone"), fresh("model-alone"), protocol="snapshot")["different"] > 0


def test_ranks_in_the_figures_that_are_not_the_engines_are_noticed() -> None:
    engine, check = fresh(), CausalityCheck(graph(), "test", SOME, seed=0)

    def improved() -> Iterator[Asked]:
        for one in measure(engine, graph(), "test"):
            one.ranks.optimistic.fill_(1)
            one.ranks.pessimistic.fill_(1)
            yield one

    for _ in check.follow(improved(), engine):
        pass
    assert check.compare(fresh())["different"] > SOME / 3


# -- the sample ---------------------------------------------------------------------------------------------------


def test_a_seed_chooses_the_same_queries_again_and_another_one_others() -> None:
    def chosen(seed: int) -> list[tuple[int, int, int]]:
        check, engine = CausalityCheck(graph(), "test", 7, seed), fresh("recall-alone")
        reference = Watched(shared_model("recall-alone"), graph().relations, ENCODER, entities=graph().entities)
        for _ in check.follow(measure(engine, graph(), "test"), engine):
            pass
        told: list[int] = []
        result = check.compare(reference, told.append)
        assert (result["checked"], result["seed"], sum(told)) == (7, seed, 7)
        return reference.asked

    assert chosen(1) == chosen(1) != chosen(2)


def test_a_check_of_no_queries_is_refused() -> None:
    with pytest.raises(InputError, match="checks nothing"):
        CausalityCheck(graph(), "test", 0, seed=0)
