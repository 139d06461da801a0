"""Rounds of retraining in a small world, and what came of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adatkg_core.messages import Announcement, decode_announcement
from adatkg_core.settings import Config
from adatkg_core.storage import ModelStore
from streams.kafka import open_log
from tests.support.running_system import World
from tests.support.small_graph import small_config
from tests.support.trainer_logs import GRAPH
from trainer import Plan, Round, TrainingMetrics, log_trainer

QUICK = {"train.epochs": 1, "train.burn_in": 0.0, "train.batch": 64, "train.lr": 0.01}


def plan(world: World, **changes: Any) -> Plan:
    config: Config = small_config(QUICK | changes.pop("config", {}))
    return replace(Plan(GRAPH, config, str(world.models), world.folder / "archive"), **changes)


def round_of(world: World, metrics: TrainingMetrics | None = None, **changes: Any) -> Round:
    with log_trainer(plan(world, **changes), world.connection, world.topics, metrics or TrainingMetrics()) as trainer:
        return trainer.round()


def announced(world: World) -> list[Announcement]:
    with open_log(world.connection, world.topics.models) as reader:
        first, end = reader.bounds(0)
        return [decode_announcement(record.value) for record in reader.read(0, first, end)]


def store(world: World) -> ModelStore:
    return ModelStore(str(world.models))
