"""Batch training of the shared parameters, from files or from the log."""

from trainer.accuracy import SeededRuns
from trainer.fit import Run, World, launched, starting_state, train
from trainer.retrain import Archive, LogTrainer, Plan, Round, TrainingMetrics, log_trainer

__all__ = [
    "Archive",
    "LogTrainer",
    "Plan",
    "Round",
    "Run",
    "SeededRuns",
    "TrainingMetrics",
    "World",
    "launched",
    "log_trainer",
    "starting_state",
    "train",
]
