"""The one thread that touches the device."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, ParamSpec, TypeVar

from adatkg_core.runtime import ScatteredMemory

P = ParamSpec("P")
T = TypeVar("T")


class Turn(asyncio.Lock):
    """Held from before a batch is applied until what came of it is handed over."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = 0

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for it."""
        return self._waiting > 0

    async def acquire(self) -> Literal[True]:
        """Wait for it."""
        self._waiting += 1
        try:
            return await super().acquire()
        finally:
            self._waiting -= 1


class DeviceThread:
    """Runs what is handed to it, one thing after the other; the event loop goes on meanwhile."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "device")
        self._memory = ScatteredMemory()
        self.turn = Turn()

    async def run(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """The result of some work on the thread, in turn with the batches."""

        def done() -> T:
            result = work(*arguments, **options)
            self._memory.give_back()
            return result

        return await asyncio.get_running_loop().run_in_executor(self._thread, done)

    async def run_through(self, steps: Iterator[None]) -> None:
        """Go through small steps, each in turn with the batches."""
        end = object()
        while await self.run(next, steps, end) is not end:
            pass

    def close(self) -> None:
        """End the thread; what waits for it is given up."""
        self._thread.shutdown(wait=False, cancel_futures=True)
