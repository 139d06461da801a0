"""A graph's whole state as plain data, between two engines of the same model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from adatkg_core.errors import InputError
from adatkg_core.model import AdaTKG


@dataclass(frozen=True)
class Snapshot:
    """A graph's whole state: tensors and plain values."""

    tensors: dict[str, Tensor]
    meta: dict[str, Any]

    def check_made_with(self, model: AdaTKG, relations: Sequence[str]) -> None:
        """Refuse one that was taken with another model: its tensors would mean something else."""
        if self.meta["relations"] != list(relations):
            raise InputError("snapshot: its relations are not those of the model; take the bundle it was made with")
        if self.meta["model"] != model.fingerprint():
            raise InputError("snapshot: it was taken with other parameters; take the bundle it was made with")
