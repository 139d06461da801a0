"""Whether two accounts of the same thing are equal: an answer and what the engine says, a state and another."""

from __future__ import annotations

from typing import Any

import torch

from adatkg_core.engine import Snapshot
from adatkg_core.events import Ranking

TOLERANCE = 1e-5  # what is promised of scores
_ROUNDED = 1.1e-6  # what writing them with six digits may add


def why_different(prediction: dict[str, Any], ranking: Ranking, version: str) -> str | None:
    """What of a prediction is not as the engine says, which has ranked every candidate; None when all is."""
    if prediction["model"] != version:
        return f"model is {prediction['model']}, not {version}"
    for key in ("as_of", "late", "cold_start", "interactions"):
        if prediction[key] != getattr(ranking, key):
            return f"{key} is {prediction[key]}, not {getattr(ranking, key)}"
    if abs(prediction["gate"] - ranking.gate) > TOLERANCE + _ROUNDED:
        return f"gate is {prediction['gate']}, not {ranking.gate}"
    return _why_other_list(prediction, ranking) or _why_other_ranks(prediction, ranking)


def _why_other_list(prediction: dict[str, Any], ranking: Ranking) -> str | None:
    """Scores agree place by place, and every candidate has the score that the engine gives it."""
    top, within = prediction["top"], TOLERANCE + _ROUNDED
    wanted = min(prediction["query"].get("k", 10), len(ranking.top))
    if len(top) != wanted or len({one["entity"] for one in top}) != wanted:
        return f"{len(top)} candidates, not {wanted} different ones"
    scores = {one.entity: one for one in ranking.top}
    for place, (mine, theirs) in enumerate(zip(top, ranking.top, strict=False), 1):
        own = scores.get(mine["entity"])
        if own is None:
            return f"{mine['entity']} is no candidate"
        if abs(mine["score"] - own.score) > within or abs(mine["score"] - theirs.score) > within:
            return f"place {place} is {mine['entity']} with {mine['score']}, not {theirs.entity} with {theirs.score}"
        if abs(mine["probability"] - own.probability) > within:
            return f"the probability of {mine['entity']} is {mine['probability']}, not {own.probability}"
    return None


def _why_other_ranks(prediction: dict[str, Any], ranking: Ranking) -> str | None:
    """A rank may be off by as many places as there are candidates that are too close to tell."""
    ranks: dict[str, float] = prediction["ranks"]
    if ranks.keys() != ranking.ranks.keys():
        return f"ranks of {sorted(ranks)}, not of {sorted(ranking.ranks)}"
    scores = {one.entity: one.score for one in ranking.top}
    for name, rank in ranks.items():
        off = abs(rank - ranking.ranks[name])
        close = 0
        if off and name in scores:
            close = sum(abs(score - scores[name]) <= 2 * TOLERANCE for score in scores.values()) - 1
        if off > close:
            return f"the rank of {name} is {rank}, not {ranking.ranks[name]}"
    return None


def why_other_state(found: Snapshot, wanted: Snapshot) -> str | None:
    """Where two states are not bitwise the same; None when they are."""
    if found.meta != wanted.meta:
        strange = [key for key in {*found.meta, *wanted.meta} if found.meta.get(key) != wanted.meta.get(key)]
        return f"{', '.join(sorted(strange))} of the state differ"
    if found.tensors.keys() != wanted.tensors.keys():
        return f"the state lacks or adds {sorted(found.tensors.keys() ^ wanted.tensors.keys())}"
    for name, tensor in found.tensors.items():
        other = wanted.tensors[name]
        if tensor.dtype != other.dtype or tensor.shape != other.shape or not _same_bits(tensor, other):
            return f"tensor {name} of the state differs"
    return None


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Also of NaN and of the two zeros."""
    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))
