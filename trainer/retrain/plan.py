"""What a graph's trainer is told, what a round gives, and what is remembered of a round under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from adatkg_core.constants import MAX_JUMP, SLICES, LatePolicy
from adatkg_core.errors import InputError
from adatkg_core.settings import Config
from trainer.retrain.archive import WINDOW


@dataclass(frozen=True)
class Plan:
    """What a graph's trainer is told."""

    graph: str
    config: Config
    models: str
    archive: Path
    device: str = "cpu"
    warm_start: bool = False
    window: float = WINDOW  # share of the distinct times on which bundles are compared
    margin: float = 0.0  # by which a candidate must be better
    slice: str = "all"
    keep: int = 5  # bundles in the store
    max_jump: int = MAX_JUMP
    late: LatePolicy = "apply"

    def __post_init__(self) -> None:
        rules = {
            f"window is {self.window}: give a share between 0 and 1": 0 < self.window < 1,
            f"slice {self.slice!r} is unknown: use one of {', '.join(SLICES)}": self.slice in SLICES,
            f"margin is {self.margin}: it must not be negative": self.margin >= 0,
            f"keep is {self.keep}: at least one bundle stays": self.keep >= 1,
        }
        for rule, holds in rules.items():
            if not holds:
                raise InputError(f"retraining of {self.graph}: {rule}")

    def shaping(self) -> dict[str, Any]:
        """What decides what a run gives, besides the facts."""
        plain = {"config": self.config.as_dict(), "warm_start": self.warm_start, "window": self.window}
        return dict(orjson.loads(orjson.dumps(plain)))


@dataclass(frozen=True)
class Round:
    """What came of a round; `waiting`: there was not enough to learn from."""

    graph: str
    version: str | None
    status: Literal["present", "candidate", "waiting"]
    reason: str
    scores: dict[str, Any] | None
    offset: int
    facts: int
    seconds: float


@dataclass(frozen=True)
class Underway:
    """A round that has begun, as `run.json` has it."""

    offset: int
    watermark: int | None
    facts: int
    base: str | None  # the version that was present when it began
    relations: list[str]  # that it knew
    shaping: dict[str, Any]
    decision: dict[str, Any] | None = None  # the announcement to be made
    origins: list[list[int]] = field(default_factory=list)  # of events that were moved into the log below the offset
    against: str | None = None  # the present version that the candidate was measured against
