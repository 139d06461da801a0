"""What a row of the state has by its name alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from adatkg_core.model import AdaTKG
from adatkg_core.state import GraphState, Grouping
from adatkg_core.text import TextEncoder, choose_structure, text_of


def empty_grouping(model: AdaTKG) -> Grouping:
    """The groups of names as the model has learned to read them, before the first name."""
    return Grouping(choose_structure(model.config.model.names, ()))


def write_names(
    model: AdaTKG,
    state: GraphState,
    encoder: TextEncoder,
    start: int,
    names: Sequence[str],
    kin: tuple[list[int], list[int]],
) -> None:
    """Give the rows from `start` on these names, with their groups and roles `kin`."""
    rows = torch.arange(start, start + len(names), device=state.device)
    state.tensors["text"][rows] = encoder.encode([text_of(name) for name in names]).to(state.device)
    state.tensors["cluster"][rows] = model.assign_clusters(state, rows)
    if state.keeps_evidence:
        for name, numbers in zip(("group", "role"), kin, strict=True):
            state.tensors[name][rows] = torch.tensor(numbers, device=state.device)
