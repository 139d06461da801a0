"""Batch norm over the queries of all processes, so that sharing a batch out does not change its statistics."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from adatkg_core.model import BatchNorm
from trainer.fit.world import ALONE, World


class SharedBatchNorm(BatchNorm):
    """As `nn.BatchNorm1d`, whose parameters and statistics it takes over; torch's own synchronised one wants a GPU."""

    def __init__(self, norm: nn.BatchNorm1d) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum)
        self.weight, self.bias = norm.weight, norm.bias
        self.running_mean, self.running_var = norm.running_mean, norm.running_var
        self.num_batches_tracked = norm.num_batches_tracked
        self.world = ALONE  # whose queries are one batch at the moment

    def forward(self, values: Tensor) -> Tensor:
        """[B, C, …] -> [B, C, …]; in training every process of the world must come here, each with some queries."""
        if not self.training:
            return super().forward(values)
        channels = values.shape[1]
        within = [place for place in range(values.dim()) if place != 1]
        variance, mean = torch.var_mean(values, within, correction=0)
        own = torch.cat((values.new_tensor([values.numel() / channels]), mean, variance))
        size, means, variances = torch.split(self.of_all(own), [1, channels, channels], 1)  # [processes, …]
        count = size.sum()
        mean = (size * means).sum(0) / count
        variance = (size * (variances + (means - mean).square())).sum(0) / count
        self._follow(mean, variance * (count / (count - 1)))
        shape = (1, channels, *[1] * (values.dim() - 2))
        scale = self.weight * (variance + self.eps).rsqrt()
        normed: Tensor = values * scale.view(shape) + (self.bias - mean * scale).view(shape)
        return normed

    def of_all(self, own: Tensor) -> Tensor:
        """The vectors [k] of all processes, [processes, k], through which gradients find back to each."""
        if self.world.size == 1:
            return own.unsqueeze(0)
        rows = own.new_zeros(self.world.size, own.shape[0])
        rows = rows.index_copy(0, torch.tensor([self.world.rank], device=own.device), own[None])
        everyone: Tensor = _AddUp.apply(rows, self.world)
        return everyone

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)


def share_batch_norms(model: nn.Module) -> None:
    """Put one in the place of every batch norm of a model."""
    for parent in [*model.modules()]:
        for name, child in parent.named_children():
            if isinstance(child, BatchNorm) and not isinstance(child, SharedBatchNorm):
                setattr(parent, name, SharedBatchNorm(child))


def norm_over(model: nn.Module, world: World) -> None:
    """Whose queries are one batch from here on."""
    for part in model.modules():
        if isinstance(part, SharedBatchNorm):
            part.world = world


class _AddUp(torch.autograd.Function):
    """The sum over all processes; what each process's part of the loss makes of it is added up on the way back."""

    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, world: World) -> Tensor:
        ctx.world = world  # type: ignore[attr-defined]
        return world.add_up(values.clone())

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        world: World = ctx.world  # type: ignore[attr-defined]
        return world.add_up(gradient.contiguous().clone()), None
