"""Temporal knowledge graphs as arrays: loading, the 5:2:3 split, and the data set that the package ships."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adatkg_core.clock import DAY, Clock, readable
from adatkg_core.errors import InputError

Facts = NDArray[np.int64]
Split = Literal["train", "valid", "test"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A graph's facts in order of time with the names of what they mention."""

    name: str
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    facts: Facts  # [N, 4] subject, relation, object, tick; sorted by tick, the files' order inside a tick
    step: int  # the files' time units in one tick
    granularity: str  # what a tick is: "day", "15 minutes", or "tick" when the files do not tell
    bounds: tuple[int, int] | None = None  # first ticks of valid and test, where they are not those of 5:2:3
    calendar: Clock | None = None  # where the folder says it
    layout: str = ""  # what its folder was taken for, in words
    notes: tuple[str, ...] = ()  # what is worth knowing of its files

    @property
    def n_entities(self) -> int:
        """How many entities the data set names."""
        return len(self.entities)

    @property
    def n_relations(self) -> int:
        """How many relations the data set names, inverse relations not counted."""
        return len(self.relations)

    @cached_property
    def times(self) -> Facts:
        """The distinct ticks, ascending."""
        return np.unique(self.facts[:, 3])

    @property
    def clock(self) -> Clock | None:
        """The calendar of the ticks, where the folder has one or the name tells which benchmark this is."""
        if self.calendar is not None:
            return self.calendar
        return _calendar(self.name, self.granularity, int(self.times[0]))

    @property
    def split_bounds(self) -> tuple[int, int]:
        """The first tick of valid and the first tick of test."""
        if self.bounds is not None:
            return self.bounds
        n = len(self.times)
        return int(self.times[int(n * 0.5)]), int(self.times[int(n * 0.7)])

    def split(self, name: Split) -> Facts:
        """The rows of one part, by 5:2:3 over the distinct ticks unless bounds are given; a view, not a copy."""
        valid, test = np.searchsorted(self.facts[:, 3], self.split_bounds, side="left")
        bounds = {"train": (0, valid), "valid": (valid, test), "test": (test, len(self.facts))}
        if name not in bounds:
            raise InputError(f"unknown split {name!r}: use train, valid or test")
        first, last = bounds[name]
        return self.facts[first:last]


def newest_window(times: Facts, share: float) -> tuple[int, int]:
    """Bounds with the newest share of these distinct ticks as valid, all before them as train, and no test."""
    size = max(1, min(int(len(times) * share), len(times) - 1))
    return int(times[-size]), int(times[-1]) + 1


def up_to(dataset: Dataset, last: int, share: float) -> Dataset:
    """What was known at this tick: its facts and their entities, the newest share of the times as valid, no test.

    All relations stay: they are the words in which facts are told, not news.
    """
    if not 0 < share < 1:
        raise InputError(f"window is {share}: give a share between 0 and 1")
    facts = dataset.facts[dataset.facts[:, 3] <= last].copy()
    if not len(facts):
        wanted, begin, end = (readable(dataset.clock, int(time)) for time in (last, *dataset.times[[0, -1]]))
        raise InputError(
            f"data set {dataset.name}: nothing happened up to time {wanted}; it goes from {begin} to {end}"
        )
    met, ends = np.unique(facts[:, [0, 2]], return_inverse=True)
    facts[:, [0, 2]] = ends.reshape(-1, 2)
    entities = tuple(dataset.entities[row] for row in met)
    return replace(dataset, entities=entities, facts=facts, bounds=newest_window(np.unique(facts[:, 3]), share))


def without_later(dataset: Dataset, last: int) -> Dataset:
    """The same data set, its splits and its entities, without the facts after this tick."""
    facts = dataset.facts[: int(np.searchsorted(dataset.facts[:, 3], last, side="right"))]
    return replace(dataset, facts=facts, bounds=dataset.split_bounds)


def make_dataset(
    name: str, entities: Sequence[str], relations: Sequence[str], facts: Facts, granularity: str | None = None
) -> Dataset:
    """Order facts whose times are in the files' own unit and turn those times into ticks."""
    raw = np.unique(facts[:, 3])
    step = int(np.gcd.reduce(np.diff(raw))) if len(raw) > 1 else 1
    ordered = facts[np.argsort(facts[:, 3], kind="stable")]
    ordered[:, 3] //= step
    if granularity is None:
        granularity = _granularity(name, step)
    return Dataset(name, tuple(entities), tuple(relations), ordered, step, granularity)


def dataset_of_ticks(
    name: str,
    entities: Sequence[str],
    relations: Sequence[str],
    facts: Facts,
    calendar: Clock | None,
    granularity: str | None = None,
) -> Dataset:
    """Order facts whose times are ticks of this calendar, or of none."""
    ordered = facts[np.argsort(facts[:, 3], kind="stable")]
    if granularity is None:
        granularity = calendar.granularity if calendar else "tick"
    return Dataset(name, tuple(entities), tuple(relations), ordered, 1, granularity, calendar=calendar)


def _granularity(name: str, step: int) -> str:
    """What a tick is. The files hold bare numbers, so this rests on the benchmarks' habits."""
    lowered = name.lower()
    if step == 15 and "icews" not in lowered:
        return "15 minutes"
    if step == 24 or (step == 1 and "icews" in lowered):
        return "day"
    if step == 1 and any(one in lowered for one in ("yago", "wiki", "smallpedia")):
        return "year"
    return "tick"


def _calendar(name: str, granularity: str, first: int) -> Clock | None:
    """When tick 0 was. Again the benchmarks' habits: ICEWS carries its first year in its name, GDELT is of 2018."""
    year = re.match(r"icews[-_]?(\d\d)", name.lower())
    if year and granularity == "day":
        # The year's first day is tick 0 in some of the sets and tick 1 in others.
        return Clock(f"20{year[1]}-01-01" if first != 1 else f"20{int(year[1]) - 1:02d}-12-31", DAY)
    if "gdelt" in name.lower() and granularity == "15 minutes":
        return Clock("2018-01-01", 900)
    return None
