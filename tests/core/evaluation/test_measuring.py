"""Measuring against the definition: one query at a time through the public engine, and plain Python around it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from adatkg_core.datasets import Dataset, Split, aligned
from adatkg_core.engine import Engine
from adatkg_core.errors import InputError
from adatkg_core.evaluation import Asked, measure, summarize
from adatkg_core.events import Ranking
from adatkg_core.metrics import rank_targets
from adatkg_core.model import Recurrency, score_snapshot
from adatkg_core.model.recurrency import SAME_PAIR, SAME_RELATION
from adatkg_core.settings import Protocol
from tests.core.evaluation.graph import (
    Row,
    as_fact,
    as_query,
    both,
    empty,
    flat,
    fresh,
    graph,
    queries,
    ranks_of,
    rows,
)
from tests.support.small_graph import (
    CONFIGURATIONS,
    ENCODER,
    ENTITIES,
    PER_ENTITY,
    shared_model,
    small_config,
    small_graph,
    small_model,
)

pytestmark = pytest.mark.slow  # seconds of models in all

# -- streaming ----------------------------------------------------------------------------------------------------


def one_at_a_time(engine: Engine, asked: list[Row]) -> list[Ranking]:
    """The definition: all facts before t in the log, each query alone, other true answers of t left out."""
    answers, past = [], list(rows(graph()))
    truths = set(both(past))
    for row in asked:
        while past and past[0][3] < row[3]:
            engine.observe([as_fact(past.pop(0))])
        answer = engine.predict([as_query(row, truths)])[0]
        assert isinstance(answer, Ranking)
        answers.append(answer)
    return answers


@pytest.mark.parametrize("name", ["default", "attention", "model-alone", "recall-alone"])
def test_streaming_ranks_are_those_of_queries_asked_one_at_a_time(name: str) -> None:
    asked = list(measure(fresh(name), graph(), "test"))
    assert flat(asked) == queries("test")
    answers = one_at_a_time(fresh(name), queries("test"))
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


# -- candidates that were seen before ------------------------------------------------------------------------------


def causal(name: str, split: Split = "test") -> list[Asked]:
    return list(measure(empty(name), graph(), split, candidates="causal"))


@pytest.mark.parametrize("name", ["default", "attention", "model-alone", "recall-alone", "memoryless"])
def test_causal_ranks_are_those_of_an_engine_that_hears_of_entities_with_their_first_fact(name: str) -> None:
    asked = causal(name)
    assert flat(asked) == queries("test")
    answers = one_at_a_time(empty(name), queries("test"))
    assert ranks_of(asked) == [next(iter(answer.ranks.values())) for answer in answers]
    assert [seen for one in asked for seen in one.interactions[:, 0].tolist()] == [a.interactions for a in answers]
    gates = [gate for one in asked for gate in one.gate.tolist()]
    assert gates == pytest.approx([answer.gate for answer in answers], abs=1e-6)
    assert any(answer.interactions == 0 for answer in answers), "somebody must be asked about who is new"


def test_nobody_who_comes_later_is_a_candidate_of_model_or_heuristic() -> None:
    for one in causal("default", "valid"):
        before = {e for s, _, o, t in rows(graph()) if t < one.time for e in (s, o)}
        for answer, ranks in itertools.product(range(len(one.answer)), (one.ranks, one.baseline)):
            assert ranks is not None
            hidden = int(one.answer[answer]) not in before
            assert ranks.pessimistic[answer] <= len(before) + hidden


def test_causal_candidates_rank_the_answer_among_those_who_were_there() -> None:
    """The heuristic from its definition: restricted to whoever was seen, and the answer."""
    truths = set(both(rows(graph())))
    asked = causal("recall-alone", "valid")
    found = [r for one in asked if one.baseline is not None for r in one.baseline.realistic.tolist()]
    for row, rank in zip(queries("valid"), found, strict=True):
        scores = recurrency_oracle(row)
        seen = {e for s, _, o, t in rows(graph()) if t < row[3] for e in (s, o)}
        hidden = {a for s, r, a, t in truths if (s, r, t) == (row[0], row[1], row[3])}
        others = [scores[e] for e in seen - hidden - {row[2]}]
        close = [abs(x - scores[row[2]]) <= 2e-6 for x in others]
        above = sum(x > scores[row[2]] and not near for x, near in zip(others, close, strict=True))
        assert 1 + above <= rank <= 1 + above + sum(close)


@pytest.mark.parametrize("name", PER_ENTITY)
def test_whom_a_model_has_weights_for_is_no_candidate_before_the_first_fact_either(name: str) -> None:
    data, weighted = graph(), graph().entities[::-1][:ENTITIES]
    mine = aligned(data, weighted, data.relations)
    engine = Engine(shared_model(name), data.relations, ENCODER, entities=weighted)
    for one in measure(engine, mine, "train", candidates="causal"):
        before = {e for s, _, o, t in rows(mine) if t < one.time for e in (s, o)}
        assert int(one.ranks.pessimistic.max()) <= len(before) + 1


def test_the_snapshot_protocol_has_causal_candidates_too() -> None:
    model = snapshot_engine().model
    engine = Engine(model, graph().relations, ENCODER)
    asked = list(measure(engine, graph(), "valid", "snapshot", candidates="causal"))
    whole = list(measure(snapshot_engine(), graph(), "valid", "snapshot"))
    assert flat(asked) == flat(whole)
    for one, other in zip(asked, whole, strict=True):
        before = {e for s, _, o, t in rows(graph()) if t < one.time for e in (s, o)}
        assert int(one.ranks.pessimistic.max()) <= len(before) + 1
        # Fewer candidates, and who is left has the scores that he had.
        assert bool((one.ranks.realistic <= other.ranks.realistic).all())
    assert ranks_of(asked) != ranks_of(whole)
    assert engine.turn_to(11) == len({e for s, _, o, t in rows(graph()) if t < 11 for e in (s, o)})


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
                scores = score_snapshot(
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
        scores = score_snapshot(engine.model, engine.state, ids, subject, relation, asked.time)
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


# -- memory left out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["streaming", "snapshot"])
@pytest.mark.parametrize("memory", ["ema", "gru", "attention"])
def test_without_memory_is_what_a_gate_that_is_zero_says(protocol: Protocol, memory: str) -> None:
    shut, bypassed, whole = (snapshot_engine(memory=memory) for _ in range(3))
    assert shut.model.gate.weight is not None
    with torch.no_grad():
        shut.model.gate.weight.weight.zero_()
        shut.model.gate.weight.bias.fill_(-1e9)
    bypassed.model.reads_memory = False
    found = [list(measure(engine, graph(), "test", protocol)) for engine in (shut, bypassed, whole)]
    assert ranks_of(found[0]) == ranks_of(found[1]) != ranks_of(found[2])
    assert not any(bool(one.gate.any()) for one in found[1])
    assert any(bool(one.gate.any()) for one in found[2])


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
    # Where a table or a choice is cut, a tie goes to the older entity: so nothing is cut here.
    slots = ("pair_slots", "relation_slots", "partner_slots", "fact_slots", "kin_slots", "hops", "proposals")
    model = small_model(small_config({f"recall.{name}": 512 for name in slots}))
    for one in (graph(), mixed):
        engine = Engine(model, one.relations, ENCODER, entities=one.entities)
        figures.append(summarize(measure(engine, one, "test"))[0]["all"])
    assert figures[0] == pytest.approx(figures[1], abs=1e-4)


def test_every_configuration_can_be_measured() -> None:
    for name in CONFIGURATIONS:
        results, _ = summarize(measure(fresh(name), graph(), "valid"))
        mrr = results["all"]["mrr"]
        assert mrr is not None and 0 < mrr < 1
