"""The method: events in, ranked predictions out. No Kafka, no Faust.

The public names below are imported when first used, so that a command which needs none of them starts at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adatkg_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from adatkg_core.datasets import Dataset, load_dataset
    from adatkg_core.engine import Engine, Observed, Snapshot
    from adatkg_core.errors import AdatkgError, InputError
    from adatkg_core.events import Answer, Fact, Query, Ranking, Refusal
    from adatkg_core.settings import Config, load_config
    from adatkg_core.storage import Bundle, load_bundle, save_bundle
    from adatkg_core.text import TextEncoder, load_encoder

_HOME = {
    "adatkg_core.storage": ("Bundle", "load_bundle", "save_bundle"),
    "adatkg_core.settings": ("Config", "load_config"),
    "adatkg_core.datasets": ("Dataset", "load_dataset"),
    "adatkg_core.text": ("TextEncoder", "load_encoder"),
    "adatkg_core.engine": ("Engine", "Observed", "Snapshot"),
    "adatkg_core.errors": ("AdatkgError", "InputError"),
    "adatkg_core.events": ("Answer", "Fact", "Ranking", "Query", "Refusal"),
}

__all__ = [
    "AdatkgError",
    "Answer",
    "Bundle",
    "Config",
    "Dataset",
    "Engine",
    "Fact",
    "InputError",
    "Observed",
    "Query",
    "Ranking",
    "Refusal",
    "Snapshot",
    "TextEncoder",
    "load_bundle",
    "load_config",
    "load_dataset",
    "load_encoder",
    "save_bundle",
]

__getattr__ = lazy_names(__name__, _HOME)
