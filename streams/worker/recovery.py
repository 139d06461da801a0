"""Brings graphs that wait: new here beside others, set aside, far behind, or quiet since the start. One at a time.

Files and the log are read on a thread of its own. The device's thread gets slices of at most a batch, in turn with
live batches, so a graph that takes an hour to catch up holds up nobody, and the consumer group hears of us meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import ParamSpec, TypeVar

import structlog

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import growing_pause
from streams.kafka import LogReader, partition_of
from streams.worker.arrival import Arrival, arrival_of
from streams.worker.batch import BatchResult
from streams.worker.catch_up import CatchUp
from streams.worker.device import DeviceThread
from streams.worker.graph_host import GraphHost
from streams.worker.hosted_graph import HostedGraph
from streams.worker.live_graph import LiveGraph
from streams.worker.loader import Loader
from streams.worker.state_check import StateCheck
from streams.worker.waiting_graph import WaitingGraph

IDLE = 0.5  # seconds between looks at whether a graph is due
SLICE = 8_192  # offsets read at once
Turn = Callable[[Callable[[], Sequence[BatchResult]]], Awaitable[bool]]  # does work in turn, and publishes
P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger()


class Recovery:
    """Follows what waits in a host; `turn` has the device for a moment and publishes what comes of it."""

    def __init__(
        self, loader: Loader, host: GraphHost, catch_up: CatchUp, device: DeviceThread, turn: Turn, batch_events: int
    ) -> None:
        self._loader, self._host, self._catch_up, self._device = loader, host, catch_up, device
        self._turn, self._batch_events = turn, batch_events
        self._files = ThreadPoolExecutor(1, "recovery")
        self._ours: set[int] | None = None  # partitions whose quiet graphs are still to be found
        self._quiet: deque[tuple[str, int]] = deque()  # graphs and their partitions, still to be loaded
        self._failures = 0  # to find the quiet ones
        self._running: asyncio.Task[None] | None = None

    def assigned(self, partitions: Iterable[int]) -> None:
        """These partitions are ours now: graphs in them that send nothing are to be seen all the same."""
        self._ours = set(partitions)

    async def run(self) -> None:
        """Bring back what is due until cancelled."""
        self._running, self._host.loads_beside = asyncio.current_task(), True
        while True:
            if self._ours is not None:
                await self._find_quiet(self._ours)
            waiting = await self._device.run(self._next)
            if waiting is None:
                await asyncio.sleep(IDLE)
            else:
                await self.bring_back(waiting)

    async def bring_back(self, waiting: WaitingGraph) -> None:
        """Load a graph if need be, and let it catch up until it is level; what fails is tried again later."""
        try:
            if waiting.hosted is None:
                graph, offset, check = await self._in_files(self._load, waiting)
                await self._device.run_through(self._loader.move(graph))
                await self._device.run(self._host.waiting.bring_in, waiting, graph, offset, check)
            await self._catch_up_with(waiting)
        except Exception as error:
            await self._device.run(self._host.waiting.postpone, waiting, error)

    async def stop(self) -> None:
        """Give up what is under way, while the device's thread is still there for it."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running], timeout=IDLE)
        self._files.shutdown(wait=False, cancel_futures=True)

    async def _find_quiet(self, ours: set[int]) -> None:
        """Which graphs of our partitions have a model, and a snapshot; where the store is away it is asked again."""
        try:
            found = await self._in_files(self._graphs_of, ours)
        except AdatkgError as error:
            pause = growing_pause(self._failures)
            self._failures += 1
            log.error("quiet_graphs_unknown", problem=str(error), again_in=pause)
            await asyncio.sleep(pause)
            return
        await self._device.run(self._host.know, [(name, number) for name, number, _ in found])
        self._failures, self._quiet = 0, deque((name, number) for name, number, is_quiet in found if is_quiet)
        if self._ours is ours:
            self._ours = None

    def _graphs_of(self, ours: set[int]) -> list[tuple[str, int, bool]]:
        """Names and partitions, and whether each has been here before."""
        event_log = self._catch_up.log
        found: list[tuple[str, int, bool]] = []
        for name in self._loader.graphs():
            number = partition_of(name, event_log.partitions)
            if number in ours:
                found.append((name, number, self._loader.has_snapshot(name, event_log.log_id(number))))
        return found

    def _next(self) -> WaitingGraph | None:
        """On the device's thread: who is due; where nobody is, the next one of the quiet ones."""
        waiting = self._host.waiting.next()
        while waiting is None and self._quiet and self._ours is None:  # else they may be others' by now
            waiting = self._host.waiting.expect(*self._quiet.popleft())
        return waiting

    def _load(self, waiting: WaitingGraph) -> tuple[LiveGraph, int, StateCheck]:
        """The graph in plain memory, the offset it stands at, and what states are compared with."""
        check = self._catch_up.check(waiting.partition)
        begun = self._loader.begin(waiting.name, check, waiting.first or 0, "cpu")
        if begun is None:
            raise InputError(f"graph {waiting.name} has no model in {self._loader.models} any more: promote one")
        graph, offset = begun
        log.info("graph_loaded", graph=waiting.name, version=graph.version, snapshot=offset, waits_at=waiting.first)
        return graph, offset, check

    async def _catch_up_with(self, waiting: WaitingGraph) -> None:
        closing = ExitStack()
        reader: LogReader | None = None
        began = end = None
        applied = 0
        try:
            while (offsets := await self._device.run(self._host.waiting.next_range, waiting, SLICE)) is not None:
                if reader is None:
                    reader = await self._in_files(closing.enter_context, self._catch_up.open())
                assert waiting.hosted is not None
                arrivals = await self._in_files(self._read, reader, waiting.hosted, *offsets)
                applied += len(arrivals)
                for start in range(0, len(arrivals), self._batch_events):
                    some = arrivals[start : start + self._batch_events]
                    await self._turn(partial(self._host.waiting.follow, waiting, some, some[-1].source.offset + 1))
                if not await self._turn(partial(self._host.waiting.follow, waiting, (), offsets[1])):
                    return  # the worker ends
                began, end = offsets[0] if began is None else began, offsets[1]
            if began is not None:
                place = {"partition": waiting.partition, "start": began, "end": end}
                log.info("caught_up", graph=waiting.name, applied=applied, **place)
        finally:
            if reader is not None:
                await self._in_files(closing.close)

    def _read(self, reader: LogReader, hosted: HostedGraph, start: int, end: int) -> list[Arrival]:
        key = hosted.graph.name.encode()
        found = self._catch_up.records(reader, hosted.partition, [hosted], start, end)
        return [arrival_of(one) for one in found if one.key == key]

    async def _in_files(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._files, lambda: work(*arguments, **options))
