"""Everything that a training run needs to go on as if it had never been killed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adatkg_core.errors import InputError
from adatkg_core.model import AdaTKG
from adatkg_core.storage import artifact_exists, read_artifact, write_artifact
from trainer.fit.world import World

KIND = "checkpoint"


@dataclass
class Progress:
    """Where a run stands after whole epochs."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -1.0
    best_metrics: dict[str, Any] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    curves: list[dict[str, Any]] = field(default_factory=list)


def save_checkpoint(
    folder: Path,
    fingerprint: str,
    model: AdaTKG,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    progress: Progress,
) -> None:
    """Replace the checkpoint in one step."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in progress.best.items()}
    for row, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{row}.{name}": value for name, value in slots.items()}
    tensors["random"] = torch.get_rng_state()
    meta = {
        "fingerprint": fingerprint,
        "epoch": progress.epoch,
        "best_epoch": progress.best_epoch,
        "best_score": progress.best_score,
        "best_metrics": progress.best_metrics,
        "curves": progress.curves,
        "steps": schedule.last_epoch,
    }
    write_artifact(folder / "checkpoint", KIND, tensors, meta, replace=True)


def load_checkpoint(
    folder: Path,
    fingerprint: str,
    model: AdaTKG,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    world: World,
) -> Progress:
    """Take up the run where the checkpoint in the first process's folder left it; without one, begin."""
    found = world.from_first(lambda: _read(folder, fingerprint))
    if found is None:
        return Progress()
    tensors, meta = found
    model.load_state_dict(_under("model.", tensors))
    device = next(model.parameters()).device
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under("optimizer.", tensors).items():
        row, _, slot = name.partition(".")
        state.setdefault(int(row), {})[slot] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    schedule.last_epoch = meta["steps"]
    for group, rate in zip(optimizer.param_groups, _rates(schedule), strict=True):
        group["lr"] = rate
    torch.set_rng_state(tensors["random"].cpu())
    best = {name: tensor.to(device) for name, tensor in _under("best.", tensors).items()}
    figures = {name: meta[name] for name in ("epoch", "best_epoch", "best_score", "best_metrics", "curves")}
    return Progress(best=best, **figures)


def _read(folder: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    if not artifact_exists(folder / "checkpoint"):
        return None
    tensors, meta = read_artifact(folder / "checkpoint", KIND)
    if meta["fingerprint"] != fingerprint:
        raise InputError(
            f"{folder} holds an unfinished run with other settings or data; remove it or give another --out"
        )
    return tensors, meta


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _rates(schedule: torch.optim.lr_scheduler.LRScheduler) -> list[float]:
    assert isinstance(schedule, torch.optim.lr_scheduler.LambdaLR)
    step = schedule.last_epoch
    return [float(base) * f(step) for base, f in zip(schedule.base_lrs, schedule.lr_lambdas, strict=True)]
