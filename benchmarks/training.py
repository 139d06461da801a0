"""Training speed at d = 256, L = 10, 2 layers, without the recall head, on ICEWS14, over one epoch."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: busy waiting hurts as soon as a core is shared

import tempfile
from pathlib import Path

import orjson

from adatkg_core.datasets import load_dataset
from adatkg_core.settings import Config, ModelConfig, RecallConfig, TrainConfig
from adatkg_core.text import load_encoder
from trainer import train

from .results import tell


def main() -> None:
    """Train one epoch; the rate is of training alone."""
    config = Config(
        ModelConfig(dim=256, chain_length=10, layers=2),
        RecallConfig(enabled=False),
        TrainConfig(epochs=1, batch=1024, strangers=0.0),
    )
    with tempfile.TemporaryDirectory() as folder:
        train(load_dataset("icews14"), config, load_encoder("minilm"), Path(folder))
        curve = orjson.loads((Path(folder) / "curves.jsonl").read_bytes().splitlines()[0])
    tell("training_queries_per_second", curve["queries_per_second"])


if __name__ == "__main__":
    main()
