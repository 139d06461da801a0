"""What the recall head keeps of a state between two commits changes no score, and is read once."""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.engine import Engine
from adatkg_core.events import Fact
from adatkg_core.model.recall_view import FarEnd, FarEnds, RecallView
from tests.support.small_graph import engine_with_past

RELATIONS = 6


class Table:
    """The far end of relation r has r entities, 10 r and those after it; counts how often each relation is read."""

    def __init__(self) -> None:
        self.read_kinds: list[int] = []

    def read(self, kinds: Tensor) -> FarEnd:
        self.read_kinds += kinds.tolist()
        owner = torch.repeat_interleave(kinds)
        other = torch.cat([torch.arange(10 * kind, 10 * kind + kind) for kind in kinds.tolist()])
        return FarEnd(owner, other, other.unsqueeze(1).float(), other * 0.5)


def listed(far: FarEnd) -> list[tuple[int, int, float, float]]:
    columns = (far.owner, far.other, far.features.squeeze(1), far.value)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_each_relation_is_read_once_and_found_as_if_it_had_been_read_anew() -> None:
    table, kept = Table(), FarEnds(time=7)
    for asked in ([1, 3], [3], [2, 3, 5], [0, 1], [5, 2, 1, 0]):
        kinds = torch.tensor(asked)
        assert listed(kept.of(kinds, RELATIONS, table.read)) == listed(Table().read(kinds))
    assert sorted(table.read_kinds) == [0, 1, 2, 3, 5]


def test_another_time_begins_with_nothing() -> None:
    view = RecallView(4)
    first = view.far_ends("relation", 7)
    assert view.far_ends("relation", 7) is first
    assert view.far_ends("newcomer", 7) is not first
    assert view.far_ends("relation", 8) is not first


def test_names_of_strangers_are_projected_each_time() -> None:
    view, text, projected = RecallView(4), torch.arange(12.0).view(6, 2), []

    def project(names: Tensor) -> Tensor:
        projected.append(names.shape[0])
        return names * 2

    for n in (6, 4, 5, 4):
        strangers = text[:n] + (torch.arange(n) >= 4).unsqueeze(1) * n
        assert torch.equal(view.names(strangers, project), strangers * 2)
    assert projected == [4, 2, 1]


def scores_of(engine: Engine, subject: list[int], relation: list[int], time: int) -> Tensor:
    rows = engine.score_rows(torch.tensor(subject), torch.tensor(relation), time)
    return torch.cat([scores for _, scores in rows])


def test_a_score_does_not_depend_on_what_was_asked_before() -> None:
    asked = ([0, 1, 2, 3, 4], [0, 1, 2, 3, 0])
    fresh, used = engine_with_past(), engine_with_past()
    now = int(fresh.watermark or 0) + 1
    for time in (now, now + 9, now):
        scores_of(used, [5], [3], time)
        scores_of(used, [6, 2], [0, 3], time)
    expected = scores_of(fresh, *asked, now)
    assert torch.allclose(scores_of(used, *asked, now), expected, atol=1e-6)
    names = fresh.catalog.names
    for engine in (fresh, used):
        engine.observe([Fact(names[1], next(iter(engine.relations)), names[5], now)])
    again = scores_of(fresh, *asked, now + 1)
    assert torch.allclose(scores_of(used, *asked, now + 1), again, atol=1e-6)
    assert not torch.allclose(again, expected, atol=1e-6)
