"""Measuring against the definition: one query at a time through the public engine, and plain Python around it."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from adatkg_core.constants import SLICES
from adatkg_core.datasets import Dataset, aligned, by_first_appearance
from adatkg_core.engine import Engine
from adatkg_core.errors import InputError
from adatkg_core.evaluation import Asked, measure, summarize
from adatkg_core.events import Fact, Query, Ranking
from adatkg_core.metrics import rank_targets
from adatkg_core.metrics.scores import METRICS
from adatkg_core.model import Recurrency, score_snapshot
from adatkg_core.model.recurrency import SAME_PAIR, SAME_RELATION
from tests.support.small_graph import CONFIGURATIONS, ENCODER, shared_model, small_config, small_graph, small_model

Row = tuple[int, int, int, int]  # subject, relation (r + R asks backwards), answer, time


@functools.cache
def graph() -> Dataset:
    return by_first_appearance(small_graph())


def rows(dataset: Dataset) -> list[Row]:
    return [tuple(row) for row in dataset.facts.tolist()]


def fresh(name: str = "default") -> Engine:
    return Engine(shared_model(name), graph().relations, ENCODER, entities=graph().entities)


def both(facts: list[Row]) -> list[Row]:
    """The queries of one time in the order in which they are measured."""
    n = graph().n_relations
    return [*facts, *((o, r + n, s, t) for s, r, o, t in facts)]


def queries(split: str = "test") -> list[Row]:
    first, last = {"valid": (8, 10), "test": (11, 15)}[split]
    return [query for t in range(first, last + 1) for query in both([row for row in rows(graph()) if row[3] == t])]


def flat(asked: list[Asked]) -> list[Row]:
    columns = [(one.subject, one.relation, one.answer, torch.full_like(one.subject, one.time)) for one in asked]
    return [row for part in columns for row in zip(*(column.tolist() for column in part), strict=True)]


def ranks_of(asked: list[Asked]) -> list[float]:
    return [rank for one in asked for rank in one.ranks.realistic.tolist()]


# -- streaming ----------------------------------------------------------------------------------------------------


def as_query(row: Row, truths: set[Row]) -> Query:
    data, n = graph(), graph().n_relations
    s, r, o, t = row
    others = [data.entities[a] for q, k, a, when in truths if (q, k, when) == (s, r, t) and a != o]
    query = Query(data.relations[r % n], t, rank_of=(data.entities[o],), exclude=tuple(others))
    name = data.entities[s]
    return replace(query, o=name) if r >= n else replace(query, s=name)


def one_at_a_time(name: str, asked: list[Row]) -> list[Ranking]:
    """The definition: all facts before t in the log, each query alone, other true answers of t left out."""
    data, engine, answers = graph(), fresh(name), []
    past = list(rows(data))
    truths = set(both(past))
    for row in asked:
        while past and past[0][3] < row[3]:
            s, r, o, t = past.pop(0)
            engine.observe([Fact(data.entities[s], data.relations[r], data.entities[o], t)])
        answer = engine.predict([as_query(row, truths)])[0]
        assert isinstance(answer, Ranking)
        answers.append(answer)
    return answers


@pytest.mark.parametrize("name", ["default", "attention", "model-alone", "recall-alone"])
def test_streaming_ranks_are_those_of_queries_asked_one_at_a_time(name: str) -> None:
    asked = list(measure(fresh(name), graph(), "test"))
    assert flat(asked) == queries("test")
    answers = one_at_a_time(name, queries("test"))
    wanted = [next(iter(answer.ranks.values())) for answer in answers]
    assert ranks_of(asked) == wanted
    assert len(set(wanted)) > 10
    gates = [gate for one in asked for gate in one.gate.tolist()]
    assert gates == pytest.approx([answer.gate for answer in answers], abs=1e-6)


def test_interactions_are_those_before_the_query() -> None:
    past = rows(graph())
    for one in measure(fresh(), graph(), "valid"):
        before = [e for s, _, o, t in past if t < one.time for e in (s, o)]
        for subject, answer, found in zip(
            one.subject.tolist(), one.answer.tolist(), one.interactions.tolist(), strict=True
        ):
            assert found == [before.count(subject), before.count(answer)]


def test_all_entities_of_the_catalog_are_candidates_from_the_start() -> None:
    data = graph()
    engine = fresh()
    next(iter(measure(engine, data, "valid")))
    assert engine.turn_to(9) == data.n_entities


def test_progress_counts_every_query_of_the_split() -> None:
    told: list[int] = []
    for _ in measure(fresh(), graph(), "test", progress=told.append):
        pass
    assert sum(told) == 2 * len(graph().split("test"))


def test_what_happens_after_the_split_is_not_replayed() -> None:
    engine = fresh()
    for _ in measure(engine, graph(), "valid"):
        pass
    assert engine.watermark == int(graph().split("valid")[-1, 3])


def test_an_empty_split_is_refused() -> None:
    short = replace(graph(), facts=graph().facts[graph().facts[:, 3] == 0])
    with pytest.raises(InputError, match="valid split is empty"):
        list(measure(fresh(), short, "valid"))


# -- slices and figures -------------------------------------------------------------------------------------------


def member(row: Row, slice_name: str) -> bool:
    subject, _, answer, time = row
    data = graph()
    train = {e for s, _, o, _ in data.split("train").tolist() for e in (s, o)}

    def emerges(entity: int) -> bool:
        return min(t for s, _, o, t in rows(data) if entity in (s, o)) == time

    unseen = emerges if slice_name.startswith("emerging") else lambda entity: entity not in train
    if slice_name.endswith("subject_unseen"):
        return unseen(subject)
    if slice_name.endswith("object_unseen"):
        return unseen(answer)
    return slice_name == "all" or unseen(subject) or unseen(answer)


@pytest.mark.parametrize("protocol", ["streaming", "snapshot"])
def test_every_figure_of_every_slice_is_a_mean_over_its_queries(protocol: str) -> None:
    data = graph()
    asked = list(measure(fresh("model-alone"), data, "test", protocol))  # type: ignore[arg-type]
    found, baseline = summarize(asked)
    simple = [rank for one in asked if one.baseline is not None for rank in one.baseline.realistic.tolist()]
    for results, ranks in ((found, ranks_of(asked)), (baseline, simple)):
        assert list(results) == list(SLICES)
        for name, result in results.items():
            mine = [rank for rank, row in zip(ranks, flat(asked), strict=True) if member(row, name)]
            assert len(mine) > 0 and result["count"] == len(mine)
            figures = [1 / rank for rank in mine], *([rank <= k for rank in mine] for k in (1, 3, 10))
            for metric, values in zip(METRICS, figures, strict=True):
                assert result[metric] == pytest.approx(sum(values) / len(mine))


# -- the recurrency heuristic -------------------------------------------------------------------------------------


def recurrency_oracle(row: Row, slow: float = 60.0) -> list[float]:
    subject, relation, _, time = row
    scores = [0.0] * graph().n_entities
    for s, r, o, t in both(rows(graph())):
        if t < time:
            weight = math.exp(-(time - t) / slow)
            scores[o] += weight * (s == subject) * (1.0 if r == relation else SAME_PAIR)
            scores[o] += weight * (r == relation) * SAME_RELATION
    return scores


def test_the_heuristic_scores_by_decayed_counts_of_the_past() -> None:
    data = graph()
    heuristic = Recurrency(data.n_relations, torch.device("cpu"))
    seen = 0
    for time in range(12):
        facts = [row for row in rows(data) if row[3] == time]
        asked = both(facts)
        subject, relation, _, _ = torch.tensor(asked).unbind(1)
        found = heuristic.score(subject, relation, time, data.n_entities)
        wanted = torch.tensor([recurrency_oracle(row) for row in asked])
        torch.testing.assert_close(found, wanted, atol=2e-6, rtol=1e-4)
        seen += int((wanted > 0.1).sum())
        heuristic.observe(torch.tensor(facts)[:, :3], time)
    assert seen > 50


def test_the_heuristic_is_ranked_with_the_same_filter() -> None:
    truths = set(both(rows(graph())))
    wanted = []
    for row in queries("valid"):
        scores = recurrency_oracle(row)
        hidden = {a for s, r, a, t in truths if (s, r, t) == (row[0], row[1], row[3])} - {row[2]}
        others = [x for i, x in enumerate(scores) if i != row[2] and i not in hidden]
        target = scores[row[2]]
        # The smallest of the three terms is at the edge of single precision beside the largest.
        close = [abs(x - target) <= 2e-6 for x in others]
        above = sum(x > target and not near for x, near in zip(others, close, strict=True))
        wanted.append((1 + above, 1 + above + sum(close)))
    asked = list(measure(fresh(), graph(), "valid"))
    found = [r for one in asked if one.baseline is not None for r in one.baseline.realistic.tolist()]
    assert len(found) == len(wanted)
    for rank, (least, most) in zip(found, wanted, strict=True):
        assert least <= rank <= most


def test_the_baseline_can_be_left_out_and_changes_no_rank() -> None:
    bare = list(measure(fresh(), graph(), "valid", baseline=False))
    assert all(one.baseline is None for one in bare)
    assert ranks_of(bare) == ranks_of(list(measure(fresh(), graph(), "valid")))
    assert summarize(bare)[1]["all"]["count"] == 0


# -- snapshot -----------------------------------------------------------------------------------------------------


def snapshot_engine(timing: str = "before", memory: str = "ema") -> Engine:
    model = small_model(small_config({"recall.enabled": False, "model.timing": timing, "model.memory": memory}))
    return Engine(model, graph().relations, ENCODER, entities=graph().entities)


def test_snapshot_ranks_are_raw_and_each_direction_is_scored_apart() -> None:
    data, engine = graph(), snapshot_engine()
    for one in measure(snapshot_engine(), data, "valid", "snapshot"):
        if engine.watermark is None:
            engine.observe_rows(torch.from_numpy(data.facts[data.facts[:, 3] < one.time]))
        engine.turn_to(one.time)
        half = len(one.subject) // 2
        for side in (slice(0, half), slice(half, None)):
            with torch.no_grad():
                scores, _ = score_snapshot(
                    engine.model,
                    engine.state,
                    torch.arange(data.n_entities),
                    one.subject[side],
                    one.relation[side],
                    one.time,
                )
            raw = rank_targets(scores, one.answer[side])
            assert one.ranks.realistic[side].tolist() == raw.realistic.tolist()
        engine.observe_rows(torch.from_numpy(data.facts[data.facts[:, 3] == one.time]))


def test_the_queries_of_a_snapshot_see_each_other_and_those_of_the_stream_do_not() -> None:
    data = graph()
    time = int(data.split("valid")[0, 3])
    now = np.flatnonzero(data.facts[:, 3] == time)
    fewer = replace(data, facts=np.delete(data.facts, now[1:], axis=0))
    assert int(fewer.split("valid")[0, 3]) == time
    for protocol, alike in (("streaming", True), ("snapshot", False)):
        whole = next(iter(measure(snapshot_engine(), data, "valid", protocol)))  # type: ignore[arg-type]
        alone = next(iter(measure(snapshot_engine(), fewer, "valid", protocol)))  # type: ignore[arg-type]
        assert len(alone.subject) == 2
        same = [whole.subject[0], whole.relation[0], whole.answer[0]]
        assert [alone.subject[0], alone.relation[0], alone.answer[0]] == same
        found, wanted = gaps(whole, protocol), gaps(alone, protocol)
        assert (found == pytest.approx(wanted, abs=1e-5)) is alike


def gaps(asked: Asked, protocol: str) -> list[float]:
    """The scores of all candidates for the first query of a measured time."""
    data, engine = graph(), snapshot_engine()
    engine.observe_rows(torch.from_numpy(data.facts[data.facts[:, 3] < asked.time]))
    half = len(asked.subject) // 2
    if protocol == "streaming":
        _, scores = next(engine.score_rows(asked.subject[:half], asked.relation[:half], asked.time))
        return scores[0].tolist()
    engine.turn_to(asked.time)
    ids = torch.arange(data.n_entities)
    with torch.no_grad():
        subject, relation = asked.subject[:half], asked.relation[:half]
        scores, _ = score_snapshot(engine.model, engine.state, ids, subject, relation, asked.time)
    return scores[0].tolist()


@pytest.mark.parametrize("memory", ["ema", "gru", "attention"])
def test_before_and_after_differ_in_the_snapshot_protocol(memory: str) -> None:
    before, after = (
        ranks_of(list(measure(snapshot_engine(timing, memory), graph(), "test", "snapshot")))
        for timing in ("before", "after")
    )
    assert before != after


def test_timing_is_nothing_to_a_model_without_memory() -> None:
    before, after = (
        ranks_of(list(measure(snapshot_engine(timing, "none"), graph(), "test", "snapshot")))
        for timing in ("before", "after")
    )
    assert before == after


# -- numbering ----------------------------------------------------------------------------------------------------


def test_entities_numbered_by_first_appearance_say_the_same_facts() -> None:
    original, renumbered = small_graph(), graph()

    def by_name(data: Dataset) -> list[tuple[str, str, str, int]]:
        return [(data.entities[s], data.relations[r], data.entities[o], t) for s, r, o, t in rows(data)]

    assert by_name(renumbered) == by_name(original)
    assert sorted(renumbered.entities) == sorted(original.entities)
    met = [*dict.fromkeys(e for s, _, o, _ in rows(renumbered) for e in (s, o))]
    assert met == list(range(len(met)))


def test_new_names_come_behind_those_of_the_model_and_unknown_relations_are_refused() -> None:
    data = small_graph()
    known = [data.entities[7], "Somebody else", data.entities[2]]
    found = aligned(data, known, data.relations)
    assert list(found.entities[:3]) == known
    assert len(found.entities) == data.n_entities + 1
    with pytest.raises(InputError, match=data.relations[2]):
        aligned(data, known, data.relations[:2])


def test_the_order_in_which_entities_are_numbered_is_nothing_to_the_figures() -> None:
    data = small_graph()
    mixed = aligned(data, data.entities[::-1], data.relations)
    figures = []
    for one in (graph(), mixed):
        engine = Engine(shared_model("default"), one.relations, ENCODER, entities=one.entities)
        figures.append(summarize(measure(engine, one, "test"))[0]["all"])
    assert figures[0] == pytest.approx(figures[1], abs=1e-4)


def test_every_configuration_can_be_measured() -> None:
    for name in CONFIGURATIONS:
        results, _ = summarize(measure(fresh(name), graph(), "valid"))
        mrr = results["all"]["mrr"]
        assert mrr is not None and 0 < mrr < 1
