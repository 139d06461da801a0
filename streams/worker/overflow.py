"""Reads from the log what found no room when it was delivered, once there is room, beside the batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import structlog

from adatkg_core.runtime import growing_pause
from streams.kafka import LogReader
from streams.worker.arrival import Arrival, arrival_of
from streams.worker.catch_up import CatchUp
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.turns import LeftInLog

SLICE = 2_048  # offsets read at once: about what an inbox has room for when it is worth a look
IDLE = 1.0  # seconds between looks when nobody calls
STOP_WITHIN = 0.5  # seconds for a read that is under way; after it nobody waits for its result
log = structlog.get_logger()


class Overflow:
    """Keeps the inboxes of a host filled; `wake` tells the worker that it has something to do again."""

    def __init__(self, host: GraphHost, catch_up: CatchUp, device: DeviceThread, wake: Callable[[], None]) -> None:
        self._host, self._catch_up, self._device, self._wake = host, catch_up, device, wake
        self._files = ThreadPoolExecutor(1, "overflow")
        self._closing = ExitStack()
        self._reader: LogReader | None = None  # of that thread; kept, because opening one is work
        self._failures = 0
        self._room = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None
        host.turns.on_room = self._on_room

    async def run(self) -> None:
        """Read whatever there is room for until cancelled."""
        self._running, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        while True:
            self._room.clear()
            left = await self._device.run(self._host.turns.next_left, SLICE)
            if left is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._room.wait(), IDLE)
            else:
                await self._read_on(left)

    async def stop(self) -> None:
        """Give up what is under way, while the device's thread is still there for it."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running], timeout=STOP_WITHIN)
        self._files.submit(self._closing.close)
        self._files.shutdown(wait=False)

    async def _read_on(self, left: LeftInLog) -> None:
        graphs = [hosted.graph.name for hosted in left.graphs]
        try:
            arrivals = await asyncio.get_running_loop().run_in_executor(self._files, self._read, left)
        except Exception as error:
            pause = growing_pause(self._failures)
            self._failures += 1
            log.error("overflow_unread", partition=left.partition, problem=str(error) or repr(error), again_in=pause)
            for name in graphs:
                await self._device.run(self._host.waiting.report, name, error, pause)
            await asyncio.sleep(pause)
            return
        if self._failures:
            self._failures = 0
            for name in graphs:
                await self._device.run(self._host.waiting.end_incidents, name)
        await self._device.run(self._host.turns.read_on, left, arrivals)
        self._wake()

    def _read(self, left: LeftInLog) -> list[Arrival]:
        if self._reader is None:
            self._reader = self._closing.enter_context(self._catch_up.open())
        keys = {place.key for place in left.inboxes}
        try:
            found = self._catch_up.records(self._reader, left.partition, left.graphs, left.start, left.end)
            return [arrival_of(record) for record in found if record.key in keys]
        except Exception:
            self._reader = None
            self._closing.close()
            raise

    def _on_room(self) -> None:
        """Called on the device's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._room.set)
