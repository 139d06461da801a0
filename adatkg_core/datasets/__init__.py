"""Temporal knowledge graphs as arrays: what they are, where they come from, how they are written and numbered."""

from adatkg_core.datasets.dataset import Dataset, Facts, Split, dataset_of_ticks, newest_window, up_to, without_later
from adatkg_core.datasets.download import fetch_dataset
from adatkg_core.datasets.load import load_dataset, shipped_names
from adatkg_core.datasets.renumber import aligned, by_first_appearance, facts_by_time, first_of_each
from adatkg_core.datasets.synthetic import synthesize
from adatkg_core.datasets.write import check_target, write_dataset

__all__ = [
    "Dataset",
    "Facts",
    "Split",
    "aligned",
    "by_first_appearance",
    "check_target",
    "dataset_of_ticks",
    "facts_by_time",
    "fetch_dataset",
    "first_of_each",
    "load_dataset",
    "newest_window",
    "shipped_names",
    "synthesize",
    "up_to",
    "without_later",
    "write_dataset",
]
