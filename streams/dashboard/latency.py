"""How long answers took of late."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

WINDOW = 30.0  # seconds of answers
MOST = 10_000  # answers; of a fast stream these are the last few seconds


class Latency:
    """Quantiles over the answers of the last half minute, in bounded memory."""

    def __init__(self) -> None:
        self._answers: deque[tuple[float, float]] = deque(maxlen=MOST)  # when each was made, and what it took

    def add(self, answers: Iterable[tuple[float, float]]) -> None:
        """When answers were made, in seconds of some clock, and how many seconds each took."""
        self._answers.extend(answers)

    def quantiles(self, now: float, *shares: float) -> list[float | None]:
        """What these shares of the answers did not exceed; None where there was no answer."""
        while self._answers and self._answers[0][0] < now - WINDOW:
            self._answers.popleft()
        took = sorted(seconds for _, seconds in self._answers)
        return [round(took[min(len(took) - 1, int(share * len(took)))], 6) if took else None for share in shares]
