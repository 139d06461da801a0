"""Vector-quantised clusters of entity vectors, learned by moving averages."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

COMMITMENT = 0.25
USAGE = 5e-3
DECAY = 0.99
TEMPERATURE = 0.1
DEAD = 1e-3  # a code that holds less than this share of an entity is given to a random entity


class Codebook(nn.Module):
    """Assigns each vector to the code of the largest cosine; codes follow the mean of their members."""

    codes: Tensor
    size: Tensor
    total: Tensor
    ready: Tensor

    def __init__(self, codes: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, dim) * 0.1)
        self.register_buffer("size", torch.zeros(codes))
        self.register_buffer("total", torch.zeros(codes, dim))
        self.register_buffer("ready", torch.zeros((), dtype=torch.bool))

    def assign(self, vectors: Tensor) -> Tensor:
        """[n, d] -> [n]; in double precision, so that a batch mate cannot tip a near tie."""
        units = F.normalize(vectors.double(), dim=1)
        return (units @ F.normalize(self.codes.double(), dim=1).T).argmax(1)

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Assignments [n] and the loss of commitment and usage; in training the codes move."""
        if self.training and not bool(self.ready):
            self._start_from(vectors.detach())
        cosine = F.normalize(vectors, dim=1) @ F.normalize(self.codes, dim=1).T  # [n, K]
        index = cosine.argmax(1)
        commitment = F.mse_loss(vectors, self.codes[index])
        share = (cosine / TEMPERATURE).softmax(1).mean(0)
        usage = math.log(self.codes.shape[0]) + (share * (share + 1e-12).log()).sum()
        if self.training:
            self._follow(vectors.detach(), index)
        return index, COMMITMENT * commitment + USAGE * usage

    def _start_from(self, vectors: Tensor) -> None:
        pick = torch.randint(vectors.shape[0], (self.codes.shape[0],), device=vectors.device)
        self.codes.copy_(vectors[pick])
        self.total.copy_(self.codes)
        self.size.fill_(1)
        self.ready.fill_(True)

    def _follow(self, vectors: Tensor, index: Tensor) -> None:
        size = torch.bincount(index, minlength=self.codes.shape[0]).to(self.size.dtype)
        total = torch.zeros_like(self.total).index_add_(0, index, vectors)
        self.size.mul_(DECAY).add_(size, alpha=1 - DECAY)
        self.total.mul_(DECAY).add_(total, alpha=1 - DECAY)
        dead = self.size < DEAD
        pick = torch.randint(vectors.shape[0], (self.codes.shape[0],), device=vectors.device)
        self.total.copy_(torch.where(dead.unsqueeze(1), vectors[pick], self.total))
        self.size.masked_fill_(dead, 1)
        self.codes.copy_(self.total / self.size.unsqueeze(1))
