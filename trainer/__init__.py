"""Batch training of the shared parameters."""

from trainer.loop import Run, train

__all__ = ["Run", "train"]
