"""Where data sets come from: those that the package ships, and folders."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from adatkg_core.datasets.dataset import Dataset
from adatkg_core.datasets.folder import load_folder
from adatkg_core.datasets.layouts import USUAL
from adatkg_core.datasets.packed import unpack
from adatkg_core.errors import InputError


def shipped_names() -> tuple[str, ...]:
    """The data sets inside the package, by the names that `load_dataset` takes."""
    folders = resources.files("adatkg_core.datasets").joinpath("shipped").iterdir()
    return tuple(sorted(folder.name for folder in folders if folder.joinpath("facts.xz").is_file()))


def load_dataset(name_or_path: str) -> Dataset:
    """The shipped data set of this name, or the one in this folder; a folder may have any name with a `/`."""
    if name_or_path.lower() in shipped_names():
        return unpack(resources.files("adatkg_core.datasets").joinpath("shipped").joinpath(name_or_path.lower()))
    folder = Path(name_or_path).expanduser()
    if not folder.exists():
        raise InputError(
            f"no data set {name_or_path!r}: the shipped names are {', '.join(shipped_names())}; "
            f"otherwise give the path of a folder with {USUAL}"
        )
    if not folder.is_dir():
        raise InputError(f"{folder} is a file: give the folder that holds {USUAL}")
    return load_folder(folder)
