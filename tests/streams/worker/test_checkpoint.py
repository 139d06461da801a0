"""A kill between any two steps of a snapshot, over a log, a topic and a store that are plain lists.

Each test asks what the next start would find. It begins with the newest state that was saved, is delivered everything
from what was committed on, and answers only what lies beyond both.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError
from streams.settings import StreamSettings
from streams.worker import Checkpointer, DeviceThread, IncidentKind, Incidents, Metrics, checkpoint
from streams.worker.capture import Capture

EVERY = 5  # events that a snapshot covers
GRAPHS = ("one", "two")  # both take in every event
COPIED_IN = 3  # steps


class Killed(BaseException):
    """The process ends here: nobody catches it."""


@dataclass
class FakeState:
    """The state of one graph, which is copied in steps."""

    graph: str
    offset: int
    log: FakeLog

    def copy(self) -> Iterator[None]:
        for _ in range(COPIED_IN):
            self.log._step(f"copy {self.graph}")
            self.log.during_copy()
            yield

    def saved(self) -> FakeState:
        return self

    def let_go(self) -> None:
        """Nothing is held."""


class FakeLog:
    """Events 0, 1, 2 and so on, each with an answer; and host, publisher and store of the worker that reads them."""

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition
        self.taken_in = 0  # in memory: gone with the process
        self.answered: list[int] = []  # durable at the brokers
        self.store: dict[str, int] = {}  # up to where the newest snapshot of each graph has the log
        self.committed: list[tuple[int, int]] = []
        self.waits_at: int | None = None  # the first event of a graph that is set aside
        self.fails: dict[str, BaseException] = {}  # what the next call of a step raises
        self.metrics, self.incidents = Metrics(), Incidents()
        self.during_save: Callable[[], None] = lambda: None
        self.during_copy: Callable[[], None] = lambda: None

    def _step(self, name: str) -> None:
        if name in self.fails:
            raise self.fails.pop(name)

    # As the checkpointer sees its parts.

    def capture(self) -> Capture:
        self._step("capture")
        states: Any = tuple(FakeState(graph, self.taken_in, self) for graph in GRAPHS)
        graphs: Any = tuple(SimpleNamespace(partition=self.partition) for _ in GRAPHS)
        waiting = {} if self.waits_at is None else {self.partition: self.waits_at}
        return Capture(states, {self.partition: self.taken_in}, graphs, waiting)

    async def flush(self) -> None:
        self._step("flush")
        self.answered = list(range(self.taken_in))

    def save(self, state: Any) -> None:
        self._step(f"save {state.graph}")
        self.store[state.graph] = state.offset
        self.during_save()

    async def commit(self, partition: int, offset: int) -> None:
        self._step("commit")
        self.committed.append((partition, offset))

    def saved(self, capture: Capture) -> None:
        self._step("saved")

    # As a test and the next start see it.

    def process(self, made: Checkpointer, count: int) -> None:
        """The next events, applied to the state in memory."""
        with made.processing():
            self.taken_in += count
        made.took(count)

    @property
    def next_start(self) -> tuple[int, int]:
        """The first event delivered again, and the first one answered; nothing may be lost before either."""
        states = [self.store.get(graph, 0) for graph in GRAPHS]
        delivered = self.committed[-1][1] if self.committed else 0
        answers = max(*states, delivered)
        assert self.committed == sorted(self.committed), "what was committed never goes back"
        assert delivered <= min(states), "committed, but in no state that is saved"
        assert set(range(answers)) <= set(self.answered), "an answer is lost: the next start will not give it"
        return delivered, answers


def run(scenario: Callable[[Checkpointer], Awaitable[None]], log: FakeLog, **options: Any) -> None:
    """A scenario over this log, until it ends or the process is killed."""
    parts: Any = log

    async def started() -> None:
        settings = StreamSettings(**{"snapshot_events": EVERY, "snapshot_seconds": 3600.0} | options)
        device = DeviceThread()
        made = Checkpointer(settings, device, parts, parts, parts, log.metrics, log.incidents, log.commit)
        try:
            await scenario(made)
        except Killed:
            pass
        finally:
            device.close()
            made.close()

    asyncio.run(started())


def settle_killed(log: FakeLog, step: str, count: int = EVERY) -> FakeLog:
    """Take in some events and make them durable, with a kill in one step."""

    async def scenario(made: Checkpointer) -> None:
        log.process(made, count)
        log.fails[step] = Killed()
        await made.settle()
        raise AssertionError(f"nothing was killed in {step}")

    run(scenario, log)
    return log


# -- a kill between two steps -----------------------------------------------------------------------------------


def test_killed_before_anything_is_copied() -> None:
    log = settle_killed(FakeLog(), "capture")
    assert (log.answered, log.store, log.next_start) == ([], {}, (0, 0))


def test_killed_when_one_of_two_states_is_copied() -> None:
    log = settle_killed(FakeLog(), "copy two")
    assert (log.answered, log.store, log.next_start) == ([], {}, (0, 0))


def test_killed_when_the_states_are_copied_but_the_answers_not_durable() -> None:
    log = settle_killed(FakeLog(), "flush")
    assert (log.answered, log.store, log.next_start) == ([], {}, (0, 0))


def test_killed_when_the_answers_are_durable_but_no_state_is_saved() -> None:
    log = settle_killed(FakeLog(), "save one")
    assert (log.answered, log.store, log.next_start) == ([0, 1, 2, 3, 4], {}, (0, 0))


def test_killed_when_one_of_two_states_is_saved() -> None:
    log = settle_killed(FakeLog(), "save two")
    assert log.store == {"one": 5}
    assert log.next_start == (0, 5)


def test_killed_when_all_is_saved_but_nothing_committed() -> None:
    log = settle_killed(FakeLog(), "saved")
    assert log.store == {"one": 5, "two": 5}
    assert log.next_start == (0, 5), "what comes again is in the states already and must not be answered twice"


def test_killed_before_the_offsets_are_committed() -> None:
    log = settle_killed(FakeLog(), "commit")
    assert log.committed == []
    assert log.next_start == (0, 5)


def test_a_second_snapshot_that_is_killed_leaves_the_first_one_whole() -> None:
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        await made.settle()
        log.process(made, 4)
        log.fails["flush"] = Killed()
        await made.settle()

    run(scenario, log)
    assert log.taken_in == 9
    assert log.next_start == (5, 5)


# -- a step that fails ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["capture", "copy one", "copy two", "flush", "save one", "save two"])
def test_a_step_that_fails_acknowledges_nothing_and_is_tried_again(step: str) -> None:
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        log.fails[step] = AdatkgError("away")
        with capture_logs() as said:
            await made.settle()
        assert [line["problem"] for line in said if line["event"] == "snapshot_failed"] == ["away"]
        assert log.committed == [] and log.next_start[0] == 0
        assert not made.due, "at once it would only fail again"
        await made.settle()

    run(scenario, log)
    assert log.next_start == (5, 5)


def test_what_failed_is_due_again_after_a_pause_though_nothing_new_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "RETRY", 0.05)
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        log.fails["save one"] = AdatkgError("away")
        await made.settle()
        await asyncio.sleep(0.06)
        assert made.due
        made.start()
        async with asyncio.timeout(10):
            while not log.committed:
                await asyncio.sleep(0.01)
        assert not made.due

    run(scenario, log)
    assert log.next_start == (5, 5)


def test_a_batch_that_fails_halfway_is_in_no_snapshot_though_others_before_it_were_good() -> None:
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        with pytest.raises(RuntimeError), made.processing():
            log.taken_in += 5
            raise RuntimeError("halfway")
        assert made.broken
        with capture_logs() as said:
            await made.settle()
        assert [line["event"] for line in said] == ["not_saved"]

    run(scenario, log)
    assert (log.store, log.next_start) == ({}, (0, 0))


# -- meanwhile --------------------------------------------------------------------------------------------------


def test_what_comes_while_a_snapshot_is_written_waits_for_the_next_one() -> None:
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)

        def meanwhile() -> None:
            log.during_save = lambda: None
            log.process(made, 3)

        log.during_save = meanwhile
        await made.settle()
        assert log.next_start == (5, 5)
        await made.settle()

    run(scenario, log)
    assert log.next_start == (8, 8)


def test_batches_go_on_while_the_states_are_copied_and_are_not_in_that_snapshot() -> None:
    log, taken = FakeLog(), list[int]()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)

        def meanwhile() -> None:  # on the device's thread, as a batch between two steps
            taken.append(log.taken_in)
            log.process(made, 1)

        log.during_copy = meanwhile
        await made.settle()
        log.during_copy = lambda: None
        assert log.next_start == (5, 5)
        await made.settle()

    run(scenario, log)
    assert len(taken) == COPIED_IN * len(GRAPHS)
    assert log.next_start == (5 + len(taken), 5 + len(taken))


def test_the_device_is_free_between_two_steps_of_a_copy() -> None:
    log, order = FakeLog(), list[str]()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        log.during_copy = lambda: order.append("step")
        settling = asyncio.create_task(made.settle())
        while not order:
            await asyncio.sleep(0)
        await made._device.run(order.append, "batch")
        await settling

    run(scenario, log)
    assert order.count("step") == COPIED_IN * len(GRAPHS) and order.index("batch") <= 3


def test_what_others_answer_for_now_is_not_committed_here() -> None:
    log = FakeLog(partition=3)

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        made.keep_only({0, 1})
        await made.settle()

    run(scenario, log)
    assert log.committed == []


# -- when it is due ---------------------------------------------------------------------------------------------


def test_a_snapshot_is_due_after_enough_events() -> None:
    log, due = FakeLog(), list[bool]()

    async def scenario(made: Checkpointer) -> None:
        for count in (EVERY - 1, 1):
            log.process(made, count)
            due.append(made.due)

    run(scenario, log)
    assert due == [False, True]


def test_a_snapshot_is_due_after_a_while_with_something_new_and_never_without() -> None:
    log, due = FakeLog(), list[bool]()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 1)
        due.append(made.due)
        await asyncio.sleep(0.3)
        due.append(made.due)
        await made.settle()
        await asyncio.sleep(0.3)
        due.append(made.due)

    run(scenario, log, snapshot_seconds=0.2)
    assert due == [False, True, False]


def test_no_snapshot_is_due_while_one_is_under_way() -> None:
    log, due = FakeLog(), list[bool]()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)

        def meanwhile() -> None:
            log.process(made, 5)
            due.append(made.due)

        log.during_save = meanwhile
        await made.settle()
        due.append(made.due)

    run(scenario, log)
    assert due == [False, False, True]


# -- graphs that wait, and states that cannot be saved ------------------------------------------------------------


def test_nothing_is_committed_from_the_first_event_of_a_graph_that_waits() -> None:
    log = FakeLog()
    log.waits_at = 3

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        await made.settle()
        assert log.committed == [(0, 3)]
        log.process(made, 2)
        await made.settle()
        assert log.committed == [(0, 3)], "what is committed already is not committed again"
        log.waits_at = None  # it is level again
        log.fails["commit"] = AdatkgError("the broker is away")
        await made.settle()
        assert log.committed == [(0, 3)], "what failed is due again"
        await made.settle()

    run(scenario, log)
    assert log.committed == [(0, 3), (0, 7)]


def test_a_commit_that_takes_too_long_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "COMMIT_WITHIN", 0.01)
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        commit, made._commit = made._commit, lambda *_: asyncio.sleep(10)
        with capture_logs() as said:
            await made.settle()
        assert ["check the brokers" in line["problem"] for line in said if line["event"] == "snapshot_failed"] == [True]
        assert log.committed == [] and age(log) > 0
        made._commit = commit
        await made.settle()

    run(scenario, log)
    assert log.committed == [(0, 5)]


def test_of_a_partition_with_a_state_that_could_not_be_saved_nothing_is_committed() -> None:
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        log.fails["save two"] = AdatkgError("no space left")
        await made.settle()
        assert log.store == {"one": 5} and log.committed == []
        await made.settle()

    run(scenario, log)
    assert log.committed == [(0, 5)]


def test_a_state_that_cannot_be_saved_is_an_incident_of_its_graph_until_it_can() -> None:
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        log.fails["save one"] = AdatkgError("no space left")
        await made.settle()
        assert log.store == {"two": 5}, "the other one is saved all the same"
        (incident,) = log.incidents.open()
        assert (incident.graph, incident.kind, incident.detail) == (
            "one",
            IncidentKind.SNAPSHOT_FAILED,
            "no space left",
        )
        assert incident.next_try is not None
        await made.settle()
        assert log.incidents.open() == []

    run(scenario, log)
    assert log.next_start == (5, 5)


# -- its age ------------------------------------------------------------------------------------------------------


def age(log: FakeLog) -> float:
    found = log.metrics.registry.get_sample_value("adatkg_snapshot_age_seconds")
    assert found is not None
    return found


def test_the_age_of_what_is_not_durable_grows_while_no_snapshot_succeeds() -> None:
    log, ages = FakeLog(), list[float]()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 1)
        await asyncio.sleep(0.2)

        def meanwhile() -> None:
            log.process(made, 1)
            ages.append(age(log))
            raise AdatkgError("away")

        log.during_save = meanwhile
        await made.settle()
        assert min(*ages, age(log)) >= 0.2, "what is under way, or has failed, is not durable"
        log.during_save = lambda: None
        await made.settle()
        assert age(log) == 0.0

    run(scenario, log)


def test_a_snapshot_that_was_cancelled_is_due_again_though_nothing_new_comes() -> None:
    log = FakeLog()

    async def scenario(made: Checkpointer) -> None:
        log.process(made, 5)
        released = threading.Event()

        def hang() -> None:
            released.wait(10)

        log.during_save = hang
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(made.settle(), 0.1)
        assert made.due and age(log) > 0 and log.committed == []
        released.set()
        await made.settle()
        assert not made.due

    run(scenario, log)
    assert log.next_start == (5, 5)
