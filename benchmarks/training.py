"""Training at d = 256, L = 10, 2 layers, no recall head, on ICEWS14: useful arithmetic against matrix products.

The first half of the training times is only remembered; the rate is that of steps and commits after it, with square
products measured between them. `useful_flops.py` says what is useful.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: busy waiting hurts as soon as a core is shared

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from adatkg_core.datasets import Dataset, load_dataset
from adatkg_core.runtime import keep_freed_memory
from adatkg_core.settings import Config, ModelConfig, RecallConfig, TrainConfig
from adatkg_core.state import Chains
from adatkg_core.text import load_encoder
from trainer import train

from .results import tell
from .untrained import icews14
from .useful_flops import of_chains, of_entities, of_queries, product_rate, product_seconds

CONFIG = Config(
    ModelConfig(dim=256, chain_length=10, layers=2),
    RecallConfig(enabled=False),
    TrainConfig(epochs=1, batch=1024, strangers=0.0, burn_in=0.5),
)
WARM, STEPS = 3, 40  # times learned from that do not count, and that do


class _Enough(Exception):
    """The run has told what it was made for."""


class Meter:
    """Follows a training by its reports, and the useful arithmetic by what its chain encoder is given."""

    def __init__(self, dataset: Dataset, text: int) -> None:
        facts = dataset.facts[dataset.facts[:, 3] < dataset.split_bounds[0]]
        self.entities = int(facts[:, [0, 2]].max()) + 1
        self.facts, self.text = facts, text
        self.steps, self.queries, self.useful, self.seconds = 0, 0, 0, 0.0
        self.products: list[float] = []
        self._done, self._flops, self._began = 0, 0, 0.0

    def see(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        """Before any module runs."""
        if given and isinstance(given[0], Chains):
            self._flops += of_chains(CONFIG.model, self.text, given[0]) * (3 if torch.is_grad_enabled() else 1)

    def report(self, stage: str, done: int, total: int) -> None:
        """After each time; `train` calls it."""
        spent, queries = time.perf_counter() - self._began, done - self._done
        if queries:
            self.steps += 1
        if self.steps > WARM:
            self._count(queries, spent, total)
        if self.steps == WARM + STEPS or stage != "train":
            raise _Enough
        self._done, self._flops, self._began = done, 0, time.perf_counter()

    def _count(self, queries: int, spent: float, total: int) -> None:
        time_of = self.facts[len(self.facts) - total // 2 + self._done // 2, 3]
        remembering = len(np.unique(self.facts[self.facts[:, 3] < time_of][:, [0, 2]]))
        batches = -(-queries // CONFIG.train.batch)
        forward = of_queries(CONFIG.model, queries, self.entities)
        forward += batches * of_entities(CONFIG.model, self.text, self.entities, remembering)
        self.queries, self.seconds = self.queries + queries, self.seconds + spent
        self.useful += self._flops + 3 * forward
        self.products.append(product_seconds())


def main() -> None:
    """Train until enough times are learned from."""
    keep_freed_memory()
    encoder = load_encoder(CONFIG.model.encoder)
    meter = Meter(icews14(), encoder.dim)
    hook = nn.modules.module.register_module_forward_pre_hook(meter.see)
    with tempfile.TemporaryDirectory() as folder:
        try:
            train(load_dataset("icews14"), CONFIG, encoder, Path(folder), report=meter.report)
        except _Enough:
            hook.remove()
    rate, product = meter.useful / meter.seconds, product_rate(meter.products)
    beside = {"queries_per_second": meter.queries / meter.seconds, "matmul_gflops": product / 1e9}
    tell("training_share_of_matmul", rate / product, **beside)


if __name__ == "__main__":
    main()
