"""Training from a data set."""

from trainer.fit.first_state import starting_state
from trainer.fit.loop import Report, Run, train

__all__ = [
    "Report",
    "Run",
    "starting_state",
    "train",
]
