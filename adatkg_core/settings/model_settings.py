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

from adatkg_core.constants import SLICES, NameKind
from adatkg_core.errors import InputError
from adatkg_core.settings.setting import setting
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

    enabled: bool = setting(True, "The paper's model takes part; without it the recall head answers alone.")
    dim: int = setting(128, "Length of an entity's vector; a multiple of 4 and of `heads`.")
    layers: int = setting(2, "Layers of the Transformer that reads an entity's chain of latest facts.")
    heads: int = setting(8, "Its attention heads.")
    dropout: float = setting(0.1, "Dropout in chain encoder and decoder while training.")
    text_dropout: float = setting(
        0.0,
        "Dropout on the vectors of names while training, against learning busy names by heart.",
    )
    encoder: str = setting(
        "minilm",
        "What reads names: `minilm`, which comes with the package; `hash:64`, hashed words and letters, no "
        "model; or the name or folder of a transformers model with `:mean` or `:cls`. A name on a hub may be pinned as "
        "`name@revision:mean`; training writes the revision that it found into the bundle.",
    )
    max_entities: int = setting(
        1_000_000,
        "Entities that a graph may have, so that ever new names cannot fill the memory; a fact with a name beyond that "
        "is set aside. 0: any number.",
    )
    names: Literal["auto", NameKind] = setting(
        "auto",
        "How names tell of groups: `brackets` (Citizen (Kenya)), `comma` (Paris, France), `colon` (sales:ann), `slash` "
        "(org/repo), `address` (ann@company.com, db1.company.com) or `none`; `auto` finds out when training.",
    )
    entity: Literal["text", "learned"] = setting(
        "text",
        "An entity begins with its name's vector (`text`) or with a learned one (`learned`).",
    )
    chain_length: int = setting(10, "Facts in a chain at most; the nearest by relation are chosen when there are more.")
    chain_window: int = setting(14, "Ticks that a chain reaches back.")
    chain_capacity: int = setting(64, "Latest facts of an entity that are kept to choose from.")
    prior: bool = setting(
        True,
        "The cluster's prototype takes part; without it an entity has only its name and its memory.",
    )
    codes: int = setting(100, "Clusters of names.")
    prototype_decay: float = setting(0.99, "How much of a prototype stays at each update.")
    memory: Literal["none", "ema", "gru", "attention"] = setting(
        "ema",
        "How memory is updated: `ema`, `gru`, `attention` over the latest signals, or `none`.",
    )
    decay: Literal["shared", "entity", "dimension"] = setting(
        "shared",
        "Of the moving average: one for all (`shared`), for each `entity`, or for each `dimension`.",
    )
    ring: int = setting(16, 'Signals kept for `memory = "attention"`.')
    gate: Literal["adaptive", "constant"] = setting(
        "adaptive",
        "How memory is mixed in: `adaptive`, or always half and half (`constant`).",
    )
    timing: Timing = setting(
        "before",
        "In the snapshot protocol: memory takes the queries' signals in `before` or `after` scoring.",
    )
    filters: int = setting(50, "Filters of the decoder's convolution.")
    kernel: int = setting(3, "Width of that convolution; odd.")
    scaled: bool = setting(
        True,
        "Names, prototypes, relations and memories are brought to one scale, and scores are cosines with a learned "
        "sharpness.",
    )
    token: Literal["sum", "quarters"] = setting(
        "sum",
        "A fact in a chain: the `sum` of relation, partner and age in full width, or a quarter for each of entity, "
        "relation, partner and age (`quarters`).",
    )
    decoder: Literal["linear", "rectified"] = setting(
        "linear",
        "How the decoder ends: in its `linear` layer, or with ConvTransE's batch norm and relu (`rectified`).",
    )


@dataclass(frozen=True)
class RecallConfig:
    """What recurred, and what recurred for similar names.

    `fast` and `slow` are the times, in ticks, in which a count falls to 1/e.
    """

    enabled: bool = setting(True, "The recall head takes part.")
    fast: float = setting(7.0, "Ticks in which a quick count falls to 1/e.")
    slow: float = setting(60.0, "Ticks in which a slow count falls to 1/e.")
    pair_slots: int = setting(512, "Pairs (relation, other) kept for each entity; a multiple of 16.")
    relation_slots: int = setting(2048, "Entities kept for each relation; a multiple of 16.")
    evidence: bool = setting(
        True,
        "Wider evidence takes part: two hops, groups in names, windows, what follows what.",
    )
    partner_slots: int = setting(256, "Partners kept for each entity, under whatever relation; a multiple of 16.")
    fact_slots: int = setting(4096, "Pairs kept for each relation; a multiple of 16.")
    kin_slots: int = setting(1024, "Pairs (relation, other) kept for each group and role of names; a multiple of 16.")
    hops: int = setting(32, "Partners of a subject from which a second step is taken.")
    proposals: int = setting(96, "Candidates without a past with the subject that the wider evidence may propose.")
    neighbours: int = setting(30, "Entities of the nearest names that speak for a newcomer.")
    cold_below: int = setting(20, "Interactions below which a subject counts as a newcomer.")
    heads: int = setting(4, "Learned ways in which relations resemble each other.")
    hidden: int = setting(48, "Width of the layers that weigh counts and ages.")
    relation_dim: int = setting(16, "Length of a relation's vector.")
    name_dim: int = setting(96, "Length of a name's vector in the part that says how well two names go together.")
    text_dropout: float = setting(0.2, "Dropout on names there.")


@dataclass(frozen=True)
class TrainConfig:
    """How the parameters are learned and which epoch is kept.

    The first `burn_in` of the training times is only remembered, not learned from: there, everybody is a newcomer.
    Of the queries whose subject has fewer than `strangers_below` interactions, a share `strangers` is asked as if
    the subject had never been seen, so that there is enough to learn from about entities that really are new.
    Where model and recall both take part, they learn apart up to `combine_from` of the times, and how far the model is
    trusted is learned after it, on facts that the model has not learned by heart. `alone_weight` is the weight of the
    model's own loss where both learn together instead.
    """

    protocol: Protocol = setting("streaming", "By which protocol the epochs are compared.")
    epochs: int = setting(10, "Passes over the facts, at most.")
    patience: int = setting(3, "Epochs without an improvement before it ends; 0 never ends early.")
    lr: float = setting(1e-3, "Learning rate of the paper's model.")
    recall_lr: float = setting(3e-3, "Learning rate of the recall head.")
    weight_decay: float = setting(1e-5, "Weight decay.")
    clip: float = setting(1.0, "Largest norm of the gradient.")
    vq_weight: float = setting(0.1, "Weight of the clusters' loss.")
    alone_weight: float = setting(0.5, "Weight of the paper's model's own loss where it learns together with recall.")
    combine_from: float = setting(
        0.85,
        "Share of the times learned from after which the paper's model stays as it is, while recall and what the model "
        "adds to it are learned; before, each learns alone. 0: both learn together all the time.",
    )
    batch: int = setting(512, "Queries in a step; a time is never mixed with another.")
    burn_in: float = setting(0.1, "Share of the first times that are only remembered: everybody is a newcomer there.")
    strangers: float = setting(
        0.5,
        "Share of the queries about young subjects that are asked as if the subject were unseen.",
    )
    strangers_below: int = setting(50, "Interactions below which a subject is young.")
    select: tuple[str, ...] = setting(("all",), "Slices whose mean MRR decides which epoch is kept.")
    valid_every: int = setting(1, "Epochs between two measurements.")
    seed: int = setting(1, "Seed of everything random.")


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
        "model.max_entities must not be negative": model.max_entities >= 0,
        "model.kernel must be odd and positive": model.kernel > 0 and model.kernel % 2 == 1,
        "model.chain_capacity must be at least model.chain_length": model.chain_capacity >= model.chain_length,
        "model.prototype_decay must be in (0, 1]": 0 < model.prototype_decay <= 1,
        "recall.fast and recall.slow must be positive": recall.fast > 0 and recall.slow > 0,
        "recall.pair_slots, relation_slots, partner_slots, fact_slots and kin_slots must be multiples of 16": all(
            slots >= 16 and slots % 16 == 0
            for slots in (
                recall.pair_slots,
                recall.relation_slots,
                recall.partner_slots,
                recall.fact_slots,
                recall.kin_slots,
            )
        ),
        "recall.neighbours, hops, proposals, heads, hidden, relation_dim and name_dim must be at least 1": (
            min(
                recall.neighbours,
                recall.hops,
                recall.proposals,
                recall.heads,
                recall.hidden,
                recall.relation_dim,
                recall.name_dim,
            )
            >= 1
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
        "train.burn_in and train.combine_from must be in [0, 1) and train.strangers in [0, 1]": (
            0 <= train.burn_in < 1 and 0 <= train.combine_from < 1 and 0 <= train.strangers <= 1
        ),
        "train.alone_weight, train.strangers_below and recall.cold_below must not be negative": (
            min(train.alone_weight, train.strangers_below, recall.cold_below) >= 0
        ),
        "model.enabled = false needs recall.enabled": model.enabled or recall.enabled,
    }
    for rule, holds in (rules | _limits(model, recall)).items():
        if not holds:
            raise InputError(f"{where}: {rule}")


def _limits(model: ModelConfig, recall: RecallConfig) -> dict[str, bool]:
    """What keeps a state that no parameters bound from filling the memory."""
    return {
        "recall's slots must be at most 1048576, and what is kept, chosen or proposed for an entity at most 65536": (
            max(recall.pair_slots, recall.relation_slots, recall.partner_slots, recall.fact_slots, recall.kin_slots)
            <= 1 << 20
            and max(model.chain_capacity, model.ring, recall.hops, recall.proposals, recall.neighbours) <= 1 << 16
        ),
        "model.chain_window and recall.cold_below must be below 2147483648": (
            max(model.chain_window, recall.cold_below) < 1 << 31
        ),
    }


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
