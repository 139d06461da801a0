"""A new model that begins with what an earlier bundle has learned."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
import torch
from torch import Tensor

from adatkg_core.errors import InputError
from adatkg_core.model import AdaTKG
from adatkg_core.storage import Bundle

OWN = "relation_text"  # comes from the encoder, not from training
BY_RELATION = ("relation", "recall.relation.weight", "recall.ask", "recall.tell")  # 2R rows, inverses from R on
BY_ENTITY = ("learned",)
BY_ENTITY_DECAY = ("memory.rho", "memory.trained")  # where every entity has a decay of its own

log = structlog.get_logger()


@torch.no_grad()
def start_from(warm: Bundle, model: AdaTKG, relations: Sequence[str], entities: Sequence[str]) -> None:
    """Copy what fits: whole tensors by name and shape, rows of relations and entities by their names."""
    old, new = warm.model.config.model, model.config.model
    if old.encoder != new.encoder:
        raise InputError(
            f"bundle {warm.version} reads names with the encoder {old.encoder}, the configuration with {new.encoder}: "
            "what it learned does not carry over; train without --warm-start"
        )
    per_entity = (*BY_ENTITY, *BY_ENTITY_DECAY) if old.decay == new.decay == "entity" else BY_ENTITY
    relation_rows = _both_directions(*_shared(warm.relations, relations), len(warm.relations), len(relations))
    entity_rows = _shared(warm.entities[: warm.model.entities], entities[: model.entities])
    values, taken = warm.model.state_dict(), 0
    for name, tensor in model.state_dict().items():
        value = values.get(name)
        if value is None or name == OWN:
            continue
        if name in BY_RELATION or name in per_entity:
            if value.shape[1:] != tensor.shape[1:]:
                continue
            source, target = relation_rows if name in BY_RELATION else entity_rows
            tensor[target] = value[source].to(tensor.device)
        elif value.shape == tensor.shape:
            tensor.copy_(value)
        else:
            continue
        taken += 1
    log.info("warm_start", version=warm.version, tensors=taken, of=len(values) - 1)


def _shared(old: Sequence[str], new: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Rows of the names that both have, in the old and in the new numbering."""
    place = {name: row for row, name in enumerate(old)}
    pairs = [(place[name], row) for row, name in enumerate(new) if name in place]
    source, target = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).unbind(1)
    return source, target


def _both_directions(source: Tensor, target: Tensor, old: int, new: int) -> tuple[Tensor, Tensor]:
    return torch.cat((source, source + old)), torch.cat((target, target + new))
