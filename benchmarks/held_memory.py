"""The memory that a process needs for itself at most: without pages of files, which can leave it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

_STATUS = Path("/proc/self/status")
_OURS = ("RssAnon:", "RssShmem:")  # files in memory alone have no disk to go to
_EVERY = 0.01  # seconds


class HeldMemory:
    """Looks a hundred times a second, while it is entered, at what was not held before."""

    def __init__(self) -> None:
        self._before = self._most = _held()
        self._end = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._looking.join()

    def most(self) -> int:
        """The most bytes so far, or since `forget`."""
        self._most = max(self._most, _held())
        return self._most - self._before

    def forget(self) -> None:
        """What was held up to now no longer counts."""
        self._most = _held()

    def _look(self) -> None:
        while not self._end.wait(_EVERY):
            self._most = max(self._most, _held())


def _held() -> int:
    lines = (line.split() for line in _STATUS.read_text("ascii").splitlines())
    return sum(int(words[1]) * 1024 for words in lines if words and words[0] in _OURS)
