"""Training from a graph's log, round after round, and promoting what is better."""

from trainer.retrain.archive import Archive
from trainer.retrain.metrics import TrainingMetrics
from trainer.retrain.plan import Plan, Round
from trainer.retrain.rounds import LogTrainer, log_trainer
from trainer.retrain.schedule import Stopped, parse_every, run_rounds
from trainer.retrain.score_drop import DropWatch
from trainer.retrain.settings import RetrainSettings, load_retrain_settings

__all__ = [
    "Archive",
    "DropWatch",
    "LogTrainer",
    "Plan",
    "RetrainSettings",
    "Round",
    "Stopped",
    "TrainingMetrics",
    "load_retrain_settings",
    "log_trainer",
    "parse_every",
    "run_rounds",
]
