"""How the files of a data set folder are called."""

from __future__ import annotations

from pathlib import Path

ENTITY_FILE = "entity2id.txt"
RELATION_FILE = "relation2id.txt"
CAMEO_FILE = "relation2id_cameo_names.txt"
CLOCK_FILE = "clock.json"

_ENDINGS = (".txt", "", ".tsv")  # TNTComplEx's files have none
_VALID = ("valid", "val", "dev")


def part_files(folder: Path) -> list[Path]:
    """The files of train, and of valid and test where one of them is there; some may be missing."""
    ending = next((one for one in _ENDINGS if (folder / f"train{one}").is_file()), _ENDINGS[0])
    valid = next((stem for stem in _VALID if (folder / f"{stem}{ending}").is_file()), _VALID[0])
    train, *others = (folder / f"{stem}{ending}" for stem in ("train", valid, "test"))
    return [train, *others] if any(path.is_file() for path in others) else [train]


def id_file(folder: Path, stem: str) -> Path | None:
    """The file of names and ids, as lines or as JSON."""
    found = (folder / f"{stem}{ending}" for ending in (".txt", ".json"))
    return next((path for path in found if path.is_file()), None)
