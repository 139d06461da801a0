"""Batch training of the shared parameters."""

from trainer.loop import Run, train
from trainer.starting_state import starting_state

__all__ = ["Run", "starting_state", "train"]
