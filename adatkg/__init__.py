"""The product's face: the public Python API, and behind `adatkg.main` the command of the same name.

Names are imported when first used, so that a command or program pays only for what it calls.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adatkg_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from adatkg_core import (
        AdatkgError,
        Answer,
        Bundle,
        Config,
        Dataset,
        Engine,
        Fact,
        InputError,
        Query,
        Ranking,
        Refusal,
        Snapshot,
        load_bundle,
        load_config,
        load_dataset,
        load_encoder,
        save_bundle,
    )
    from streams import Broker, Client, Connection, Prediction, SyncClient, Topics
    from trainer import Run, train

__version__ = "0.2.0"

# Before anything imports torch: with OpenMP's busy waiting, two threads on two cores run several times slower
# as soon as another process (the broker, an event loop) wants one of them.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_HOME = {
    "adatkg_core": (
        "AdatkgError",
        "Answer",
        "Bundle",
        "Config",
        "Dataset",
        "Engine",
        "Fact",
        "InputError",
        "Ranking",
        "Query",
        "Refusal",
        "Snapshot",
        "load_bundle",
        "load_config",
        "load_dataset",
        "load_encoder",
        "save_bundle",
    ),
    "streams": ("Broker", "Client", "Connection", "Prediction", "SyncClient", "Topics"),
    "trainer": ("Run", "train"),
}

__all__ = [
    "AdatkgError",
    "Answer",
    "Broker",
    "Bundle",
    "Client",
    "Config",
    "Connection",
    "Dataset",
    "Engine",
    "Fact",
    "InputError",
    "Prediction",
    "Query",
    "Ranking",
    "Refusal",
    "Run",
    "Snapshot",
    "SyncClient",
    "Topics",
    "__version__",
    "load_bundle",
    "load_config",
    "load_dataset",
    "load_encoder",
    "save_bundle",
    "train",
]

__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
