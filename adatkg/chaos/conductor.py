"""The order of things in a run of chaos, from nothing to the verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import torch

from adatkg.chaos.checker import Verdict
from adatkg.chaos.evidence import gather, judge
from adatkg.chaos.faults import KINDS, lane_of, strike
from adatkg.chaos.first_models import FIRST, add_models, generate
from adatkg.chaos.messages import Messages
from adatkg.chaos.schedule import Fault, schedule
from adatkg.chaos.snapshots import newest_states
from adatkg.chaos.system import CONFIG, System
from adatkg.chaos.watch import Awaited, Watch
from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import Stop

GRAPHS = ("north", "harbour", "valley", "market", "south")  # the first and the third share a partition
CALM = 10.0  # seconds of stream after the last fault
_FIRST_ANSWER = 300.0  # seconds until the workers answer at all, on a busy machine
_DRAIN = 300.0  # seconds without a single new answer after which the rest is called missing
_ENOUGH = 20  # queries that have an answer before anything is harmed
_LOOK = 1.0  # seconds
Report = Callable[[str, int, int | None], None]  # stage, done, of how many


@dataclass(frozen=True)
class Plan:
    """One run. `gap` is the mean time between two faults, `rate` events of a graph in a second."""

    folder: Path
    minutes: float
    seed: int
    graphs: int = 3
    workers: int = 2
    gap: float = 15.0
    rate: float = 2.0
    kinds: tuple[str, ...] = tuple(KINDS)


@dataclass
class Outcome:
    """What came of a run."""

    verdict: Verdict
    faults: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)  # kinds that are impossible here, and why
    restarts: int = 0  # of workers that ended by themselves
    events: int = 0
    seconds: float = 0.0  # under faults


def conduct(plan: Plan, stop: Stop, report: Report) -> Outcome:
    """Run the plan, or as much of it as there is until someone asks for the end, and judge what it left."""
    torch.set_num_threads(1)  # workers and broker need the cores
    with System(plan.folder, GRAPHS[: plan.graphs], plan.workers) as system:
        streams = _begin(plan, system, report)
        skipped = {kind: why for kind in plan.kinds if (why := KINDS[kind].why_not(system)) is not None}
        spans = {kind: (KINDS[kind].least, KINDS[kind].most) for kind in plan.kinds if kind not in skipped}
        faults = schedule(plan.seed, plan.minutes * 60, spans, plan.gap)
        system.stream.start([one.live() for one in streams], plan.rate)
        report("first answers", 0, None)
        _await_answers(system, stop)
        began = time.monotonic()
        struck = _strike(system, faults, plan.minutes * 60, stop, report)
        outcome = Outcome(Verdict(), struck, skipped, seconds=round(time.monotonic() - began, 1))
        system.renew_workers()
        stop.wait(CALM)
        system.stream.stop()
        report("waiting for answers", 0, None)
        _drain(system)
        notes = system.stop_workers()
        report("checking", 0, None)
        evidence = gather(system.connection, system.topics, system.journal.folder)
        states = newest_states(system.snapshots, system.graphs, evidence.eras[-1].log)
        outcome.verdict = judge(evidence, states, system.store, system.first_versions())
        for note in notes:
            outcome.verdict.note(note)
        outcome.restarts, outcome.events = system.restarts, sum(len(era.events) for era in evidence.eras)
    return outcome


def _begin(plan: Plan, system: System, report: Report) -> list[Messages]:
    """Broker, models, the past of every graph in the log, workers."""
    broker = system.lane("broker", system.start_broker)
    streams = []
    for number, graph in enumerate(system.graphs):
        report("first models", number, len(system.graphs))
        dataset = generate(plan.seed, number)
        add_models(system.store, graph, dataset, CONFIG, plan.folder / "training")
        streams.append(Messages(graph, dataset, FIRST, plan.seed))
    broker.result()
    system.start_workers()
    for one in streams:
        system.stream.send(one.past())
    return streams


def _await_answers(system: System, stop: Stop) -> None:
    """Wait until every graph is answered for; whatever is wrong before the first fault is no chaos."""
    with closing(Watch(system.broker.bootstrap, system.topics)) as watch:
        deadline = time.monotonic() + _FIRST_ANSWER
        asked: set[Awaited] = set()
        while (len(asked) < _ENOUGH or watch.missing(asked)) and not stop.wait(_LOOK):
            asked = asked if len(asked) >= _ENOUGH else set(system.stream.asked)
            if time.monotonic() > deadline:
                logs = ", ".join(str(worker.log) for worker in system.workers)
                raise AdatkgError(f"no answers within {_FIRST_ANSWER:.0f} s, before any fault; look into {logs}")


def _strike(system: System, faults: list[Fault], seconds: float, stop: Stop, report: Report) -> Counter[str]:
    """Let every fault happen at its time, and wait until all of them are over; how many of each kind there were."""
    began, under_way = time.monotonic(), list[tuple[Fault, Future[None]]]()
    for fault in [*faults, None]:
        at = seconds if fault is None else fault.at
        while (left := began + at - time.monotonic()) > 0 and not stop.wait(min(left, _LOOK)):
            if system.stream.problem is not None:
                raise AdatkgError(f"the producer failed: {system.stream.problem!r}")
            report("seconds of chaos", int(time.monotonic() - began), int(seconds))
        if fault is None or stop.asked:
            break
        under_way.append((fault, system.lane(lane_of(system, fault), _task(system, fault))))
    report("faults come to their end", 0, None)
    for _, future in under_way:
        future.result()
    return Counter(fault.kind for fault, _ in under_way)


def _task(system: System, fault: Fault) -> Callable[[], None]:
    return lambda: strike(system, fault)


def _drain(system: System) -> None:
    """Wait until everything is answered, or nothing comes any more."""
    wanted = system.stream.asked | system.stream.garbage
    with closing(Watch(system.broker.bootstrap, system.topics)) as watch:
        before, deadline = -1, time.monotonic() + _DRAIN
        while (left := len(watch.missing(wanted))) and time.monotonic() < deadline:
            if left != before:
                before, deadline = left, time.monotonic() + _DRAIN
            time.sleep(_LOOK)
