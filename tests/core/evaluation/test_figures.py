"""Every figure is a mean over the queries that it is about."""

from __future__ import annotations

import pytest
import torch

from adatkg_core.constants import SLICES, STRATA
from adatkg_core.evaluation import GROUPS, Asked, Figures, Results, measure, summarize
from adatkg_core.metrics import Ranks
from adatkg_core.metrics.scores import METRICS
from adatkg_core.settings import Protocol
from tests.core.evaluation.graph import Row, empty, flat, fresh, graph, ranks_of, rows


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
def test_every_figure_of_every_slice_is_a_mean_over_its_queries(protocol: Protocol) -> None:
    data = graph()
    asked = list(measure(fresh("model-alone"), data, "test", protocol))
    found, baseline = summarize(asked)
    simple = [rank for one in asked if one.baseline is not None for rank in one.baseline.realistic.tolist()]
    for results, ranks in ((found, ranks_of(asked)), (baseline, simple)):
        assert list(results) == list(SLICES)
        for name, result in results.items():
            mine = [rank for rank, row in zip(ranks, flat(asked), strict=True) if member(row, name)]
            assert len(mine) > 0
            assert_means(result, mine)


def assert_means(result: dict[str, float | None], ranks: list[float]) -> None:
    assert result["count"] == len(ranks)
    figures = [sum(1 / rank for rank in ranks), *(sum(rank <= k for rank in ranks) for k in (1, 3, 10))]
    for metric, total in zip(METRICS, figures, strict=True):
        assert result[metric] == (pytest.approx(total / len(ranks)) if ranks else None)


def figures_of(asked: list[Asked]) -> tuple[dict[str, Results], list[str]]:
    """What they come to, and the stratum of each query."""
    figures, strata = Figures(graph(), torch.device("cpu")), []
    for one in asked:
        member = torch.stack(list(figures.add(one).values()))
        assert bool((member.sum(0) == 1).all())
        strata += [STRATA[i] for i in member.long().argmax(0).tolist()]
    return figures.result(), strata


@pytest.mark.parametrize("protocol", ["streaming", "snapshot"])
def test_the_figures_of_a_stratum_are_over_its_queries_for_model_and_heuristic(protocol: Protocol) -> None:
    asked = list(measure(fresh("model-alone"), graph(), "test", protocol))
    result, strata = figures_of(asked)
    simple = [rank for one in asked if one.baseline is not None for rank in one.baseline.realistic.tolist()]
    for key, ranks in (("strata", ranks_of(asked)), ("baseline_strata", simple)):
        assert list(result[key]) == list(STRATA)
        for name in STRATA:
            assert_means(result[key][name], [rank for rank, one in zip(ranks, strata, strict=True) if one == name])
        assert sum(row["count"] or 0 for row in result[key].values()) == len(strata)
    assert (result["slices"], result["baseline"]) == summarize(asked)


def test_by_interactions_counts_what_the_subject_did_before() -> None:
    asked = list(measure(empty(), graph(), "test", candidates="causal"))
    result, _ = figures_of(asked)
    limits = {"0": 0, "1-5": 5, "6-20": 20, "21-100": 100}
    parts: dict[str, list[float]] = {name: [] for name in (*limits, "101+")}
    for (subject, _, _, time), rank in zip(flat(asked), ranks_of(asked), strict=True):
        done = sum((s == subject) + (o == subject) for s, _, o, t in rows(graph()) if t < time)
        parts[next((name for name, most in limits.items() if done <= most), "101+")].append(rank)
    assert list(result["by_interactions"]) == list(parts)
    for name, ranks in parts.items():
        assert_means(result["by_interactions"][name], ranks)
    assert all(parts[name] for name in ("0", "1-5", "6-20"))


def test_every_number_of_interactions_is_in_one_part() -> None:
    one = next(iter(measure(fresh("recall-alone"), graph(), "valid", baseline=False)))
    numbers = torch.tensor([0, 1, 5, 6, 20, 21, 100, 101, 10**12])
    some = slice(0, len(numbers))
    slices = {name: mask[some] for name, mask in one.slices.items()}
    ranks = Ranks(one.ranks.optimistic[some], one.ranks.pessimistic[some])
    columns = (one.subject[some], one.relation[some], one.answer[some])
    figures = Figures(graph(), torch.device("cpu"))
    figures.add(Asked(one.time, *columns, ranks, None, numbers.repeat(2, 1).T, one.gate[some], slices))
    counts = {name: row["count"] for name, row in figures.result()["by_interactions"].items()}
    assert counts == {"0": 1, "1-5": 2, "6-20": 2, "21-100": 2, "101+": 2}


def test_without_a_heuristic_its_figures_are_empty() -> None:
    result, _ = figures_of(list(measure(fresh(), graph(), "valid", baseline=False)))
    for (key, baseline), names in GROUPS.items():
        assert list(result[key]) == list(result[baseline]) == list(names)
        assert sum(row["count"] or 0 for row in result[key].values()) > 0
        assert all(row == dict.fromkeys(METRICS) | {"count": 0} for row in result[baseline].values())
