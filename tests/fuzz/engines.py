"""Who chooses how a file is spoiled: hypothesis, which makes a finding small, or atheris, which follows the code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from tests.fuzz.trial import Trials

ROUND = 250  # trials between two looks at the clock
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "print_blob": False,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.generate, Phase.shrink),
}


def by_hypothesis(trials: Trials, examples: int, seed: int) -> tuple[int, int]:
    """How many were tried and how many were still read; a finding is raised after it was made as small as it gets."""
    count = read = 0

    def once(choose: Random) -> None:
        nonlocal count, read
        count += 1
        read += trials.run(choose)

    given = hypothesis.given(st.randoms(use_true_random=False))(once)
    hypothesis.seed(seed)(hypothesis.settings(max_examples=examples, **SETTINGS)(given))()
    return count, read


def for_a_while(trials: Trials, seconds: float, seed: int) -> tuple[int, int]:
    """Rounds of trials until the time is over; the seed of a round that found something is in the error's notes."""
    count, read, end = 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            tried, taken = by_hypothesis(trials, ROUND, seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        count, read, seed = count + tried, read + taken, seed + 1
    return count, read


class Bytes(Random):
    """Choices read from bytes, so that a fuzzer that follows the code can steer them; zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data, self._at = data, 0

    def getrandbits(self, k: int) -> int:
        """The next bits."""
        size = (k + 7) // 8
        taken = self._data[self._at : self._at + size].ljust(size, b"\x00")
        self._at += size
        return int.from_bytes(taken, "little") & ((1 << k) - 1)

    def random(self) -> float:
        """The next share of one."""
        return self.getrandbits(53) / (1 << 53)


def by_atheris(trials: Trials, seconds: float, seed: int, tell: Callable[[int, int], None]) -> None:
    """Trials until the time is over, in which libFuzzer ends the process; `tell` hears how many there were so far."""
    import atheris

    count = read = 0

    def once(data: bytes) -> None:
        nonlocal count, read
        count += 1
        # Bytes that end too soon would choose zero for ever, where `randrange` of some numbers waits for another.
        read += trials.run(Bytes(data) if len(data) > 64 else Random(data))
        tell(count, read)

    arguments = [sys.argv[0], f"-max_total_time={int(seconds)}", f"-seed={seed}", "-max_len=4096", "-len_control=0"]
    atheris.Setup([*arguments, "-verbosity=0"], once)
    atheris.Fuzz()
