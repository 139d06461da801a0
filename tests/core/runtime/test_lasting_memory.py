"""Large tensors in memory of their own, which is there when it is touched and gone when nobody has it."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
import torch

from adatkg_core.runtime import lasting_memory, lasting_zeros

MANY = 64 << 20  # bytes

linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says what a process holds")


def held() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("shape", [(3, 5), (0, 4), (), (MANY // 16, 2)])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float32, torch.int64])
def test_it_is_zero_and_can_be_written(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = lasting_zeros(shape, dtype)
    assert tensor.shape == shape and tensor.dtype == dtype and tensor.is_contiguous()
    assert not bool(tensor.any())
    tensor.fill_(1)
    assert bool((tensor == 1).all())


def test_a_large_one_begins_where_a_huge_page_does() -> None:
    assert lasting_zeros((lasting_memory.LEAST,), torch.bool).data_ptr() % (2 << 20) == 0


@linux
def test_what_is_not_touched_is_not_there_and_what_nobody_has_goes_back_at_once() -> None:
    before = held()
    tensor = lasting_zeros((MANY,), torch.bool)
    assert held() - before < MANY // 8
    view = tensor.fill_(True)[1:]
    del tensor
    assert held() - before > MANY * 7 // 8
    del view
    assert held() - before < MANY // 8


def test_without_huge_pages_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert not bool(lasting_zeros((lasting_memory.LEAST,), torch.bool).any())
