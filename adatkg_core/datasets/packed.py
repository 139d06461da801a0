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

_LONGEST_NAMES = 64 << 20  # bytes of all names; there are at most 131,072
_MOST = 1 << 28  # facts
_MEMORY = 256 << 20  # bytes that unpacking may take; the strongest preset takes 65 MiB
_DAMAGE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
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
        if not folder.joinpath("meta.json").is_file():
            raise ValueError("meta.json is no file")
        meta = json.loads(folder.joinpath("meta.json").read_text(encoding="utf-8"))
        counts = np.array(meta["facts_per_tick"], np.int64)
        n_facts, (n, m) = int(counts.sum()), (int(meta["entities"]), int(meta["relations"]))
        if counts.ndim != 1 or not len(counts) or counts.min() < 1 or not 0 < n_facts < _MOST or min(n, m) < 1:
            raise ValueError("its counts are no counts of facts and names")
        names = _unpacked(folder, "names.xz", _LONGEST_NAMES).decode().split("\n")
        triples = np.frombuffer(_unpacked(folder, "facts.xz", 6 * n_facts), "<u2").reshape(n_facts, 3)
        ticks = np.array(meta["ticks"], np.int64)
        facts = np.column_stack([triples.astype(np.int64), np.repeat(ticks, counts)])
        if (np.diff(ticks) <= 0).any() or len(names) != n + m or (triples >= (n, m, n)).any():
            raise ValueError("its facts and names do not fit together")
        name, step, granularity = str(meta["name"]), int(meta["step"]), str(meta["granularity"])
        calendar = clock_from_dict(meta.get("clock"), str(folder))
    except (*_DAMAGE, lzma.LZMAError) as error:
        raise InputError(f"the packed data set {folder} is damaged ({error}): install the package again") from error
    return Dataset(name, tuple(names[:n]), tuple(names[n:]), facts, step, granularity, calendar=calendar)


def _unpacked(folder: Traversable, name: str, most: int) -> bytes:
    """What an xz file holds, which must not be more than so many bytes; few can be packed into next to none."""
    path = folder.joinpath(name)
    if not path.is_file():
        raise ValueError(f"{name} is no file")
    unpacker = lzma.LZMADecompressor(memlimit=_MEMORY)
    data = unpacker.decompress(path.read_bytes(), max_length=most + 1)
    if len(data) > most or not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"{name} does not end where it should")
    return data


def _main() -> None:
    source, target = map(Path, sys.argv[1:])
    pack(replace(load_folder(source), name=target.name), target)


if __name__ == "__main__":
    _main()
