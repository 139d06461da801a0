"""States with events that the log has lost are refused, loudly, and what then stands in the log is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from adatkg_core.events import Source
from adatkg_core.storage import LastEvent
from streams.settings import StreamSettings
from streams.worker import Arrival, IncidentKind, Loader, Replica, recovery
from streams.worker.state_check import StateCheck
from tests.support.fake_worker import (
    HERE,
    Delivered,
    FakeWorker,
    WholeLog,
    answered_by,
    fact,
    host_of,
    query,
    save_all,
    settings_with_model,
)
from tests.support.running_system import assert_same_answer

LOG = f"first-{HERE}"


@pytest.fixture
def settings(tmp_path: Path) -> StreamSettings:
    return settings_with_model(tmp_path, batch_events=4)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "IDLE", 0.01)


def events(begin: int, end: int, shift: int = 0) -> list[Arrival]:
    """A fact and a query in turn; with a shift, others at the same places."""
    made = [fact(i + shift) if i % 2 == 0 else query(i + shift) for i in range(begin, end)]
    return [replace(one, source=Source(HERE, begin + i)) for i, one in enumerate(made)]


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert_same_answer(mine, theirs)


def save_at(settings: StreamSettings, log: WholeLog, *ends: int) -> None:
    """Take the log in and save the state at each of these offsets."""
    host, loader, begin = host_of(settings, log), Loader(settings, Replica()), 0
    for end in ends:
        host.process(log.arrivals[begin:end])
        save_all(host, loader)
        begin = end


def kept(settings: StreamSettings) -> list[int]:
    return sorted(int(path.name.partition("@")[0]) for path in (Path(settings.snapshots) / "g" / LOG).iterdir())


def run(settings: StreamSettings, log: WholeLog, first: int | None, wanted: int) -> FakeWorker:
    """A worker to which the log is delivered from `first` on, until so many answers are there and all is saved."""
    one = FakeWorker(settings, log=log)

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)

    async def scenario() -> None:
        one.intake.assigned([HERE])
        one.recovery.assigned([HERE])
        tasks = [asyncio.create_task(one.worker.run()), asyncio.create_task(one.recovery.run())]
        async with asyncio.timeout(30):
            for arrival in log.arrivals[first:] if first is not None else ():
                await one.intake.put(Delivered(arrival))
            await until(lambda: len(one.outbox.sent) == wanted and one.host.find("g") is not None)
            await one.checkpointer.settle()
            await one.recovery.stop()
            await one.worker.stop()
            await asyncio.gather(*tasks, return_exceptions=True)
            await one.worker.close()

    asyncio.run(scenario())
    return one


def answers(one: FakeWorker) -> list[Any]:
    return [orjson.loads(message.value) for _, message in one.outbox.sent]


def calm(tmp_path: Path, log: WholeLog) -> list[Any]:
    results = host_of(settings_with_model(tmp_path / "calm")).process(log.arrivals)
    return [orjson.loads(one.body) for one in answered_by(results)]


@pytest.mark.parametrize("end", [14, 40], ids=["the log ends before the state", "the log has grown past it"])
def test_a_state_with_events_that_the_log_has_lost_is_told_with_its_offset_and_all_behind_an_older_one_is_answered(
    settings: StreamSettings, tmp_path: Path, end: int
) -> None:
    log = WholeLog("first", events(0, 20))
    save_at(settings, log, 8, 16, 20)
    log.arrivals = [*log.arrivals[:12], *events(12, end, shift=100)]
    one = run(settings, log, 12 if end == 14 else 30, (end - 8) // 2)
    assert_same(answers(one), calm(tmp_path, log)[4:])  # from offset 8 on
    (incident,) = one.incidents.open()
    assert (incident.graph, incident.kind) == ("g", IncidentKind.RECORDS_LOST)
    assert f"now ends at {end}" in incident.detail and "offset 20" in incident.detail
    assert "begins again at 8" in incident.detail
    assert kept(settings) == [8, end], "what was refused is not in the way of what is new"


def test_a_quiet_graph_whose_state_has_lost_events_answers_what_came_in_their_place(
    settings: StreamSettings, tmp_path: Path
) -> None:
    log = WholeLog("first", events(0, 20))
    save_at(settings, log, 8, 20)
    log.arrivals = [*log.arrivals[:12], *events(12, 30, shift=100)]
    one = run(settings, log, None, 11)
    assert_same(answers(one), calm(tmp_path, log)[4:])
    assert [incident.kind for incident in one.incidents.open()] == [IncidentKind.RECORDS_LOST]


def test_the_same_event_at_the_same_place_is_known_again_and_one_that_is_deleted_is_not_asked_for(
    settings: StreamSettings,
) -> None:
    log = WholeLog("first", events(0, 20))
    save_at(settings, log, 20)
    state = next(iter(Loader(settings, Replica())._snapshots("g", LOG).newest_first(None, "cpu")))
    assert state.last is not None and state.last.offset == 19
    asked: list[LastEvent] = []

    def holds(last: LastEvent) -> bool:
        asked.append(last)
        return log.holds(HERE, last)

    assert StateCheck(LOG, 0, 20, holds).accepts(state) and asked == [state.last]
    assert StateCheck(LOG, 20, 25, holds).accepts(state) and len(asked) == 1
    assert StateCheck(LOG, 0, 25, holds).accepts(replace(state, last=None)), "as older snapshots are"
    log.arrivals[19] = replace(log.arrivals[19], value=b"another")
    check = StateCheck(LOG, 0, 25, holds)
    assert not check.accepts(state) and check.refused == [(20, "v1")]
