"""Room for large tensors in a file that nobody sees, so that what they hold can leave the memory."""

from __future__ import annotations

import errno
import math
import mmap
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from adatkg_core.errors import AdatkgError

if TYPE_CHECKING:  # commands that compute nothing start without it
    import torch
    from torch import Tensor

AHEAD = 4  # what may have been handed over and not be in the file yet
WAIT = 0.002  # seconds, at most, for which a step holds its thread up
_ALIGNED = 64  # bytes


class FileMemory:
    """A file without a name, dealt out as tensors; it goes with the last of them, or with the process.

    A disk may hold up whoever touches its pages for longer than a stream can wait, so only a thread of its own does.
    The caller goes through small steps meanwhile.
    """

    def __init__(self, size: int, folder: str) -> None:
        """Of `size` bytes, once `reserve` has come to its end; each tensor takes its bytes `aligned`."""
        self._folder, self._size, self._taken = folder, size, 0
        self._thread = ThreadPoolExecutor(1, "file-memory")
        self._bytes: mmap.mmap | None = None
        self._ahead: deque[Future[None]] = deque()
        self._buffers: deque[Tensor] = deque()  # by turns: a new one each time would have all its pages made anew

    def reserve(self) -> Iterator[None]:
        """Have the disk promise all of it: a full one is an AdatkgError now, and no signal while a page is written."""
        self._ahead.append(self._thread.submit(self._make))
        yield from self.settle()

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A tensor in what is reserved, behind those before it; what it holds is undefined."""
        import torch

        assert self._bytes is not None
        count, start = math.prod(shape), self._taken
        self._taken += aligned(count * dtype.itemsize)
        if count == 0:
            return torch.empty(tuple(shape), dtype=dtype, device="cpu")
        return torch.frombuffer(self._bytes, dtype=dtype, count=count, offset=start).view(tuple(shape))

    def fill(self, target: Tensor, values: Tensor) -> Iterator[None]:
        """Have a part of such a tensor hold what `values` are now, by the end of `settle`."""
        import numpy as np

        yield from self._until_at_most(AHEAD - 1)
        buffer = self._next_buffer(values)
        buffer.copy_(values)
        self._ahead.append(self._thread.submit(np.copyto, target.numpy(), buffer.numpy()))

    def settle(self) -> Iterator[None]:
        """Wait until all of it is there."""
        yield from self._until_at_most(0)
        self._buffers.clear()

    def _next_buffer(self, like: Tensor) -> Tensor:
        """Room for such values that nothing which is ahead stands in."""
        import torch

        buffer = self._buffers.popleft() if len(self._buffers) == AHEAD else None
        if buffer is None or buffer.numel() < like.nbytes:
            buffer = torch.empty(like.nbytes, dtype=torch.uint8, device="cpu")
        self._buffers.append(buffer)
        return buffer[: like.nbytes].view(like.dtype).view(like.shape)

    def _until_at_most(self, ahead: int) -> Iterator[None]:
        while len(self._ahead) > ahead:
            try:
                self._ahead[0].result(WAIT)
            except TimeoutError:
                yield
            else:
                self._ahead.popleft()

    def _make(self) -> None:
        try:
            os.makedirs(self._folder, exist_ok=True)
            if shutil.disk_usage(self._folder).free < self._size:  # rather than take from others what is left
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with tempfile.TemporaryFile(dir=self._folder) as file:
                _allocate(file.fileno(), self._size)
                self._bytes = mmap.mmap(file.fileno(), self._size)  # holds the file
        except OSError as error:
            raise AdatkgError(
                f"{self._folder}: no room for a copy of {self._size / 1e9:.1f} GB ({error.strerror or error}); "
                "make room there, or choose another place"
            ) from error


def aligned(size: int) -> int:
    """The bytes that a tensor of so many takes in a `FileMemory`."""
    return -(-size // _ALIGNED) * _ALIGNED


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:  # a file with holes would find the disk full only when a page is written to it, and that is a signal
        for start in range(0, size, 1 << 20):
            os.write(descriptor, bytes(min(1 << 20, size - start)))
