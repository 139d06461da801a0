"""Processes that train together, forked from one that has imported what they need."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from adatkg_core.datasets import synthesize
from adatkg_core.text.encoder import HashEncoder
from tests.support.preloaded import FORK
from tests.support.small_graph import small_config
from trainer import World, launched, train

ALONE = World()
PATIENCE = 60.0  # seconds; usually it takes two


@dataclass(frozen=True)
class Trained:
    """What one process has after a training."""

    tensors: dict[str, Tensor]
    valid: dict[str, Any]
    version: str
    files: tuple[str, ...]  # in its own folder


def train_small(folder: Path, changes: dict[str, Any], world: World = ALONE) -> Trained:
    """A training on a small graph; each process has a folder of its own, as on a machine of its own."""
    work = folder / f"{world.rank}"
    graph, config = synthesize(30, 4, 12, 8, seed=5), small_config(changes)
    run = train(graph, config, HashEncoder(24), work, world=world)
    files = tuple(sorted(path.name for path in work.glob("*")))
    return Trained(run.bundle.model.state_dict(), run.valid, run.bundle.version, files)


def train_together(size: int, folder: Path, kinds: dict[str, dict[str, Any]]) -> dict[str, list[Trained]]:
    """The same trainings by so many processes, one training after the other; of each what the processes have."""
    together(size, _train_kinds, folder, kinds)
    results = [torch.load(folder / f"{rank}.results", weights_only=False) for rank in range(size)]
    return {kind: [result[kind] for result in results] for kind in kinds}


def together(size: int, work: Callable[..., None], *arguments: Any) -> None:
    """Call `work(world, …)` in each of so many processes, of one thread each."""
    variables = launch_variables(size)
    processes = [FORK.Process(target=_run, args=(one, work, arguments), daemon=True) for one in variables]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in processes] == [0] * size


def launch_variables(size: int) -> list[dict[str, str]]:
    """What `torchrun` would set for each process."""
    common = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "OMP_NUM_THREADS": "1"}
    return [common | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]


def free_port() -> str:
    """One on which nobody listens at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextmanager
def plain_steps() -> Iterator[None]:
    """Training goes down the gradient by its length: AdamW makes a step of full length out of a rounding error."""

    def descend(groups: list[dict[str, Any]], **_: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=0.1)

    with patch("torch.optim.AdamW", descend):
        yield


def _run(variables: dict[str, str], work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.environ.update(variables)
    torch.set_num_threads(1)
    with launched("cpu") as (world, _):
        work(world, *arguments)


def _train_kinds(world: World, folder: Path, kinds: dict[str, dict[str, Any]]) -> None:
    results = {}
    for kind, changes in kinds.items():
        with plain_steps():
            results[kind] = train_small(folder / kind, changes, world)
    torch.save(results, folder / f"{world.rank}.results")
