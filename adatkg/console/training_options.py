"""Options of the commands that train, and what becomes of them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adatkg.console.completion import config_names

if TYPE_CHECKING:
    from pathlib import Path

    from adatkg_core.settings import Config
    from trainer.retrain import RetrainSettings

ModelConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        help="A shipped configuration or a TOML file. [default: live]",
        metavar="NAME|FILE",
        autocompletion=config_names,
    ),
]
EpochsOption = Annotated[int | None, typer.Option(help="At most so many epochs.")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of everything random.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Any setting, as section.key=value; may be repeated.")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


def load_training(
    config: str | None, epochs: int | None, seed: int | None, settings: list[str] | None
) -> tuple[Config, dict[str, Any], Path | None]:
    """The configuration of the model, what `--set` says about retraining, and the file that `--config` names.

    An encoder from a hub is pinned to what the hub has now, so that the bundle names the weights it was trained with.
    """
    from adatkg_core.settings import choose_config, config_file, environment_overrides, load_config
    from adatkg_core.text import pinned_encoder

    given = _parse_settings(settings or [])
    retrain = {key.removeprefix("retrain."): given.pop(key) for key in list(given) if key.startswith("retrain.")}
    flags = {"train.epochs": epochs, "train.seed": seed}
    overrides = environment_overrides(os.environ) | given
    overrides |= {key: value for key, value in flags.items() if value is not None}
    loaded = load_config(choose_config(config), overrides)
    pinned = replace(loaded.model, encoder=pinned_encoder(loaded.model.encoder))
    return replace(loaded, model=pinned), retrain, config_file(config)


def load_retraining(file: Path | None, given: dict[str, Any], **flags: Any) -> RetrainSettings:
    """The settings of retraining: a flag that is not None goes before `--set`, which goes before the file."""
    from trainer.retrain import load_retrain_settings

    return load_retrain_settings(file, given | {key: value for key, value in flags.items() if value is not None})


def _parse_settings(settings: list[str]) -> dict[str, Any]:
    from adatkg_core.errors import InputError
    from adatkg_core.settings import parse_value

    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or "." not in key:
            raise InputError(f"--set {setting}: write section.key=value, for example train.lr=0.001")
        found[key.strip()] = parse_value(value.strip())
    return found
