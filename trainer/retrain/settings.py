"""How rounds of retraining are decided and watched: the [retrain] sections of TOML files, then ADATKG_RETRAIN_*
variables, then flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adatkg_core.errors import InputError
from adatkg_core.settings import load_section, setting
from trainer.retrain.archive import WINDOW


@dataclass(frozen=True)
class RetrainSettings:
    """What seldom changes from one trainer to the next."""

    window: float = setting(
        WINDOW,
        "Newest share of the times, on which bundles are compared; also what `train --to` holds back.",
    )
    margin: float = setting(0.0, "By how much the new bundle's MRR must be better to be promoted.")
    slice: str = setting("all", "Which queries decide, as in `adatkg evaluate`.")
    keep: int = setting(
        5, "Bundles that stay in the store; those that were ever present always do, because a log may name them."
    )
    scores: str = setting(
        "http://127.0.0.1:6066/scores",
        "The worker's page with the MRR that `--every drop-0.03` watches.",
    )
    metrics_port: int = setting(0, "Port of the trainer's metrics for Prometheus; 0 is none.")
    metrics_host: str = setting("127.0.0.1", "Address of that port.")

    def __post_init__(self) -> None:
        # The other rules are those of a plan, whoever makes it.
        if not 0 <= self.metrics_port <= 65_535:
            raise InputError(f"retrain settings: metrics_port is {self.metrics_port}: it must be from 0 to 65535")


def load_retrain_settings(
    path: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> RetrainSettings:
    """Settings from the [retrain] sections, the environment and flags; a flag that is None was not given."""
    settings: RetrainSettings = load_section(RetrainSettings, "retrain", path, flags, environ)
    return settings
