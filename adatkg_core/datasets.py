"""Temporal knowledge graphs as arrays: loading, the 5:2:3 split, and the data set that the package ships."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adatkg_core.clock import DAY, Clock, clock_from_dict
from adatkg_core.errors import InputError
from adatkg_core.quadruples import Names, parse_names, read_quadruples

Facts = NDArray[np.int64]
Split = Literal["train", "valid", "test"]

ENTITY_FILE = "entity2id.txt"
RELATION_FILE = "relation2id.txt"
CAMEO_FILE = "relation2id_cameo_names.txt"
CLOCK_FILE = "clock.json"
LAYOUT = f"train.txt, valid.txt, test.txt, {ENTITY_FILE}, {RELATION_FILE}"

# GDELT writes who an actor is in codes around an "@", for example "EGYPT (EGY@ OPP REF)" or "IMAM (@ MIL)".
_ACTOR_CODES = re.compile(r"\s*\([^()@]*@[^()]*\)\s*$")


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
        raise InputError(
            f"data set {dataset.name}: nothing happened up to time {last}; its times are {dataset.times[0]} to "
            f"{dataset.times[-1]}"
        )
    met, ends = np.unique(facts[:, [0, 2]], return_inverse=True)
    facts[:, [0, 2]] = ends.reshape(-1, 2)
    entities = tuple(dataset.entities[row] for row in met)
    return replace(dataset, entities=entities, facts=facts, bounds=newest_window(np.unique(facts[:, 3]), share))


def text_of(name: str) -> str:
    """The text that a language model reads for a name: no underscores, no GDELT actor codes."""
    text = " ".join(name.replace("_", " ").split())
    return _ACTOR_CODES.sub("", text) or text


def shipped_names() -> tuple[str, ...]:
    """The data sets inside the package, by the names that `load_dataset` takes."""
    folders = resources.files("adatkg_core").joinpath("data").iterdir()
    return tuple(sorted(folder.name for folder in folders if folder.joinpath("facts.xz").is_file()))


def load_dataset(name_or_path: str) -> Dataset:
    """The shipped data set of this name, or the one in this folder; a folder may have any name with a `/`."""
    if name_or_path.lower() in shipped_names():
        from adatkg_core.packing import unpack  # here, because packing itself builds on this module

        return unpack(resources.files("adatkg_core").joinpath("data").joinpath(name_or_path.lower()))
    folder = Path(name_or_path).expanduser()
    if not folder.exists():
        raise InputError(
            f"no data set {name_or_path!r}: the shipped names are {', '.join(shipped_names())}; "
            f"otherwise give the path of a folder with {LAYOUT}"
        )
    if not folder.is_dir():
        raise InputError(f"{folder} is a file: give the folder that holds {LAYOUT}")
    return load_folder(folder)


def load_folder(folder: Path) -> Dataset:
    """Read a folder in the usual benchmark layout; `train.txt` alone also counts as a data set.

    A folder with a `clock.json` leaves nothing to be guessed: its names are literal and its times are ticks of
    that clock, or of no calendar where it holds `null`.
    """
    parts = [folder / "train.txt"]
    if (folder / "valid.txt").exists() or (folder / "test.txt").exists():
        parts += [folder / "valid.txt", folder / "test.txt"]
    missing = [p.name for p in (*parts, folder / ENTITY_FILE, folder / RELATION_FILE) if not p.is_file()]
    if missing:
        raise InputError(f"{folder} lacks {', '.join(missing)}: a data set folder holds {LAYOUT}")

    literal = (folder / CLOCK_FILE).is_file()
    entities = _names(folder / ENTITY_FILE, literal)
    relations = _names(folder / RELATION_FILE, literal)
    cameo = folder / CAMEO_FILE
    if cameo.is_file():
        worded = _names(cameo, literal)
        if len(worded) != len(relations):
            raise InputError(
                f"{cameo} names {len(worded)} relations but {RELATION_FILE} has {len(relations)}: "
                "make them agree or remove the first"
            )
        relations = worded
    facts = np.concatenate([read_quadruples(part, len(entities), len(relations)) for part in parts])
    if not len(facts):
        raise InputError(f"{folder} has no facts: train.txt must hold at least one quadruple")
    name = folder.resolve().name
    if literal:
        return dataset_of_ticks(name, entities, relations, facts, _read_clock(folder / CLOCK_FILE))
    return make_dataset(name, entities, relations, facts)


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
    name: str, entities: Sequence[str], relations: Sequence[str], facts: Facts, calendar: Clock | None
) -> Dataset:
    """Order facts whose times are ticks of this calendar, or of none."""
    ordered = facts[np.argsort(facts[:, 3], kind="stable")]
    granularity = calendar.granularity if calendar else "tick"
    return Dataset(name, tuple(entities), tuple(relations), ordered, 1, granularity, calendar=calendar)


def _read_clock(path: Path) -> Clock | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}): write an ISO `origin` and whole `seconds`"
        ) from error
    return clock_from_dict(values, str(path))


def _names(path: Path, literal: bool) -> Names:
    """Names by id; underscores become spaces in a file that uses them in place of spaces, unless it is literal."""
    names = parse_names(path)
    # Only then: it keeps the names distinct, and a file with spaces means its underscores.
    if not literal and not any(" " in name for name in names):
        names = tuple(name.replace("_", " ") for name in names)
    return names


def _granularity(name: str, step: int) -> str:
    """What a tick is. The files hold bare numbers, so this rests on the benchmarks' habits."""
    lowered = name.lower()
    if step == 15 and "icews" not in lowered:
        return "15 minutes"
    if step == 24 or (step == 1 and "icews" in lowered):
        return "day"
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
