"""Which rows were written: all of them are known, and neither to begin nor to find them is one long piece of work."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
import torch

from adatkg_core.state import ChangedRows, changed_rows

CPU = torch.device("cpu")
STATM = Path("/proc/self/statm")


def test_rows_that_are_noted_are_found_in_order_and_those_behind_the_first_are_not() -> None:
    changes = ChangedRows({"pair": 100}, CPU)
    for rows in ([70, 3], [3, 100], [12]):
        changes.note("pair", torch.tensor(rows))
    changes.note("fact", torch.tensor([1]))
    changes.note("pair", (torch.tensor([50]), torch.tensor([2])))
    assert [changes.between("pair", *part).tolist() for part in ((0, 50), (50, 100))] == [[3, 12], [50, 70]]


@pytest.mark.skipif(not STATM.exists(), reason="only Linux says what a process holds")
def test_a_large_state_is_watched_without_going_through_a_mark_for_each_of_its_rows() -> None:
    before, rows = _held(), 64 << 20
    changes = ChangedRows({"pair": rows}, CPU)
    assert _held() - before < rows // 8
    changes.note("pair", torch.tensor([rows - 1]))
    assert changes.between("pair", rows - 10, rows).tolist() == [rows - 1]


def test_few_rows_wait_to_be_summed_up_however_many_each_write_has(monkeypatch: pytest.MonkeyPatch) -> None:
    joined, join = list[int](), torch.cat
    monkeypatch.setattr(changed_rows, "_ROWS", 1_000)
    changes = ChangedRows({"pair": 100_000}, CPU)

    def noting(tensors: list[torch.Tensor]) -> torch.Tensor:
        joined.append(sum(map(len, tensors)))
        return join(tensors)

    monkeypatch.setattr(torch, "cat", noting)
    for start in range(0, 90_000, 300):
        changes.note("pair", torch.arange(start, start + 300))
    assert len(changes.between("pair", 0, 100_000)) == 90_000
    assert max(joined) < 1_000 + 300


def _held() -> int:
    return int(STATM.read_text("ascii").split()[1]) * mmap.PAGESIZE
