"""What a state consists of: every tensor by name, for a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from adatkg_core.settings import Config, RecallConfig
from adatkg_core.state.recurrence_tables import PAGE
from adatkg_core.text import choose_structure


@dataclass(frozen=True)
class Spec:
    """One tensor of the state: `rows` says what its first dimension counts."""

    rows: str  # "entity", "kin" (a group or role of names), "fixed", or the name of a table whose slots it holds
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    fill: float = 0

    def used(self, entities: int, kin: int, pages: Mapping[str, int]) -> tuple[int, ...]:
        """How many rows are in use, as a leading part of the tensor's shape; none where `shape` is all of it."""
        if self.rows == "fixed":
            return ()
        rows = {"entity": entities, "kin": kin}
        return (rows[self.rows] if self.rows in rows else pages[self.rows] * PAGE,)


def kin_rows(config: Config, entities: int) -> int:
    """How many groups or roles so many entities have at most: none where names tell of none."""
    if choose_structure(config.model.names, ()).kind == "none":
        return 0
    return entities + 1  # a name brings one new group and one new role at most, and one role is given


def layout(config: Config, text_dim: int, n_relations: int) -> dict[str, Spec]:
    """Every tensor of the state by name, for a configuration."""
    model, recall = config.model, config.recall
    ring = (model.chain_capacity,)
    specs = {
        "text": Spec("entity", (text_dim,)),
        "interactions": Spec("entity", (), torch.int64),
        "updates": Spec("entity", (), torch.int64),
        "last_time": Spec("entity", (), torch.int64),
        "ring_relation": Spec("entity", ring, torch.int32),
        "ring_other": Spec("entity", ring, torch.int32),
        "ring_time": Spec("entity", ring, torch.int32),
        "cluster": Spec("entity", (), torch.int64),
    }
    if model.memory != "none":
        shape = (model.ring, model.dim) if model.memory == "attention" else (model.dim,)
        specs["memory"] = Spec("entity", shape)
    if model.prior:
        specs["prototype_sum"] = Spec("fixed", (model.codes, model.dim))
        specs["prototype_weight"] = Spec("fixed", (model.codes,))
    if recall.enabled:
        specs["activity_fast"] = Spec("entity", ())
        specs["activity_slow"] = Spec("entity", ())
        specs |= _table_layout("pair", "entity", (recall.pair_slots // PAGE,))
        for name in ("relation", "newcomer"):
            specs |= _table_layout(name, "fixed", (2 * n_relations, recall.relation_slots // PAGE))
    if recall.enabled and recall.evidence:
        specs |= _evidence_layout(recall, 2 * n_relations)
    return specs


def _evidence_layout(recall: RecallConfig, both: int) -> dict[str, Spec]:
    specs = {
        "group": Spec("entity", (), torch.int64, fill=-1),
        "role": Spec("entity", (), torch.int64, fill=-1),
        "row_length": Spec("entity", ()),
        "followed": Spec("fixed", (both, both)),
        **_dates("pair"),
        **_table_layout("partner", "entity", (recall.partner_slots // PAGE,)),
        **_dates("partner"),
        **_table_layout("fact", "fixed", (both, recall.fact_slots // PAGE)),
        **_table_layout("inside", "fixed", (both, recall.relation_slots // PAGE)),
    }
    for name in ("group", "role"):
        specs |= _table_layout(f"{name}_fact", "kin", (recall.kin_slots // PAGE,))
    return specs


def _table_layout(name: str, rows: str, pages: tuple[int, ...]) -> dict[str, Spec]:
    whole = {
        f"{name}_pages": Spec(rows, pages, torch.int32, fill=-1),
        f"{name}_fill": Spec(rows, pages[:-1], torch.int32),
    }
    integers = {f"{name}_{part}": Spec(name, (), torch.int32) for part in ("relation", "other", "last")}
    return whole | integers | {f"{name}_{part}": Spec(name, ()) for part in ("count", "fast", "slow")}


def _dates(name: str) -> dict[str, Spec]:
    numbers = {f"{name}_{part}": Spec(name, (), torch.int32) for part in ("first", "times")}
    return numbers | {f"{name}_ticks": Spec(name, (), torch.int64)}
