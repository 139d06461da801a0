"""ConvTransE: a convolution over subject and relation, matched with every candidate."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ConvTransE(nn.Module):
    """Subject and relation vectors to the vector that the answer should resemble.

    As published it ends in a batch norm and a relu (`rectified`), so that this vector has no negative coordinate.
    """

    def __init__(self, dim: int, filters: int, kernel: int, dropout: float, *, rectified: bool) -> None:
        super().__init__()
        self.norm_in, self.norm_maps = nn.BatchNorm1d(2), nn.BatchNorm1d(filters)
        self.norm_out = nn.BatchNorm1d(dim) if rectified else None
        self.maps = nn.Conv1d(2, filters, kernel, padding=kernel // 2)
        self.out = nn.Linear(filters * dim, dim)
        self.dropout, self.drop_maps = nn.Dropout(dropout), nn.Dropout1d(dropout)

    def forward(self, subject: Tensor, relation: Tensor) -> Tensor:
        """[B, d], [B, d] -> [B, d]."""
        pair = self.dropout(self.norm_in(torch.stack((subject, relation), 1)))
        maps = self.drop_maps(F.relu(self.norm_maps(self.maps(pair))))
        wanted: Tensor = self.out(maps.flatten(1))
        # Dropout here would blur the very direction that candidates are compared with; the batch norm evens it out.
        return wanted if self.norm_out is None else F.relu(self.norm_out(self.dropout(wanted)))
