"""Tensors in a file without a name: nothing of it is left, and a full disk is an error before anything is written."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import FileMemory, aligned, file_memory


def reserved(size: int, folder: Path) -> FileMemory:
    memory = FileMemory(size, str(folder))
    deque(memory.reserve(), maxlen=0)
    return memory


def test_tensors_hold_what_is_written_to_them_and_outlive_what_dealt_them_out(tmp_path: Path) -> None:
    shapes = [
        ((3, 5), torch.float32),
        ((7,), torch.int64),
        ((0, 4), torch.int32),
        ((), torch.int32),
        ((9,), torch.bool),
    ]
    memory = reserved(sum(aligned(40 * dtype.itemsize) for _, dtype in shapes), tmp_path / "new")
    tensors = [memory.empty(shape, dtype) for shape, dtype in shapes]
    del memory
    for i, (tensor, (shape, dtype)) in enumerate(zip(tensors, shapes, strict=True)):
        assert tensor.shape == torch.Size(shape) and tensor.dtype == dtype
        tensor.fill_(i + 1)
    for i, (tensor, (_, dtype)) in enumerate(zip(tensors, shapes, strict=True)):
        assert torch.equal(tensor, torch.full_like(tensor, i + 1)), dtype
    assert not list((tmp_path / "new").iterdir()), "the file has no name"


def test_what_is_copied_is_as_it_was_when_it_was_handed_over_and_nobody_waits_long_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, write = reserved(aligned(400), tmp_path), np.copyto
    target, values = memory.empty((10, 10), torch.int32), torch.ones(10, dtype=torch.int32)

    def slowly(*arguments: Any) -> None:
        time.sleep(0.02)
        write(*arguments)

    monkeypatch.setattr(np, "copyto", slowly)
    steps = 0
    for row in range(10):
        steps += sum(1 for _ in memory.fill(target[row], values))
        values += 1
    assert steps >= 10, "what is ahead is little, and the rest waits in steps"
    deque(memory.settle(), maxlen=0)
    assert torch.equal(target[:, 0], torch.arange(1, 11, dtype=torch.int32))


def test_however_much_is_copied_the_pages_on_its_way_are_those_of_a_few_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, write, places = reserved(aligned(4_000), tmp_path), np.copyto, set[int]()
    target = memory.empty((100, 10), torch.int32)

    def noting(to: Any, values: Any) -> None:
        places.add(values.ctypes.data)
        write(to, values)

    monkeypatch.setattr(np, "copyto", noting)
    for row in range(100):
        length = 10 - row % 3  # the last part of a tensor is shorter
        deque(memory.fill(target[row, :length], torch.full((length,), row, dtype=torch.int32)), maxlen=0)
    deque(memory.settle(), maxlen=0)
    assert torch.equal(target[:, 0], torch.arange(100, dtype=torch.int32))
    assert len(places) <= 2 * file_memory.AHEAD  # a part that is longer than those before it has another place


def test_a_process_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
import os, signal, torch
from adatkg_core.runtime import FileMemory
memory = FileMemory(1 << 20, {str(tmp_path)!r})
for _ in memory.reserve(): pass
tensor = memory.empty((1 << 18,), torch.int32).fill_(1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_more_than_there_is_on_the_disk_is_refused_and_takes_nothing_of_it(tmp_path: Path) -> None:
    with pytest.raises(AdatkgError, match=r"no room for a copy of 1125899\.9 GB") as raised:
        reserved(1 << 50, tmp_path)
    assert str(tmp_path) in str(raised.value) and "make room" in str(raised.value)


def test_a_disk_that_fills_up_meanwhile_is_an_error_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(file_memory, "_allocate", full)
    with pytest.raises(AdatkgError, match="No space left"):
        reserved(1 << 20, tmp_path)


def test_where_files_cannot_be_made_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AdatkgError, match="no room for a copy"):
        reserved(10, tmp_path / "file")


def test_without_a_call_for_it_room_is_made_by_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    tensor = reserved(3 << 20, tmp_path).empty((3 << 18,), torch.int32)
    assert int(tensor.abs().sum()) == 0
