"""What a training step minimises, and which parameters learn by it.

A model that is trusted on facts that it has learned by heart is trusted too much. So model and recall first learn
`apart`, each from its own loss; on the later times the model stays as it is and recall and trust learn from the
score of both, `combining` them where the model knows no answer beforehand. Else all learn `together`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from adatkg_core.datasets import Facts
from adatkg_core.model import AdaTKG, Scores
from adatkg_core.settings import TrainConfig

Stage = Literal["together", "apart", "combining"]
OF_RECALL = ("recall.", "trust.")  # how their parameters' names begin


def combining_from(model: AdaTKG, lessons: Facts) -> int | None:
    """The first time at which model and recall are combined; None where they learn together all the time."""
    settings = model.config.train
    both = model.config.model.enabled and model.trust is not None
    if not both or settings.protocol == "snapshot" or settings.combine_from == 0:
        return None
    times = np.unique(lessons[:, 3])
    return int(times[min(int(len(times) * settings.combine_from), len(times) - 1)])


def enter(model: AdaTKG, stage: Stage) -> None:
    """Let that part of the model learn which the stage is for; the rest answers as it will answer queries."""
    learns = stage != "combining"
    for name, part in model.named_children():
        part.train(learns or f"{name}." in OF_RECALL)
    model.training = learns
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(learns or name.startswith(OF_RECALL))


def objective(
    scores: Scores, answer: Tensor, exclude: tuple[Tensor, Tensor] | None, stage: Stage, settings: TrainConfig
) -> Tensor:
    """The loss of the scores [B, n] of queries whose true answers [B] are given."""
    if stage == "apart" and scores.reasoned is not None and scores.recalled is not None:
        return cross_entropy(scores.recalled, answer, exclude) + cross_entropy(scores.reasoned, answer, exclude)
    whole = cross_entropy(scores.total, answer, exclude)
    if stage == "combining" or scores.reasoned is None or settings.alone_weight == 0:
        return whole
    return whole + settings.alone_weight * cross_entropy(scores.reasoned, answer, exclude)


def cross_entropy(scores: Tensor, answer: Tensor, exclude: tuple[Tensor, Tensor] | None) -> Tensor:
    """The mean loss of queries [B]; the places `exclude` in their scores take no part in it."""
    if exclude is not None:
        scores = scores.index_put(exclude, scores.new_tensor(-1e4))
    return F.cross_entropy(scores, answer)
