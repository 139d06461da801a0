"""How rounds of retraining are decided and watched: the [retrain] sections of TOML files, then ADATKG_RETRAIN_*
variables, then flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from adatkg_core.errors import InputError
from adatkg_core.settings import parse_value, read_section, settings_of
from trainer.retrain.archive import WINDOW


@dataclass(frozen=True)
class RetrainSettings:
    """What seldom changes from one trainer to the next."""

    window: float = WINDOW  # share of the distinct times on which bundles are compared
    margin: float = 0.0  # by which a candidate's MRR must be better
    slice: str = "all"
    keep: int = 5  # bundles in the store
    scores: str = "http://127.0.0.1:6066/scores"
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        # The other rules are those of a plan, whoever makes it.
        if not 0 <= self.metrics_port <= 65_535:
            raise InputError(f"retrain settings: metrics_port is {self.metrics_port}: it must be from 0 to 65535")


def load_retrain_settings(
    path: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> RetrainSettings:
    """Settings from the [retrain] sections, the environment and flags; a flag that is None was not given."""
    values = settings_of(RetrainSettings, "retrain", path, environ)
    for one in fields(RetrainSettings):
        variable = f"ADATKG_RETRAIN_{one.name}".upper()
        if variable in environ:
            values[one.name] = parse_value(environ[variable])
    values |= {name: value for name, value in flags.items() if value is not None}
    settings: RetrainSettings = read_section(RetrainSettings, values, "retrain settings:")
    return settings
