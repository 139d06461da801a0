"""Data sets from folders, in whichever layout the field publishes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from adatkg_core.datasets.dataset import Dataset, dataset_of_ticks, make_dataset
from adatkg_core.datasets.layouts import detect


def load_folder(folder: Path) -> Dataset:
    """Read a folder in any of the layouts that benchmarks are published in; a train file alone is enough."""
    layout = detect(folder)
    read = layout.read(folder)
    name, times = folder.resolve().name, read.times
    if times.granularity is None:
        dataset = make_dataset(name, read.entities, read.relations, read.facts)
    else:
        dataset = dataset_of_ticks(name, read.entities, read.relations, read.facts, times.clock, times.granularity)
    return replace(dataset, layout=layout.name, notes=read.notes)
