"""The processes that train together: each asks its share of the queries, and all of them take the same step.

Started by `torchrun`, or by whoever sets its variables. State, parameters and everything random that concerns them all
are the same in every process; only what is computed for single queries is parted. So gradients are added up by hand,
in one flat buffer after each backward pass: a wrapper around one forward call would not see that a step calls several
methods of the model, nor which parameters a stage, or a batch without newcomers, leaves out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from adatkg_core.errors import AdatkgError

T = TypeVar("T")
# Of one exchange. A process that dies is noticed at once; this bounds the wait for one that hangs, and must be longer
# than what the first process does while the others wait: reading names, writing a checkpoint.
PATIENCE = timedelta(minutes=30)


@dataclass(frozen=True)
class Share:
    """What one process does of a batch."""

    rows: slice  # of the queries, those that it asks
    weight: float  # of their mean loss in that of the whole batch
    parted: bool  # False: every process asks all of them


@dataclass(frozen=True)
class World:
    """One of `size` processes; of a single one, nothing here costs or changes anything."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and talks."""
        return self.rank == 0

    def share(self, count: int) -> Share:
        """This process's part of a batch of so many queries; of fewer than there are processes, all ask everything."""
        if count < self.size:
            return Share(slice(0, count), 1 / self.size, parted=False)
        begin, end = (count * number // self.size for number in (self.rank, self.rank + 1))
        return Share(slice(begin, end), (end - begin) / count, parted=self.size > 1)

    def takes(self, number: int) -> bool:
        """Whether this process does the piece of that number, where whole pieces are dealt out in turn."""
        return number % self.size == self.rank

    def add_up(self, values: Tensor) -> Tensor:
        """The sum of all processes' values, in the place of these."""
        if self.size > 1:
            with _exchange():
                dist.all_reduce(values)
        return values

    def add_up_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Give each parameter the sum of its gradients; one that has none in any process stays without."""
        if self.size == 1:
            return
        learning = [one for one in parameters if one.requires_grad]
        found = [one.grad is not None for one in learning]
        parts = [torch.zeros_like(one) if one.grad is None else one.grad for one in learning]
        flat = torch.cat([*(part.reshape(-1) for part in parts), parts[0].new_tensor(found)])
        *sums, holders = torch.split(self.add_up(flat), [*(one.numel() for one in learning), len(learning)])
        everywhere = found if all(found) else holders.tolist()  # which waits for the device, and is seldom needed
        for one, total, some in zip(learning, sums, everywhere, strict=True):
            if some:
                one.grad = total.view_as(one)

    def align(self, tensors: Iterable[Tensor]) -> None:
        """Make tensors what they are in the first process."""
        if self.size == 1:
            return
        with _exchange():
            for one in tensors:
                if one.numel():
                    dist.broadcast(one, 0)

    def from_first(self, make: Callable[[], T]) -> T:
        """What the first process makes, for all of them; what it is refused, they are all refused."""
        if self.size == 1:
            return make()
        told: list[Any] = [None]
        if self.first:
            try:
                told = [(make(), None)]
            except AdatkgError as error:
                told = [(None, error)]
        with _exchange():
            dist.broadcast_object_list(told, 0, device=torch.device("cpu"))
        made, refused = told[0]
        if refused is not None:
            raise refused
        value: T = made
        return value

    @contextmanager
    def own_draws(self, seed: Sequence[int], device: torch.device) -> Iterator[None]:
        """While this lasts, random draws are this process's own; after it they go on as if there had been none."""
        if self.size == 1:
            yield
            return
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(int(np.random.SeedSequence([*seed, self.rank]).generate_state(1, np.uint64)[0]))
            yield


ALONE = World()


@contextmanager
def launched(device: str, environ: Mapping[str, str] = os.environ) -> Iterator[tuple[World, str]]:
    """The world that this process was started in, while it lasts, and the device of this process in it."""
    size = int(environ.get("WORLD_SIZE", "1"))
    if size == 1 or "RANK" not in environ:
        yield ALONE, device
        return
    if device == "cuda":
        device = f"cuda:{environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    # Its functions keep the group that there is when it is imported, which otherwise the first optimizer does. A group
    # that is kept has threads until Python ends, and one that lets go of a tensor just then aborts the process.
    import_module("torch.distributed.nn.functional")
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    with _exchange():
        dist.init_process_group(backend, timeout=PATIENCE)
    leave = backend == "gloo"  # also after an error; the other one waits for processes that may be gone then
    try:
        yield World(int(environ["RANK"]), size), device
        leave = True
    finally:
        if leave:
            dist.destroy_process_group()


@contextmanager
def _exchange() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise AdatkgError(
            f"another process of this training has ended or cannot be reached ({error}); what it said tells why. "
            "Start the same command again: it goes on from the checkpoint"
        ) from error
