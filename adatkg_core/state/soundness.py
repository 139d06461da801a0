"""Whether the numbers in a stored state can be what they stand for: rows that exist, pages that are there."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from adatkg_core.state.recurrence_tables import PAGE

# Tables whose slots name something else than entities: a relation before an entity; roles, which may be one more.
_OF_RELATIONS = ("pair", "group_fact", "role_fact")
_OF_ROLES = ("inside",)


def why_unsound(
    tensors: Mapping[str, Tensor], entities: int, kin: int, pages: Mapping[str, int], n_relations: int, codes: int
) -> str | None:
    """What in these tensors, whose shapes and types are right, leads outside them; None if nothing does.

    A wrong row would be read as somebody else's, or lie outside the memory that compiled code may read.
    """
    both, rows = 2 * n_relations, max(entities, 1)
    bounds = {
        "ring_relation": (0, both),
        "ring_other": (0, rows),
        "cluster": (0, codes),
        "group": (-1, kin),
        "role": (-1, kin),
        "interactions": (0, 2**62),
        "updates": (0, 2**62),
    }
    for table in pages:
        bounds[f"{table}_pages"] = (-1, pages[table])
        named = rows + 1 if table in _OF_ROLES else rows
        bounds[f"{table}_relation"] = (0, both if table in _OF_RELATIONS else named)
        bounds[f"{table}_other"] = (0, named)
    for name, (least, end) in bounds.items():
        tensor = tensors.get(name)
        if tensor is not None and tensor.numel() and not least <= int(tensor.min()) <= int(tensor.max()) < end:
            return f"tensor {name} names something that is not there"
    for table in pages:
        if f"{table}_pages" in tensors and not _filled(tensors[f"{table}_pages"], tensors[f"{table}_fill"]):
            return f"tensor {table}_fill counts slots that are not there"
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            return f"tensor {name} holds NaN or infinity"
    return None


def _filled(pages: Tensor, fill: Tensor) -> bool:
    """Whether every page that a row has slots in is one."""
    begins = torch.arange(pages.shape[-1], device=pages.device) * PAGE
    in_use = begins < fill.unsqueeze(-1)
    within = (fill >= 0) & (fill <= pages.shape[-1] * PAGE)
    return bool(within.all()) and not bool((in_use & (pages < 0)).any())
