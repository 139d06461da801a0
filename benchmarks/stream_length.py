"""What a fact costs late in a long stream, against early, with the same entities active all along.

Facts are taken in and a few queries asked at every time, as a worker would; what that costs is the processor's time.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import time

import torch

from adatkg_core.datasets import facts_by_time, synthesize
from adatkg_core.engine import Engine
from adatkg_core.model import AdaTKG
from adatkg_core.settings import load_config
from adatkg_core.text.encoder import HashEncoder

from .results import tell

TIMES = 600
WINDOW = 60  # times compared at each end; the first ones, while tables fill, count as neither


def main() -> None:
    """Replay a synthetic graph and compare two windows of equal work."""
    dataset = synthesize(entities=1_000, relations=40, times=TIMES, facts_per_time=300, seed=1, emerging=0.0)
    encoder = HashEncoder(64)
    torch.manual_seed(1)
    bounds = {"recall.pair_slots": 16, "recall.relation_slots": 128}  # full well before the first window
    model = AdaTKG(load_config("live", bounds), encoder.encode(dataset.relations), dataset.n_entities)
    engine = Engine(model, dataset.relations, encoder, entities=dataset.entities)
    seconds = []
    for now, rows in facts_by_time(dataset.facts):
        facts = torch.from_numpy(rows)
        began = time.process_time()
        for _ in engine.score_rows(facts[:64, 0], facts[:64, 1], now):
            pass
        engine.observe_rows(facts)
        seconds.append((time.process_time() - began) / len(facts))
    early, late = seconds[TIMES // 2 : TIMES // 2 + WINDOW], seconds[-WINDOW:]
    tell("late_to_early_cost_per_fact", sorted(late)[WINDOW // 2] / sorted(early)[WINDOW // 2])


if __name__ == "__main__":
    main()
