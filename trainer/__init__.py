"""Batch training of the shared parameters, from files or from the log."""

from trainer.archive import Archive
from trainer.from_log import LogTrainer, log_trainer
from trainer.loop import Run, train
from trainer.metrics import TrainingMetrics
from trainer.round import Plan, Round
from trainer.starting_state import starting_state

__all__ = [
    "Archive",
    "LogTrainer",
    "Plan",
    "Round",
    "Run",
    "TrainingMetrics",
    "log_trainer",
    "starting_state",
    "train",
]
