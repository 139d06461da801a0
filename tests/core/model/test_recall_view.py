"""What the recall head keeps of a state between two commits changes no score, and is read once."""

from __future__ import annotations

import torch
from torch import Tensor

from adatkg_core.engine import Engine
from adatkg_core.events import Fact
from adatkg_core.model.recall_view import Index, KeptRows, RecallView
from tests.support.small_graph import engine_with_past


class Table:
    """The far end of relation r has r entities, 10 r and those after it, worth what their activity is at the time.

    It notes which relations are read, and which slots described.
    """

    def __init__(self) -> None:
        self.activity = torch.arange(60.0)
        self.counts = torch.arange(60) % 7
        self.read_kinds: list[int] = []
        self.described: list[int] = []

    def find(self, kinds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.read_kinds += kinds.tolist()
        slot = torch.cat([torch.arange(10 * kind, 10 * kind + kind) for kind in kinds.tolist()])
        owner = torch.repeat_interleave(torch.arange(kinds.shape[0]), kinds)
        return owner, slot, torch.stack((slot, self.counts[slot]), 1)

    def describe(self, kinds: Tensor, slot: Tensor) -> tuple[Tensor, Tensor]:
        self.described += slot.tolist()
        return self.counts[slot].unsqueeze(1).float(), kinds + self.activity[slot] + self.counts[slot]

    def ask(self, view: RecallView, kinds: list[int], time: int, name: str = "relation") -> list[tuple[float, ...]]:
        with torch.no_grad():
            far = view.far_end(name, torch.tensor(kinds), time, self.find, self.describe)
        columns = (far.owner, far.other, far.features.squeeze(1), far.value)
        return list(zip(*(column.tolist() for column in columns), strict=True))


def test_each_relation_is_read_once_and_found_as_if_it_had_been_read_anew() -> None:
    table, view = Table(), RecallView(60)
    for asked in ([1, 3], [3], [2, 3, 5], [0, 1], [5, 2, 1, 0]):
        assert table.ask(view, asked, 7) == Table().ask(RecallView(60), asked, 7)
    assert sorted(table.read_kinds) == [0, 1, 2, 3, 5]


def test_another_time_or_table_begins_with_nothing() -> None:
    table, view = Table(), RecallView(60)
    for name, time in (("relation", 7), ("relation", 7), ("newcomer", 7), ("relation", 8)):
        table.ask(view, [4], time, name)
    assert table.read_kinds == [4, 4, 4]


def test_after_a_change_only_its_relations_are_read_and_only_what_has_changed_is_described_again() -> None:
    table, view, later = Table(), RecallView(60), Table()
    table.ask(view, [2, 4, 5], 7)
    table.read_kinds, table.described = [], []
    table.activity[[41, 52]] += 100.0
    table.counts[20] += 1
    later.activity, later.counts = table.activity, table.counts
    view.renew(torch.tensor([41, 52]), torch.tensor([2]))
    assert table.ask(view, [5, 4, 2], 7) == later.ask(RecallView(60), [5, 4, 2], 7)
    assert table.read_kinds == [2]
    assert sorted(table.described) == [20, 41, 52]
    table.ask(view, [2, 4, 5], 7)
    assert len(table.described) == 3


def test_slots_that_come_and_go_are_described_and_forgotten() -> None:
    table, view = Table(), RecallView(60)
    kept, shorter = table.find, slice(0, 3)
    table.ask(view, [5], 7)

    def find(kinds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        owner, slot, mark = kept(kinds)
        return owner[shorter], slot[shorter], mark[shorter]

    table.find = find  # type: ignore[method-assign]
    for part in (slice(0, 3), slice(0, 5)):
        shorter = part
        view.renew(torch.tensor([7]), torch.tensor([5]))
        assert table.ask(view, [5], 7) == table.ask(RecallView(60), [5], 7)


def test_rows_are_computed_when_first_wanted_when_stale_and_when_they_belong_to_strangers() -> None:
    computed: list[list[int]] = []
    everyone, values = torch.arange(20), torch.arange(20.0)

    def compute(rows: Index) -> tuple[Tensor]:
        computed.append(everyone[rows].tolist())
        return (values[rows].clone(),)

    kept = KeptRows()
    assert torch.equal(kept.get(3, 5, compute)[0], values[:5])
    values[1] = values[4] = 50.0
    kept.renew(torch.tensor([1]))
    assert torch.equal(kept.get(4, 6, compute)[0], values[:6])
    assert torch.equal(kept.get(4, 4, compute)[0], values[:4])
    assert computed == [[0, 1, 2, 3, 4], [3, 4, 5], [1]]


def test_names_of_strangers_are_projected_each_time() -> None:
    view, text, projected = RecallView(4), torch.arange(12.0).view(6, 2), []

    def project(names: Tensor) -> Tensor:
        projected.append(names.shape[0])
        return names * 2

    for n in (6, 4, 5, 4):
        strangers = text[:n] + (torch.arange(n) >= 4).unsqueeze(1) * n
        with torch.no_grad():
            assert torch.equal(view.names(strangers, project), strangers * 2)
    assert projected == [6, 1]


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
