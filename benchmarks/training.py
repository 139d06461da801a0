"""Training speed at d = 256, L = 10, 2 layers, without the recall head, on ICEWS14.

Run alone on an idle machine: `.venv/bin/python benchmarks/training.py`
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: busy waiting hurts as soon as a core is shared

import tempfile
from pathlib import Path

import orjson

from adatkg_core.config import Config, ModelConfig, RecallConfig, TrainConfig
from adatkg_core.datasets import load_dataset
from adatkg_core.encoder import load_encoder
from trainer import train

LIMITS = Path(__file__).with_name("limits.json")


def main() -> None:
    """Train one epoch and print the rate beside its limit, as the results of `adatkg bench` will look."""
    config = Config(
        ModelConfig(dim=256, chain_length=10, layers=2),
        RecallConfig(enabled=False),
        TrainConfig(epochs=1, batch=1024),
    )
    dataset = load_dataset("icews14")
    with tempfile.TemporaryDirectory() as folder:
        train(dataset, config, load_encoder("minilm"), Path(folder))
        curve = orjson.loads((Path(folder) / "curves.jsonl").read_bytes().splitlines()[0])
    name = "training_queries_per_second"
    bound = orjson.loads(LIMITS.read_bytes())[name]
    value = curve["queries_per_second"]
    print(orjson.dumps({"name": name, "value": value, **bound, "ok": value >= bound["limit"]}).decode())


if __name__ == "__main__":
    main()
