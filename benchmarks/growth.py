"""How the costs of `live` grow: with entities, facts, relations, candidates and the length of chains.

Synthetic graphs, names read by hashing, untrained models; all but one thing stays as it is. What counts is the
processor's time on one thread, because waiting for a busy machine would hide how it grows. Writes `growth.json` and a
picture for each thing that grows, as many as are named:

    python -m benchmarks.growth --out docs/results entities facts
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from adatkg_core.datasets import Dataset, facts_by_time, synthesize
from adatkg_core.engine import Engine
from adatkg_core.events import Query
from adatkg_core.model import AdaTKG
from adatkg_core.runtime import keep_freed_memory
from adatkg_core.settings import load_config
from adatkg_core.text.encoder import HashEncoder

from .curves import draw

WARM, ASKED = 20, 200  # questions one at a time
BATCH, BATCHES = 512, 7  # questions together
LATE = 0.3  # share of the facts, the last ones, whose cost counts
FIGURES = {"question_ms": "alone", "batched_question_ms": "in a batch", "fact_ms": "a fact"}


@dataclass(frozen=True)
class Graph:
    """What a graph is like; `candidates` says how many names there are beside those that act."""

    entities: int = 8_000
    times: int = 100
    relations: int = 80
    candidates: int = 0
    chain: int | None = None  # with a length of chains the paper's model takes part


GROWTH: dict[str, tuple[str, list[int], Callable[[int], Graph]]] = {
    "entities": ("entities, each in ten facts or so", [1_000, 4_000, 16_000, 64_000], lambda n: Graph(n, n // 60)),
    "facts": ("facts of the same 8,000 entities", [15_000, 60_000, 240_000], lambda n: Graph(times=n // 300)),
    "relations": ("relations", [20, 80, 320], lambda n: Graph(relations=n)),
    "candidates": ("candidates, of whom 8,000 act", [8_000, 32_000, 128_000], lambda n: Graph(candidates=n - 8_000)),
    "chain": (
        "facts in a chain, with the paper's model (`full`)",
        [5, 10, 20, 40],
        lambda n: Graph(2_000, 40, chain=n),
    ),
}


def main() -> None:
    """Measure what is asked for, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument(
        "things", nargs="*", metavar="THING", help=f"what grows: {', '.join(GROWTH)}; all of it unless named"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.things) - GROWTH.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(GROWTH)}")
    keep_freed_memory()
    torch.set_num_threads(1)
    file = chosen.out / "growth.json"
    results: dict[str, Any] = orjson.loads(file.read_bytes()) if file.is_file() else {}
    for thing in chosen.things or GROWTH:
        below, sizes, graph = GROWTH[thing]
        points = [_costs(graph(size)) for size in sizes]
        costs = {name: [round(point[name], 4) for point in points] for name in FIGURES}
        results[thing] = {thing: sizes, **costs}
        file.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2))
        lines = {label: (sizes, [one / costs[name][0] for one in costs[name]]) for name, label in FIGURES.items()}
        picture = draw(lines, "Cost against that of the smallest", below, doublings=True)
        (chosen.out / f"growth-{thing}.svg").write_text(picture, "utf-8")
        print(orjson.dumps({thing: results[thing]}).decode(), flush=True)


def _costs(graph: Graph) -> dict[str, float]:
    """Milliseconds of a question alone, of one in a batch, and of a fact."""
    dataset = synthesize(graph.entities, graph.relations, graph.times, facts_per_time=300, seed=1, emerging=0.0)
    engine, fact = _taken_in(dataset, graph)
    now, draw_from = graph.times, np.random.default_rng(1)
    rows = dataset.facts[draw_from.choice(len(dataset.facts), BATCH)]
    alone = []
    for s, r, _, _ in rows[: WARM + ASKED].tolist():
        query = Query(s=dataset.entities[s], r=dataset.relations[r], t=now)
        began = time.process_time()
        engine.predict([query])
        alone.append(time.process_time() - began)
    subject, relation, together = torch.from_numpy(rows[:, 0]), torch.from_numpy(rows[:, 1]), []
    for _ in range(BATCHES):
        began = time.process_time()
        for _ in engine.score_rows(subject, relation, now):
            pass
        together.append((time.process_time() - began) / BATCH)
    seconds = (float(np.median(alone[WARM:])), float(np.median(together)), fact)
    return {name: 1e3 * one for name, one in zip(FIGURES, seconds, strict=True)}


def _taken_in(dataset: Dataset, graph: Graph) -> tuple[Engine, float]:
    """An engine that has taken all facts in, and the seconds that each of the last took."""
    encoder = HashEncoder(64)
    torch.manual_seed(1)
    chain = {"model.chain_length": graph.chain, "model.chain_window": 2 * graph.times} if graph.chain else {}
    config = load_config("full" if graph.chain else "live", chain)
    model = AdaTKG(config, encoder.encode(dataset.relations), dataset.n_entities)
    idle = [f"somebody {number}" for number in range(graph.candidates)]
    engine = Engine(model, dataset.relations, encoder, entities=[*dataset.entities, *idle])
    early = int((1 - LATE) * len(dataset.facts))
    late = dataset.facts[early, 3]
    count, began = 0, 0.0
    for now, rows in facts_by_time(dataset.facts):
        if now >= late and not count:
            began = time.process_time()
        engine.observe_rows(torch.from_numpy(rows))
        count += len(rows) if now >= late else 0
    engine.turn_to(graph.times)
    return engine, (time.process_time() - began) / count


if __name__ == "__main__":
    main()
