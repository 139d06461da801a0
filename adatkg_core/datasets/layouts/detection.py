"""Which of the layouts that benchmarks are published in a folder has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from adatkg_core.datasets.layouts.edge_lists import edge_list, read_edge_list
from adatkg_core.datasets.layouts.id_files import read_id_files, read_ticks
from adatkg_core.datasets.layouts.name_files import read_name_files
from adatkg_core.datasets.layouts.parts import CLOCK_FILE, ENTITY_FILE, RELATION_FILE, id_file, part_files
from adatkg_core.datasets.layouts.reading import Reading
from adatkg_core.datasets.layouts.text_files import first_line
from adatkg_core.errors import InputError

USUAL = f"train.txt, valid.txt, test.txt, {ENTITY_FILE}, {RELATION_FILE}"
_SHOWN = 8  # names of files in a refusal


@dataclass(frozen=True)
class Layout:
    """How a folder is laid out, in words, and who reads it."""

    name: str
    read: Callable[[Path], Reading]


TICKS = Layout("ids with a clock, as adatkg import writes them", read_ticks)
IDS = Layout("ids and files of names (RE-Net, RE-GCN, CyGNet, xERTE, TiRGN)", read_id_files)
NAMES_AND_IDS = Layout("names and dates with ids as JSON (TLogic)", read_name_files)
NAMES = Layout("names and dates (TNTComplEx, DE-SimplE)", read_name_files)
EDGES = Layout("edge list (TGB 2.0)", read_edge_list)


def detect(folder: Path) -> Layout:
    """The layout of a folder, told by its files' names and the first line of train; refuses what is none."""
    if edge_list(folder) is not None:
        return EDGES
    parts = part_files(folder)
    id_files = [id_file(folder, stem) for stem in ("entity2id", "relation2id")]
    train = parts[0]
    by_name = train.is_file() and _holds_names(train)
    missing = [path.name for path in parts if not path.is_file()]
    if not by_name:
        wanted = zip(id_files, (ENTITY_FILE, RELATION_FILE), strict=True)
        missing += [name for path, name in wanted if path is None]
    if missing:
        raise InputError(_refusal(folder, missing, train, by_name))
    if by_name:
        return NAMES_AND_IDS if any(id_files) else NAMES
    return TICKS if (folder / CLOCK_FILE).is_file() else IDS


def _holds_names(path: Path) -> bool:
    fields = first_line(path).split("\t")
    return len(fields) > 3 and not all(field.strip().lstrip("-").isdigit() for field in fields[:3])


def _refusal(folder: Path, missing: list[str], train: Path, by_name: bool) -> str:
    """What was found, what was expected, what to change."""
    found = sorted(path.name for path in folder.iterdir())
    inner = next((path for path in sorted(folder.iterdir()) if path.is_dir() and part_files(path)[0].is_file()), None)
    if not train.is_file() and inner is not None:
        return f"{folder} holds no data set, but {inner.name} in it does: give {inner}"
    lacks = f"{folder} lacks {', '.join(missing)}"
    if train.is_file() and not by_name and set(missing) == {ENTITY_FILE, RELATION_FILE}:
        return (
            f"{lacks}: {train.name} holds ids, and what they stand for is not told; add both files, a line of "
            f"name<TAB>id each, or write names and dates into {train.name}"
        )
    shown = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "") or "nothing"
    return (
        f"{lacks}: a data set folder holds {USUAL}; or train.txt, valid.txt, test.txt with names and dates, "
        f"separated by tabs; or a tkgl-*_edgelist.csv; found {shown}. For a CSV of events use adatkg import"
    )
