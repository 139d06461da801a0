"""What trainer and worker say in their logs about new models."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from adatkg.processes import Lines


@dataclass
class Story:
    """Rounds of training and swaps so far, and what the trainer is doing."""

    trainer: Lines
    worker: Lines
    busy: bool = False
    facts: int = 0  # that the last round began with
    rounds: int = 0
    swaps: int = 0
    promoted: str | None = None  # the version that shall answer
    answering: str | None = None  # the version that last took over
    news: list[str] = field(default_factory=list)  # what happened, oldest first
    _since: float = 0.0

    def look(self) -> None:
        """Read on."""
        for line in self.trainer.new():
            match line["event"]:
                case "training_begins":
                    self.busy, self.facts, self._since = True, line["facts"], time.monotonic()
                    self.rounds += 1
                case "bundle_promoted":
                    self.busy, self.promoted = False, line["version"]
                    self.news.append(f"{line['version']} is better: {line['reason']}")
                case "bundle_kept":
                    self.busy = False
                    self.news.append(f"{line['version']} is kept aside: {line['reason']}")
                case "training_failed":
                    self.busy = False
                    self.news.append(f"training failed: {line['problem']}")
        for line in self.worker.new():
            match line["event"]:
                case "swapped":
                    self.swaps, self.answering = self.swaps + 1, line["version"]
                    self.news.append(f"{line['version']} answers from now on")
                case "model_refused":
                    self.promoted = None
                    self.news.append(f"{line['version']} was refused: {line['problem']}")

    @property
    def doing(self) -> str:
        """The trainer's work in words."""
        if self.busy:
            return f"round {self.rounds}: learns from {self.facts:,} facts since {time.monotonic() - self._since:.0f} s"
        if self.promoted is not None and self.promoted != self.answering:
            return f"round {self.rounds} is done, the worker takes {self.promoted} over"
        return f"waits for new facts after round {self.rounds}" if self.rounds else "waits for new facts"
