"""Waiting for the device, for files and for brokers: for a while, and never beyond the worker's end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from streams.dashboard.http import Problem

DEVICE_WITHIN = 10.0  # seconds: the device may be busy with loading a graph
BLOCKING_WITHIN = 60.0  # seconds for stores and brokers
P = ParamSpec("P")
T = TypeVar("T")


class Timeouts:
    """Threads for what blocks, and an end to all waiting when the worker ends."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2, "dashboard")
        self._closing = asyncio.Event()
        self._turn = asyncio.Lock()

    async def device(self, look: Callable[P, Awaitable[T]], *arguments: P.args, **options: P.kwargs) -> T:
        """Something small on the device's thread: one at a time, so that between two batches there is no more of it."""

        async def in_turn() -> T:
            async with self._turn:
                return await look(*arguments, **options)

        return await self.on_time(in_turn(), DEVICE_WITHIN, "the device")

    async def thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Something that waits for files or brokers."""
        if self._closing.is_set():
            raise _ending()
        running = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        return await self.on_time(running, BLOCKING_WITHIN, "the store or the brokers")

    async def on_time(self, work: Awaitable[T], seconds: float, who: str) -> T:
        """The result, unless it takes too long or the worker ends."""
        working = asyncio.ensure_future(work)
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((working, closing), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if closing.done():
                raise _ending()
            raise Problem(504, f"{who} did not answer within {seconds:g} s; see the worker's log, or ask again")
        finally:
            closing.cancel()
            working.cancel()

    def close(self) -> None:
        """Nobody waits any longer."""
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _ending() -> Problem:
    return Problem(503, "the worker ends; ask another one, or this one when it is back")
