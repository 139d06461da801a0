"""What a shell completes beyond flags: only what is known without loading a model or asking a broker."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from adatkg_core.errors import AdatkgError
from adatkg_core.settings import shipped_configs


def dataset_names(incomplete: str) -> list[str]:
    """Shipped data sets, and folders."""
    from adatkg_core.datasets import shipped_names

    folders = (path for path in _paths(incomplete) if path.is_dir())
    return _beginning(incomplete, [*shipped_names(), *map(str, folders)])


def config_names(incomplete: str) -> list[str]:
    """Shipped configurations, folders, and TOML files."""
    files = (path for path in _paths(incomplete) if path.is_dir() or path.suffix == ".toml")
    return _beginning(incomplete, [*shipped_configs(), *map(str, files)])


def graph_names(incomplete: str) -> list[str]:
    """The graphs of the model store, where that is a folder."""
    from streams.settings import load_settings

    try:
        store = Path(load_settings(None, {}).models)
        found = [unquote(path.name) for path in store.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except (AdatkgError, OSError):
        return []
    return _beginning(incomplete, found)


def _paths(incomplete: str) -> Iterable[Path]:
    place = Path(incomplete)
    folder = place if incomplete.endswith("/") else place.parent
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
