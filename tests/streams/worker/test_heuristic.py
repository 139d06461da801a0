"""The live score of the recurrency heuristic is what evaluating it offline gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from adatkg_core.datasets import by_first_appearance
from adatkg_core.evaluation import measure, summarize
from adatkg_core.events import Source
from adatkg_core.storage import Bundle
from replay import Choice, ReplaySequence
from streams.settings import StreamSettings
from streams.worker import Arrival, LiveGraph, Replica
from tests.support.small_graph import ENCODER, small_config, small_graph, small_model

DATA = by_first_appearance(small_graph())
ROOM = {"recall.pair_slots": 512, "recall.relation_slots": 2048}  # as many as the baseline of `evaluate` has


def bundle(changes: Mapping[str, Any] = ROOM) -> Bundle:
    return Bundle(small_model(small_config(changes), entities=DATA.n_entities), DATA.relations, DATA.entities, "v")


def replayed(bundle: Bundle, batch: int, **settings: Any) -> LiveGraph:
    """The whole data set through a graph, with queries about the test split, in batches of one size."""
    graph = LiveGraph("g", bundle, ENCODER, StreamSettings(**settings), Replica())
    sequence = ReplaySequence(DATA, Choice("g", queries_from=DATA.split_bounds[1]))
    messages = [message for _, some in sequence.blocks() for message in some]
    arrivals = [Arrival(Source(0, i), 0.0, b"g", message) for i, message in enumerate(messages)]
    for start in range(0, len(arrivals), batch):
        graph.apply(arrivals[start : start + batch]).keep_score()
    return graph


@pytest.mark.parametrize("batch", [7, 10_000])
def test_the_live_score_of_model_and_heuristic_is_the_one_that_evaluate_reports(batch: int) -> None:
    graph = replayed(bundle(), batch)
    model, baseline = summarize(measure(bundle().engine(ENCODER), DATA, "test"))
    for live, offline in ((graph.score.scores(), model), (graph.score.heuristic_scores(), baseline)):
        assert live["all"]["count"] == offline["all"]["count"] == 2 * len(DATA.split("test"))
        assert live["all"] == pytest.approx(offline["all"], abs=1e-9)
        assert live["cold_start"]["count"] + live["warm"]["count"] == live["all"]["count"]  # type: ignore[operator]
    assert baseline["all"]["mrr"] != pytest.approx(model["all"]["mrr"], abs=1e-3)


def test_where_no_counts_are_kept_or_it_is_switched_off_nothing_is_marked() -> None:
    for graph in (replayed(bundle({"recall.enabled": False}), 50), replayed(bundle(), 50, heuristic=False)):
        assert not graph.heuristic and graph.score.heuristic_scores()["all"]["count"] == 0
        assert graph.score.scores()["all"]["count"] == 2 * len(DATA.split("test"))
