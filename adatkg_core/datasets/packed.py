"""The compact form in which the package ships a data set: names and facts, xz-compressed.

`python -m adatkg_core.datasets.packed FOLDER OUT` makes it from a folder in the usual benchmark layout.
"""

from __future__ import annotations

import json
import lzma
import sys
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from adatkg_core.clock import clock_from_dict
from adatkg_core.datasets.dataset import Dataset
from adatkg_core.datasets.folder import load_folder
from adatkg_core.errors import InputError

_PRESET = 9 | lzma.PRESET_EXTREME


def pack(dataset: Dataset, folder: Path) -> None:
    """Write `meta.json`, `names.xz` and `facts.xz`; ids must fit into 16 bits."""
    if max(dataset.n_entities, dataset.n_relations) > 1 << 16:
        raise InputError(f"{dataset.name} is too large to pack: at most {1 << 16} entities and relations")
    folder.mkdir(parents=True, exist_ok=True)
    ticks, counts = np.unique(dataset.facts[:, 3], return_counts=True)
    meta = {
        "name": dataset.name,
        "entities": dataset.n_entities,
        "relations": dataset.n_relations,
        "step": dataset.step,
        "granularity": dataset.granularity,
        "clock": dataset.calendar.as_dict() if dataset.calendar else None,
        "ticks": ticks.tolist(),
        "facts_per_tick": counts.tolist(),
    }
    (folder / "meta.json").write_text(json.dumps(meta) + "\n", encoding="utf-8")
    names = "\n".join((*dataset.entities, *dataset.relations)).encode()
    (folder / "names.xz").write_bytes(lzma.compress(names, preset=_PRESET))
    # Facts are in order of time, so the counts in meta.json stand for the fourth column.
    triples = dataset.facts[:, :3].astype("<u2").tobytes()
    (folder / "facts.xz").write_bytes(lzma.compress(triples, preset=_PRESET))


def unpack(folder: Traversable) -> Dataset:
    """Read what `pack` wrote; xz checks the integrity."""
    try:
        meta = json.loads(folder.joinpath("meta.json").read_text(encoding="utf-8"))
        names = lzma.decompress(folder.joinpath("names.xz").read_bytes()).decode().split("\n")
        triples = np.frombuffer(lzma.decompress(folder.joinpath("facts.xz").read_bytes()), "<u2").reshape(-1, 3)
        ticks = np.repeat(np.array(meta["ticks"], np.int64), meta["facts_per_tick"])
        facts = np.column_stack([triples.astype(np.int64), ticks])
    except (OSError, EOFError, ValueError, KeyError, lzma.LZMAError) as error:
        raise InputError(f"the packed data set {folder} is damaged ({error}): install the package again") from error
    n = meta["entities"]
    return Dataset(
        meta["name"],
        tuple(names[:n]),
        tuple(names[n:]),
        facts,
        meta["step"],
        meta["granularity"],
        calendar=clock_from_dict(meta.get("clock"), str(folder)),
    )


def _main() -> None:
    source, target = map(Path, sys.argv[1:])
    pack(replace(load_folder(source), name=target.name), target)


if __name__ == "__main__":
    _main()
