"""A graph's whole state as plain data, between two engines of the same model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adatkg_core.errors import InputError
from adatkg_core.model import AdaTKG


@dataclass(frozen=True)
class Snapshot:
    """A graph's whole state: tensors and plain values."""

    tensors: dict[str, Tensor]
    meta: dict[str, Any]
    is_given: bool = False  # whoever restores it takes its tensors over, and leaves it empty

    def given(self) -> Snapshot:
        """The same, for one who restores it last: a state is not held twice for that."""
        return Snapshot(self.tensors, self.meta, is_given=True)

    def check_made_with(self, model: AdaTKG, relations: Sequence[str]) -> None:
        """Refuse one that was taken with another model: its tensors would mean something else."""
        problem = self._why_unreadable()
        if problem:
            raise InputError(f"snapshot: {problem}; take an earlier one, or let it be made from the log")
        if self.meta["relations"] != list(relations):
            raise InputError("snapshot: its relations are not those of the model; take the bundle it was made with")
        if self.meta["model"] != model.fingerprint():
            raise InputError("snapshot: it was taken with other parameters; take the bundle it was made with")

    def _why_unreadable(self) -> str | None:
        """What of the description is not as an engine writes it; what the tensors hold is for the state to say."""
        meta = self.meta
        missing = {"model", "watermark", "visible", "pages", "entities", "relations"} - meta.keys()
        if missing:
            return f"its description lacks {', '.join(sorted(missing))}"
        names = meta["entities"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return "its entities are no list of names"
        if len(set(names)) != len(names):
            return "two of its entities have one name"
        if type(meta["visible"]) is not int or not 0 <= meta["visible"] <= len(names):
            return f"{meta['visible']!r:.40} of its {len(names)} entities are visible"
        if meta["watermark"] is not None and (type(meta["watermark"]) is not int or abs(meta["watermark"]) >= 2**31):
            return f"its watermark is {meta['watermark']!r:.40}"
        if not isinstance(meta["pages"], dict) or not isinstance(meta["relations"], list):
            return "its pages are no table of numbers, or its relations no list"
        pending = self.tensors.get("pending")
        if pending is None or pending.dtype != torch.int64 or pending.dim() != 2 or pending.shape[1] != 3:
            return "its pending facts are no facts"
        rows, relations = pending[:, [0, 2]], pending[:, 1]
        if len(pending) and (
            meta["watermark"] is None
            or not 0 <= int(rows.min()) <= int(rows.max()) < len(names)
            or not 0 <= int(relations.min()) <= int(relations.max()) < len(meta["relations"])
        ):
            return "its pending facts name something that is not there"
        return None
