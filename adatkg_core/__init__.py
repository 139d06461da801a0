"""The method: events in, ranked predictions out. No Kafka, no Faust.

The public names below are imported when first used, so that a command which needs none of them starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adatkg_core.bundle import Bundle, load_bundle, save_bundle
    from adatkg_core.config import Config, load_config
    from adatkg_core.dataset_load import load_dataset
    from adatkg_core.datasets import Dataset
    from adatkg_core.encoder import TextEncoder, load_encoder
    from adatkg_core.engine import Engine, Observed, Snapshot
    from adatkg_core.errors import AdatkgError, InputError
    from adatkg_core.events import Answer, Fact, Prediction, Query, Refusal

_HOME = {
    "bundle": ("Bundle", "load_bundle", "save_bundle"),
    "config": ("Config", "load_config"),
    "datasets": ("Dataset", "load_dataset"),
    "encoder": ("TextEncoder", "load_encoder"),
    "engine": ("Engine", "Observed", "Snapshot"),
    "errors": ("AdatkgError", "InputError"),
    "events": ("Answer", "Fact", "Prediction", "Query", "Refusal"),
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
    "Prediction",
    "Query",
    "Refusal",
    "Snapshot",
    "TextEncoder",
    "load_bundle",
    "load_config",
    "load_dataset",
    "load_encoder",
    "save_bundle",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"adatkg_core.{module}"), name)
    raise AttributeError(f"module 'adatkg_core' has no attribute {name!r}")
