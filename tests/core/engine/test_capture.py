"""Snapshots that are taken while the stream goes on, whole or of what changed, and restored at any moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adatkg_core.engine import Engine, EngineCapture, Increment, Snapshot
from adatkg_core.errors import InputError
from adatkg_core.events import Fact
from adatkg_core.state import ChangedRows, state_capture
from tests.core.engine.test_engine import KNOWN, NEW, NOW, RELATIONS, each_configuration, logs
from tests.support.small_graph import (
    Event,
    assert_same_answers,
    assert_same_snapshot,
    engine_with_past,
    fresh_engine,
    play,
)

few = settings(
    max_examples=int(os.environ.get("ADATKG_EXAMPLES", "2")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(state_capture, "SLICE", 4_096)
    yield


@dataclass
class Base:
    """A whole snapshot, and what changed since."""

    snapshot: Snapshot
    changes: ChangedRows


class Worker:
    """Plays a log event by event, takes snapshots beside it in small steps, and may be killed at any event."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine, self.name = engine, name
        self.place = 0  # of the next event
        self.stored: list[tuple[int, Snapshot]] = [(0, engine.snapshot())]
        self.base: Base | None = None
        self.kinds: set[str] = set()  # of snapshots that were taken
        self._capture: tuple[int, EngineCapture, Snapshot, ChangedRows] | None = None
        self._copying: Iterator[None] = iter(())

    def begin(self) -> None:
        """Take a snapshot, of what changed where there is something that it can build upon."""
        capture = self.engine.capture(self.base.changes if self.base else None)
        changes = self.engine.state.watch_changes() if capture.is_whole or self.base is None else self.base.changes
        self._capture, self._copying = (self.place, capture, self.engine.snapshot(), changes), capture.copy()

    def copy(self, steps: int) -> None:
        """Some steps of the snapshot under way; the last makes it durable."""
        if self._capture is None:
            return
        place, capture, wanted, changes = self._capture
        end = object()
        if any(next(self._copying, end) is end for _ in range(steps)):
            if capture.is_whole:
                found = capture.snapshot()
                self.base = Base(found, changes)
            else:
                assert self.base is not None
                found = capture.increment().upon(Snapshot(dict(self.base.snapshot.tensors), self.base.snapshot.meta))
            self.kinds.add("whole" if capture.is_whole else "increment")
            assert_same_snapshot(found, wanted)
            self.stored.append((place, found))
            self._capture = None

    def restart(self, which: int) -> None:
        """Killed, and begun anew from one of the snapshots."""
        self.place, snapshot = self.stored[which % len(self.stored)]
        self.engine, self.base, self._capture = fresh_engine(self.name), None, None
        self.engine.restore(snapshot)


@each_configuration
@few
@given(data=st.data())
def test_snapshots_and_restores_in_any_order_give_bitwise_the_state_of_a_calm_run(
    name: str, data: st.DataObject
) -> None:
    log: list[Event] = data.draw(logs())
    calm, worker = engine_with_past(name), Worker(engine_with_past(name), name)
    wanted = play(calm, log)
    answers: dict[int, object] = {}
    choose, kills = Random(data.draw(st.integers(0, 2**32))), 2
    while worker.place < len(log):
        what = choose.random()
        if what < 0.35:
            worker.begin()
        worker.copy(choose.choice((0, 3, 1_000)))
        if what > 0.9 and kills:
            kills -= 1
            worker.restart(choose.randrange(100))
            continue
        answers[worker.place] = play(worker.engine, [log[worker.place]])
        worker.place += 1
    given_ = [one for place in sorted(answers) for one in answers[place]]  # type: ignore[attr-defined]
    assert_same_answers(given_, wanted)
    assert_same_snapshot(worker.engine.snapshot(), calm.snapshot())


def test_a_snapshot_that_is_given_is_empty_afterwards_and_one_that_is_not_stays_whole() -> None:
    engine = busy_worker().engine
    wanted, given = engine.snapshot(), engine.snapshot()
    for one in (wanted, given.given()):
        other = fresh_engine("default")
        other.restore(one)
        assert_same_snapshot(other.snapshot(), wanted)
    assert not given.tensors


def busy_worker() -> Worker:
    """One that has taken a whole snapshot, a fact, and an increment."""
    worker = Worker(engine_with_past(), "default")
    for _ in range(2):
        worker.begin()
        worker.copy(10_000)
        worker.engine.observe(
            [Fact(KNOWN[0], RELATIONS[0], KNOWN[1], NOW + 1), Fact(NEW[0], RELATIONS[0], NEW[1], NOW + 2)]
        )
    assert worker.kinds == {"whole", "increment"}
    return worker


def test_a_snapshot_takes_back_nothing_that_readers_see_already() -> None:
    engine = engine_with_past("model-alone")  # which keeps a journal
    engine.turn_to(NOW + 1)
    capture = engine.capture()
    assert len(engine.pending()) == 0, "what is pending stands in the state as before"
    capture.state.finish()
    assert_same_snapshot(capture.snapshot(), engine_with_past("model-alone").snapshot())


def spoiled(increment: Increment, how: str) -> Increment:
    tensors, rows, kinds, meta = dict(increment.tensors), dict(increment.rows), dict(increment.kinds), increment.meta
    if how == "a row that is not there":
        rows["entity"] = rows["entity"] + 1_000
    elif how == "rows of another type":
        rows["entity"] = rows["entity"].float()
    elif how == "another shape":
        tensors["interactions"] = tensors["interactions"].unsqueeze(1)
    elif how == "no rows at all":
        del rows["entity"]
    elif how == "too few values":
        tensors["interactions"] = tensors["interactions"][:1]
    else:
        meta = {key: value for key, value in meta.items() if key != "entities"}
    return Increment(tensors, rows, kinds, meta)


@pytest.mark.parametrize(
    "how",
    [
        "a row that is not there",
        "rows of another type",
        "another shape",
        "no rows at all",
        "too few values",
        "no names",
    ],
)
def test_an_increment_that_does_not_fit_is_refused_with_one_line(how: str) -> None:
    worker = busy_worker()
    assert worker.base is not None
    capture = worker.engine.capture(worker.base.changes)
    capture.state.finish()
    with pytest.raises(InputError, match="what changed does not fit"):
        spoiled(capture.increment(), how).upon(worker.base.snapshot)
