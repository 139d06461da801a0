"""How fast `live` scores batches of 512 queries on ICEWS14, against the matrix products that the machine does.

Machines differ, so the rate is told in queries for each GFLOP of a large product in single precision, measured between
the batches. The model is untrained: what it has learned costs nothing.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import sys
import time

import orjson
import torch

from adatkg_core.runtime import keep_freed_memory
from adatkg_core.state import both_sides

from .results import tell
from .untrained import icews14, untrained

BATCH, ROUNDS, SIZE = 512, 12, 2048


def main() -> None:
    """Score the same batches again and again, with products between them."""
    keep_freed_memory()
    dataset = icews14()
    bundle, state = untrained(dataset, "untrained", seed=1)
    engine = bundle.engine(snapshot=state.snapshot)
    now = dataset.split_bounds[1]
    asked = torch.from_numpy(dataset.facts[dataset.facts[:, 3] >= now][:2_000, :3]).to(engine.device)
    subject, relation, _ = both_sides(asked, dataset.n_relations)
    order = torch.randperm(len(subject), generator=torch.Generator().manual_seed(1))[:BATCH]
    square = torch.rand(SIZE, SIZE)
    scoring, product = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in engine.score_rows(subject[order], relation[order], now):
            pass
        middle = time.perf_counter()
        square @ square
        scoring.append(middle - began)
        product.append(time.perf_counter() - middle)
    rate = BATCH / sorted(scoring[2:])[ROUNDS // 2 - 1]
    flops = 2 * SIZE**3 / sorted(product[2:])[ROUNDS // 2 - 1] / 1e9
    told = {"queries_per_second": round(rate, 1), "matmul_gflops_per_second": round(flops, 1)}
    print(orjson.dumps(told).decode(), file=sys.stderr)
    tell("scoring_queries_per_gflop", rate / flops)


if __name__ == "__main__":
    main()
