"""Scoring 512 queries at once by the paper's model alone on ICEWS14: useful arithmetic against matrix products.

d = 256, L = 10, 2 layers. The model is untrained, what it has learned costs nothing; entities are read once, as between
two commits. `useful_flops.py` says what is useful.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import time

import torch

from adatkg_core.engine import Engine
from adatkg_core.model import AdaTKG
from adatkg_core.runtime import keep_freed_memory
from adatkg_core.settings import Config, ModelConfig, RecallConfig
from adatkg_core.state import both_sides, select_chains
from adatkg_core.text import load_encoder, text_of

from .results import tell
from .untrained import icews14
from .useful_flops import of_chains, of_queries, product_rate, product_seconds

BATCH, WARM, ROUNDS = 512, 3, 25
DAYS = 40  # before test, that the state is made from; a chain reaches back 14
CONFIG = Config(ModelConfig(dim=256, chain_length=10, layers=2), RecallConfig(enabled=False))


def main() -> None:
    """Score the same batch again and again, with products between."""
    keep_freed_memory()
    dataset = icews14()
    now, encoder = dataset.split_bounds[1], load_encoder(CONFIG.model.encoder)
    torch.manual_seed(1)
    model = AdaTKG(CONFIG, encoder.encode([text_of(name) for name in dataset.relations]), dataset.n_entities)
    engine = Engine(model, dataset.relations, encoder, entities=dataset.entities)
    times = dataset.facts[:, 3]
    engine.observe_rows(torch.from_numpy(dataset.facts[(times >= now - DAYS) & (times < now)]))
    engine.advance(now)
    asked = torch.from_numpy(dataset.facts[times >= now][:2_000, :3])
    subject, relation, _ = both_sides(asked, dataset.n_relations)
    chosen = torch.randperm(len(subject), generator=torch.Generator().manual_seed(1))[:BATCH]
    subject, relation = subject[chosen], relation[chosen]
    scoring, products = [], []
    for _ in range(WARM + ROUNDS):
        began = time.perf_counter()
        for _ in engine.score_rows(subject, relation, now):
            pass
        scoring.append(time.perf_counter() - began)
        products.append(product_seconds())
    seconds, product = sorted(scoring[WARM:])[ROUNDS // 2], product_rate(products[WARM:])
    window, length = CONFIG.model.chain_window, CONFIG.model.chain_length
    chains = select_chains(engine.state, subject, relation, now, model.similarity, window, length)
    useful = of_chains(CONFIG.model, encoder.dim, chains) + of_queries(CONFIG.model, BATCH, dataset.n_entities)
    beside = {"queries_per_second": BATCH / seconds, "matmul_gflops": product / 1e9}
    tell("scoring_share_of_matmul", useful / seconds / product, **beside)


if __name__ == "__main__":
    main()
