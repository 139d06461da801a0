"""Training from a data set."""

from trainer.fit.first_state import starting_state
from trainer.fit.loop import Report, Run, train
from trainer.fit.world import World, launched

__all__ = [
    "Report",
    "Run",
    "World",
    "launched",
    "starting_state",
    "train",
]
