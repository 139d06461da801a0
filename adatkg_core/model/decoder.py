"""ConvTransE: a convolution over subject and relation, matched with every candidate."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ConvTransE(nn.Module):
    """Subject and relation vectors to the vector that the answer should resemble."""

    def __init__(self, dim: int, filters: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.norm_in, self.norm_maps, self.norm_out = (
            nn.BatchNorm1d(2),
            nn.BatchNorm1d(filters),
            nn.BatchNorm1d(dim),
        )
        self.maps = nn.Conv1d(2, filters, kernel, padding=kernel // 2)
        self.out = nn.Linear(filters * dim, dim)
        self.dropout, self.drop_maps = nn.Dropout(dropout), nn.Dropout1d(dropout)

    def forward(self, subject: Tensor, relation: Tensor) -> Tensor:
        """[B, d], [B, d] -> [B, d]."""
        pair = self.dropout(self.norm_in(torch.stack((subject, relation), 1)))
        maps = self.drop_maps(F.relu(self.norm_maps(self.maps(pair))))
        return F.relu(self.norm_out(self.dropout(self.out(maps.flatten(1)))))
