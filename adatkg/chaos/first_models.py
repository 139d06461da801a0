"""What a run begins with: a small generated graph for each name, and two models of it that may answer."""

from __future__ import annotations

from pathlib import Path

from adatkg_core.datasets import Dataset, synthesize, up_to
from adatkg_core.settings import load_config
from adatkg_core.storage import ModelStore
from adatkg_core.text import load_encoder
from trainer import starting_state, train

TIMES = 600  # ticks of a data set, after which it begins again
FIRST = 30  # the tick at which the live stream begins; models learn from what came before
_WINDOW = 0.2  # share of the ticks before that, to choose an epoch by


def generate(seed: int, number: int) -> Dataset:
    """The data set of a graph."""
    return synthesize(entities=80, relations=8, times=TIMES, facts_per_time=8, seed=seed * 100 + number)


def add_models(store: ModelStore, graph: str, dataset: Dataset, config: str, work: Path) -> None:
    """Train two models from the ticks before the stream, of which the second is present."""
    past = up_to(dataset, FIRST - 1, _WINDOW)
    for seed in (1, 2):
        settings = load_config(config, {"train.epochs": 1, "train.seed": seed})
        encoder = load_encoder(settings.model.encoder)
        bundle = train(past, settings, encoder, work / f"{graph}-{seed}").bundle
        store.put(graph, bundle, starting_state(bundle, past, encoder, graph, "valid"))
        store.make_present(graph, bundle.version)
