"""ConvTransE: a convolution over subject and relation, matched with every candidate."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adatkg_core.model.batch_norm import BatchNorm


class ConvTransE(nn.Module):
    """Subject and relation vectors to the vector that the answer should resemble.

    As published it ends in a batch norm and a relu (`rectified`), so that this vector has no negative coordinate.
    """

    def __init__(self, dim: int, filters: int, kernel: int, dropout: float, *, rectified: bool) -> None:
        super().__init__()
        self.norm_in, self.norm_maps = BatchNorm(2), BatchNorm(filters)
        self.norm_out = BatchNorm(dim) if rectified else None
        self.maps = nn.Conv1d(2, filters, kernel, padding=kernel // 2)
        self.out = nn.Linear(filters * dim, dim)
        self.dropout, self.drop_maps = nn.Dropout(dropout), nn.Dropout1d(dropout)

    def forward(self, subject: Tensor, relation: Tensor) -> Tensor:
        """[B, d], [B, d] -> [B, d]."""
        pair = self.dropout(self.norm_in(torch.stack((subject, relation), 1)))
        wanted: Tensor = self.out(self._maps(pair).flatten(1))
        # Dropout here would blur the very direction that candidates are compared with; the batch norm evens it out.
        return wanted if self.norm_out is None else F.relu(self.norm_out(self.dropout(wanted)))

    def _maps(self, pair: Tensor) -> Tensor:
        """dropout(relu(norm(convolution(pair)))) of pairs [B, 2, d]: [B, filters, d].

        The maps are by far the largest thing here and cost little but memory traffic, so norm and dropout go into
        the few weights of the convolution, and the maps are written once.
        """
        if not self.training:
            weight, shift = self._folded(self.norm_maps.running_mean, self.norm_maps.running_var)
            return F.relu(F.conv1d(pair, weight, shift, padding=self.maps.padding), inplace=True)
        windows = _windows(pair, self.maps.kernel_size[0])  # [B, 2 * kernel, d]
        weight, shift = self._folded(*self._statistics(windows))
        both = torch.cat((weight.flatten(1), shift.unsqueeze(1)), 1)  # [filters, 2 * kernel + 1]
        kept = self.drop_maps(both.new_ones(pair.shape[0], both.shape[0], 1))
        windows = torch.cat((windows, windows.new_ones(pair.shape[0], 1, pair.shape[2])), 1)
        return F.relu(torch.bmm(both * kept, windows), inplace=True)  # a share of relu(x) is relu of that share

    def _folded(self, mean: Tensor | None, variance: Tensor | None) -> tuple[Tensor, Tensor]:
        """Weight and bias of the convolution with the norm in them, for statistics [filters] of its maps."""
        assert mean is not None and variance is not None and self.maps.bias is not None
        scale = self.norm_maps.weight * torch.rsqrt(variance + self.norm_maps.eps)
        return self.maps.weight * scale[:, None, None], self.norm_maps.bias + (self.maps.bias - mean) * scale

    def _statistics(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the maps [filters], which the norm remembers; of what the convolution's windows
        [B, 2 * kernel, d] have in common, because it is linear in them."""
        norm, weight = self.norm_maps, self.maps.weight.flatten(1)
        flat = windows.transpose(0, 1).flatten(1)  # [2 * kernel, B * d]
        centre = flat.mean(1, keepdim=True)
        spread = flat - centre
        size, shape = centre.new_tensor([flat.shape[1]]), (flat.shape[0], flat.shape[0])
        own = torch.cat((size, centre.squeeze(1), (spread @ spread.T / flat.shape[1]).flatten()))
        count, centre, covariance = _pooled(*torch.split(norm.of_all(own), [1, shape[0], shape[0] ** 2], 1))
        assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
        assert norm.momentum is not None and self.maps.bias is not None
        mean = weight @ centre + self.maps.bias
        variance = ((weight @ covariance.view(shape)) * weight).sum(1)
        with torch.no_grad():
            norm.running_mean.lerp_(mean, norm.momentum)
            norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
            norm.num_batches_tracked += 1
        return mean, variance


def _pooled(sizes: Tensor, means: Tensor, covariances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Size [], mean [k] and flat covariance [k * k] of what several groups have together; of each [groups, …]."""
    if sizes.shape[0] == 1:
        return sizes.squeeze(), means[0], covariances[0]
    count = sizes.sum()
    mean = (sizes * means).sum(0) / count
    away = means - mean
    outer = (away.unsqueeze(2) * away.unsqueeze(1)).flatten(1)
    return count, mean, (sizes * (covariances + outer)).sum(0) / count


def _windows(pair: Tensor, kernel: int) -> Tensor:
    """What each place of a convolution sees of [B, 2, d], zeros around it: [B, 2 * kernel, d]."""
    width = pair.shape[2]
    around = F.pad(pair, (kernel // 2, kernel // 2))
    return torch.stack([around[:, :, i : i + width] for i in range(kernel)], 2).flatten(1, 2)
