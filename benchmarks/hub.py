"""What a query about a hub takes, a subject or a relation with 100,000 facts, against one about ordinary ones.

Queries are asked one at a time. The slowest counts of: the hub under ordinary relations, ordinary subjects under the
relation that is a hub, and the one under the other. The recall head answers alone, since what the model beside it
takes is the same for all and would only hide the difference; and what counts is the processor's time on one thread,
because waiting for a busy machine, which all queries share, would hide it too.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import sys
import time

import numpy as np
import orjson
import torch

from adatkg_core.engine import Engine
from adatkg_core.model import AdaTKG
from adatkg_core.settings import load_config
from adatkg_core.text.encoder import HashEncoder

from .results import tell

HUB = 0  # the row of the subject, and of the relation
BUSY = 4  # relations under which the hub acts, the first ones; the others have few facts
FACTS = 100_000  # of each
ENTITIES, RELATIONS, TIMES = 5_000, 100, 50
QUERIES = 60  # of each kind, in turn, so that whatever else the machine does meets all of them


def main() -> None:
    """Take the stream in, then ask."""
    torch.set_num_threads(1)
    encoder = HashEncoder(64)
    relations = [f"relation {i}" for i in range(RELATIONS)]
    torch.manual_seed(1)
    config = load_config("live", {"model.enabled": False, "model.names": "brackets"})
    model = AdaTKG(config, encoder.encode(relations), ENTITIES)
    names = [f"role {i % 70} (group {i // 70})" for i in range(ENTITIES)]
    engine = Engine(model, relations, encoder, entities=names)
    draw = np.random.default_rng(1)
    for now in range(TIMES):
        engine.observe_rows(torch.from_numpy(_facts(draw, now)))
    engine.turn_to(TIMES)
    seconds: dict[str, list[float]] = {}
    for _ in range(QUERIES):
        subject, relation = int(draw.integers(1, ENTITIES)), int(draw.integers(BUSY, RELATIONS))
        for kind, query in {
            "ordinary": (subject, relation),
            "hub subject": (HUB, relation),
            "hub relation": (subject, HUB),
            "hub relation inverse": (subject, HUB + RELATIONS),
            "both": (HUB, HUB),
        }.items():
            seconds.setdefault(kind, []).append(_seconds(engine, *query))
    median = {kind: float(np.median(taken)) for kind, taken in seconds.items()}
    print(orjson.dumps({"median_ms": {k: round(v * 1e3, 2) for k, v in median.items()}}).decode(), file=sys.stderr)
    ordinary = median.pop("ordinary")
    tell("hub_to_median_query", max(median.values()) / ordinary)


def _facts(draw: np.random.Generator, now: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """What happens at one time: the hub with anybody, anybody with anybody under the relation, and little else."""
    size = FACTS // TIMES
    own = (np.full(size, HUB), draw.integers(HUB, BUSY, size), draw.integers(1, ENTITIES, size))
    joined = (draw.integers(1, ENTITIES, size), np.full(size, HUB), draw.integers(1, ENTITIES, size))
    few = (draw.integers(1, ENTITIES, 200), draw.integers(BUSY, RELATIONS, 200), draw.integers(1, ENTITIES, 200))
    rows = np.concatenate([np.stack(part, 1) for part in (own, joined, few)])
    return np.column_stack((rows, np.full(len(rows), now)))


def _seconds(engine: Engine, subject: int, relation: int) -> float:
    began = time.process_time()
    for _ in engine.score_rows(torch.tensor([subject]), torch.tensor([relation]), TIMES):
        pass
    return time.process_time() - began


if __name__ == "__main__":
    main()
