"""The one configuration object: a shipped name or a TOML file, then overrides."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_type_hints

from adatkg_core.constants import SLICES
from adatkg_core.errors import InputError
from adatkg_core.settings.toml_files import (
    MODEL_SECTIONS,
    config_files,
    parse_value,
    read_file,
    read_section,
    shipped_configs,
)

DEFAULT = "live"
Protocol = Literal["streaming", "snapshot"]
Timing = Literal["before", "after"]


@dataclass(frozen=True)
class ModelConfig:
    """The paper's model; every cell of its ablation tables is one setting of these."""

    enabled: bool = True
    dim: int = 128
    layers: int = 2
    heads: int = 8
    dropout: float = 0.1
    text_dropout: float = 0.0
    encoder: str = "minilm"
    entity: Literal["text", "learned"] = "text"
    chain_length: int = 10
    chain_window: int = 14
    chain_capacity: int = 64
    prior: bool = True
    codes: int = 100
    prototype_decay: float = 0.99
    memory: Literal["none", "ema", "gru", "attention"] = "ema"
    decay: Literal["shared", "entity", "dimension"] = "shared"
    ring: int = 16
    gate: Literal["adaptive", "constant"] = "adaptive"
    timing: Timing = "before"
    filters: int = 50
    kernel: int = 3


@dataclass(frozen=True)
class RecallConfig:
    """What recurred, and what recurred for similar names.

    `fast` and `slow` are the times, in ticks, in which a count falls to 1/e.
    """

    enabled: bool = True
    fast: float = 7.0
    slow: float = 60.0
    pair_slots: int = 512
    relation_slots: int = 2048
    neighbours: int = 30
    cold_below: int = 20
    heads: int = 4
    hidden: int = 48
    relation_dim: int = 16
    name_dim: int = 96
    text_dropout: float = 0.2


@dataclass(frozen=True)
class TrainConfig:
    """How the parameters are learned and which epoch is kept.

    The first `burn_in` of the training times is only remembered, not learned from: there, everybody is a newcomer.
    Of the queries whose subject has fewer than `strangers_below` interactions, a share `strangers` is asked as if
    the subject had never been seen, so that there is enough to learn from about entities that really are new.
    `alone_weight` is the weight of the paper's model's own loss beside the loss of model and recall together.
    """

    protocol: Protocol = "streaming"
    epochs: int = 10
    patience: int = 3
    lr: float = 1e-3
    recall_lr: float = 3e-3
    weight_decay: float = 1e-5
    clip: float = 1.0
    vq_weight: float = 0.1
    alone_weight: float = 0.5
    batch: int = 512
    burn_in: float = 0.1
    strangers: float = 0.5
    strangers_below: int = 50
    select: tuple[str, ...] = ("all",)
    valid_every: int = 1
    seed: int = 1


@dataclass(frozen=True)
class Config:
    """Everything that shapes a bundle."""

    model: ModelConfig = field(default_factory=ModelConfig)
    recall: RecallConfig = field(default_factory=RecallConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as written into a bundle."""
        return dataclasses.asdict(self)


def config_file(given: str | None) -> Path | None:
    """The file that `--config` names, or None where it names a shipped configuration or nothing."""
    if given is None or given in shipped_configs():
        return None
    path = Path(given)
    if not path.is_file():
        raise InputError(f"config {given}: no such file; give a TOML file or one of: {', '.join(shipped_configs())}")
    return path


def choose_config(given: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """What is to be loaded: what `--config` names, else the file of ADATKG_CONFIG, else `live`. A file without a
    section about models is passed over.
    """
    path = config_file(given)
    if given is not None and path is None:
        return given
    described = [file for file in config_files(path, environ) if not read_file(file).keys().isdisjoint(MODEL_SECTIONS)]
    return str(described[-1]) if described else DEFAULT


def load_config(name_or_path: str, overrides: Mapping[str, Any] | None = None) -> Config:
    """A shipped configuration or a TOML file; overrides are dotted keys such as `train.epochs`."""
    if (path := config_file(name_or_path)) is not None:
        sections = read_file(path)
    else:
        shipped = resources.files("adatkg_core.settings") / "shipped" / f"{name_or_path}.toml"
        sections = tomllib.loads(shipped.read_text("utf-8"))
    values = {name: section for name, section in sections.items() if name in MODEL_SECTIONS}
    for dotted, value in (overrides or {}).items():
        section, _, key = dotted.partition(".")
        values.setdefault(section, {})[key] = value
    return config_from_dict(values, where=f"config {name_or_path}")


def config_from_dict(values: Mapping[str, Any], where: str) -> Config:
    """Checked: an unknown section or key, or a value of the wrong type, is an error that names it."""
    if not isinstance(values, Mapping):
        raise InputError(f"{where}: must be a table of sections")
    sections = {f.name: f.default_factory for f in dataclasses.fields(Config)}
    parts: dict[str, Any] = {}
    for name, section in values.items():
        if name not in sections:
            raise InputError(f"{where}: unknown section [{name}]; known: {', '.join(sections)}")
        if not isinstance(section, Mapping):
            raise InputError(f"{where}: [{name}] must be a table of settings")
        parts[name] = read_section(sections[name], section, f"{where}: [{name}]")  # type: ignore[arg-type]
    config = Config(**parts)
    _check_ranges(config, where)
    return config


def _check_ranges(config: Config, where: str) -> None:
    model, recall, train = config.model, config.recall, config.train
    rules = {
        "model.dim must be a positive multiple of 4 and of model.heads": (
            model.dim > 0 and model.heads > 0 and model.dim % 4 == 0 and model.dim % model.heads == 0
        ),
        "model.dropout, model.text_dropout and recall.text_dropout must be in [0, 1)": all(
            0 <= share < 1 for share in (model.dropout, model.text_dropout, recall.text_dropout)
        ),
        "model.layers, chain_length, chain_window, codes, ring, filters must be at least 1": (
            min(model.layers, model.chain_length, model.chain_window, model.codes, model.ring, model.filters) >= 1
        ),
        "model.kernel must be odd and positive": model.kernel > 0 and model.kernel % 2 == 1,
        "model.chain_capacity must be at least model.chain_length": model.chain_capacity >= model.chain_length,
        "model.prototype_decay must be in (0, 1]": 0 < model.prototype_decay <= 1,
        "recall.fast and recall.slow must be positive": recall.fast > 0 and recall.slow > 0,
        "recall.pair_slots and recall.relation_slots must be multiples of 16": (
            recall.pair_slots >= 16
            and recall.relation_slots >= 16
            and recall.pair_slots % 16 == recall.relation_slots % 16 == 0
        ),
        "recall.neighbours, heads, hidden, relation_dim and name_dim must be at least 1": (
            min(recall.neighbours, recall.heads, recall.hidden, recall.relation_dim, recall.name_dim) >= 1
        ),
        "train.epochs and valid_every must be at least 1": min(train.epochs, train.valid_every) >= 1,
        "train.batch must be at least 2, for there are no statistics of one": train.batch >= 2,
        "train.lr, recall_lr and clip must be positive": all(x > 0 for x in (train.lr, train.recall_lr, train.clip)),
        "train.patience, weight_decay and vq_weight must not be negative": all(
            x >= 0 for x in (train.patience, train.weight_decay, train.vq_weight)
        ),
        f"train.select must name one or more of {', '.join(SLICES)}": (
            len(train.select) > 0 and set(train.select) <= set(SLICES)
        ),
        "train.burn_in must be in [0, 1) and train.strangers in [0, 1]": (
            0 <= train.burn_in < 1 and 0 <= train.strangers <= 1
        ),
        "train.alone_weight, train.strangers_below and recall.cold_below must not be negative": (
            min(train.alone_weight, train.strangers_below, recall.cold_below) >= 0
        ),
        "model.enabled = false needs recall.enabled": model.enabled or recall.enabled,
    }
    for rule, holds in rules.items():
        if not holds:
            raise InputError(f"{where}: {rule}")


def environment_overrides(environ: Mapping[str, str]) -> dict[str, Any]:
    """Settings from variables such as `ADATKG_TRAIN_EPOCHS=3`; other ADATKG_ variables are left alone."""
    found: dict[str, Any] = {}
    for section in dataclasses.fields(Config):
        hints = get_type_hints(section.default_factory)
        for key in hints:
            variable = f"ADATKG_{section.name}_{key}".upper()
            if variable in environ:
                found[f"{section.name}.{key}"] = parse_value(environ[variable])
    return found
