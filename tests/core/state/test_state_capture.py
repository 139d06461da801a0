"""A copy made in slices is bitwise the state of its moment, whatever is written, grown or taken back meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import file_memory
from adatkg_core.state import GraphState, StateCapture, changed_rows, state_capture
from tests.support.small_graph import assert_same_bits, small_config

RELATIONS = 3
DRAWS = range(12)


@pytest.fixture(autouse=True)
def tiny_slices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(state_capture, "SLICE", 256)
    monkeypatch.setattr(state_capture, "_SCANNED", 32)
    yield


@pytest.fixture(params=["memory", "file"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a copy is made, which is large at once in half of the tests."""
    if request.param == "file":
        monkeypatch.setattr(state_capture, "LARGE", 0)
    return str(tmp_path)


def empty(entities: int = 40) -> GraphState:
    state = GraphState(small_config({"model.enabled": True}), 8, RELATIONS, torch.device("cpu"))
    name(state, entities)
    return state


def name(state: GraphState, more: int) -> None:
    """New entities, as the engine makes them: their text is written once."""
    start = state.entities
    state.reserve(start + more)
    state.tensors["text"][start : start + more] = torch.arange(start, start + more).float().unsqueeze(1)
    state.entities = start + more


def write(state: GraphState, choose: Random, time: int) -> None:
    """What a commit does: rows of entities, slots of tables, and tensors that are written whole."""
    who = torch.tensor(choose.sample(range(state.entities), 5))
    other, relation = who.flip(0), torch.tensor([choose.randrange(2 * RELATIONS) for _ in range(5)])
    state.pair_table.add(state, who, relation, other, time)
    state.relation_table.add(state, relation, torch.zeros_like(relation), other, time)
    state.put("interactions", who, state.tensors["interactions"][who] + 1)
    state.put("ring_time", (who, who % 5), torch.full((5,), time, dtype=torch.int32))
    state.put("prototype_sum", slice(None), state.tensors["prototype_sum"] + 1)
    state.put("followed", (relation, relation), torch.ones(5) * time)


def disturb(state: GraphState, choose: Random, time: int) -> None:
    """Something that a stream does to a state."""
    if choose.random() < 0.3:
        name(state, choose.choice((1, 30)))
    if choose.random() < 0.5:
        write(state, choose, time)
        return
    state.begin()
    write(state, choose, time)
    if choose.random() < 0.5:
        state.rollback()
    else:
        state.keep()


@pytest.mark.parametrize("seed", DRAWS)
def test_what_happens_while_it_is_copied_is_not_in_the_copy(seed: int, folder: str) -> None:
    choose, state = Random(seed), empty()
    for time in range(3):
        disturb(state, choose, time)
    wanted, capture = state.export(), state.capture(folder=folder)
    for time, _ in enumerate(capture.copy(), 3):
        if choose.random() < 0.2:
            disturb(state, choose, time)
    disturb(state, choose, 10_000)
    assert_same_bits(capture.tensors(), wanted)


@pytest.mark.parametrize("ending", ["rollback", "keep"])
def test_what_stands_in_the_state_and_may_be_taken_back_is_not_in_the_copy(ending: str) -> None:
    choose, state = Random(1), empty()
    write(state, choose, 1)
    wanted, pages = state.export(), dict(state.pages)
    state.begin()
    write(state, choose, 2)
    capture = state.capture()
    next(capture.copy())
    getattr(state, ending)()
    write(state, choose, 3)
    capture.finish()
    assert capture.pages == pages
    assert_same_bits(capture.tensors(), wanted)


@pytest.mark.parametrize("seed", DRAWS)
def test_the_rows_that_changed_hold_every_row_that_differs_and_are_as_of_the_moment(seed: int, folder: str) -> None:
    choose, state = Random(seed), empty()
    write(state, choose, 1)
    if seed % 2:
        state.begin()
        write(state, choose, 2)  # stands there tentatively when the watching begins
    before, changes = state.export(), state.watch_changes()
    if seed % 2:
        state.keep()
    for time in range(3, 6):
        disturb(state, choose, time)
    wanted, capture = state.export(), state.capture(changes, folder)
    assert capture.since is changes
    for time, _ in enumerate(capture.copy(), 6):
        if choose.random() < 0.2:
            disturb(state, choose, time)
    found = capture.tensors()
    for tensor, kind in state.kinds().items():
        if kind is None:
            merged = found[tensor]
        else:
            rows = capture.rows[kind][:0] if tensor in state.names_alone() else capture.rows[kind]
            merged = torch.cat((before[tensor], found[tensor][len(rows) :]))
            merged[rows] = found[tensor][: len(rows)]
        assert_same_bits({tensor: merged}, {tensor: wanted[tensor]})


def test_few_changes_make_a_small_copy() -> None:
    choose, state = Random(3), empty(5_000)
    for time in range(5):
        write(state, choose, time)
    whole = state.capture()
    whole.finish()
    changes = state.watch_changes()
    write(state, choose, 9)
    few = state.capture(changes)
    few.finish()
    assert few.size < whole.size / 20
    assert [len(few.rows[kind]) for kind in ("entity", "kin")] == [5, 0]


class Handled(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that are made, filled or looked through."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), options: dict[str, Any] | None = None
    ) -> Any:
        result = function(*arguments, **(options or {}))
        if function.overloadpacket is torch.ops.aten.index_put_:
            self.bytes += sum(index.nbytes for index in arguments[1])
        elif function.overloadpacket is torch.ops.aten.nonzero:
            self.bytes += arguments[0].nbytes + result.nbytes
        elif isinstance(result, Tensor) and not function.is_view and "empty" not in function.name():
            self.bytes += result.nbytes
        return result


def most_of_a_step(capture: StateCapture) -> tuple[int, int]:
    """The most bytes that a step handles, and how many steps there are."""
    most = steps = 0
    copying, end = capture.copy(), object()
    while True:
        with Handled() as handled:
            ended = next(copying, end) is end
        if ended:
            return most, steps
        most, steps = max(most, handled.bytes), steps + 1


@pytest.mark.parametrize("is_whole", [True, False])
def test_no_step_of_a_copy_grows_with_the_state_or_with_what_changed(
    is_whole: bool, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_capture, "SLICE", 4_096)
    monkeypatch.setattr(state_capture, "_SCANNED", 512)
    monkeypatch.setattr(changed_rows, "_ROWS", 64)
    choose, state = Random(9), empty(3_000)
    for time in range(40):
        write(state, choose, time)
    changes = state.watch_changes()
    for start in range(0, 3_000, 50):  # nearly all that there is
        state.put("interactions", torch.arange(start, start + 50), torch.ones(50, dtype=torch.int64))
    most, steps = most_of_a_step(state.capture(None if is_whole else changes, folder))
    assert most <= 4 * 4_096 and steps > 100


def test_a_capture_of_a_state_that_is_reset_is_lost_and_what_changed_is_no_longer_known() -> None:
    choose, state = Random(4), empty()
    write(state, choose, 1)
    changes, capture = state.watch_changes(), state.capture()
    copying = capture.copy()
    next(copying)
    state.reset()
    assert list(copying) and state.capture(changes).since is None
    with pytest.raises(RuntimeError, match="not copied to its end"):
        capture.tensors()


def test_a_capture_that_nobody_wants_any_more_costs_no_further_write_anything() -> None:
    choose, state = Random(5), empty()
    capture = state.capture()
    next(capture.copy())
    overwritten = capture._overwritten
    del capture
    write(state, choose, 1)
    assert overwritten == []


def test_nothing_is_handed_out_before_all_of_it_is_copied() -> None:
    capture = empty().capture()
    next(capture.copy())
    with pytest.raises(RuntimeError, match="not copied to its end"):
        capture.tensors()


def test_a_copy_for_which_there_is_no_room_is_an_error_for_whoever_wants_it_and_the_state_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state_capture, "LARGE", 0)
    choose, state = Random(6), empty()
    write(state, choose, 1)
    with monkeypatch.context() as patched:
        patched.setattr(file_memory, "_allocate", full)
        capture = state.capture(folder=str(tmp_path))
        capture.finish()
    assert not state.is_captured and capture.size == 0
    write(state, choose, 2)
    with pytest.raises(AdatkgError, match="No space left"):
        capture.tensors()


def test_what_is_taken_over_is_not_held_twice_and_is_the_same() -> None:
    choose, state, others = Random(7), empty(), [empty(0), empty(0)]
    for time in range(3):
        write(state, choose, time)
    wanted, given = state.export(), state.export()
    for other, some in zip(others, (wanted, given), strict=True):
        other.load(some, state.entities, dict(state.pages), given=some is given)
        assert_same_bits(other.export(), state.export())
    assert not given and wanted.keys() == state.layout.keys()


@pytest.mark.parametrize(("names", "rows"), [("none", 0), ("auto", 0), ("brackets", 41)])
def test_room_for_groups_is_kept_only_where_names_may_tell_of_them(names: str, rows: int) -> None:
    state = GraphState(small_config({"model.names": names}), 8, RELATIONS, torch.device("cpu"))
    name(state, 40)
    assert state.export()["group_fact_pages"].shape[0] == rows
    assert (state.tensors["role_fact_fill"].shape[0] > 40) == (rows > 0)


def test_a_state_of_before_with_rows_for_groups_that_there_are_none_of_is_read() -> None:
    choose, state, other = Random(8), empty(), empty(0)
    write(state, choose, 1)
    wanted = state.export()
    before = dict(wanted)
    for tensor, spec in state.layout.items():
        if spec.rows == "kin":
            before[tensor] = torch.full((state.entities + 1, *spec.shape), spec.fill, dtype=spec.dtype)
    other.load(before, state.entities, dict(state.pages))
    assert_same_bits(other.export(), wanted)


def test_a_group_where_there_are_none_is_refused() -> None:
    state = empty()
    spoiled = state.export()
    spoiled["group"] = torch.zeros_like(spoiled["group"])
    with pytest.raises(InputError, match="tensor group names something that is not there"):
        state.load(spoiled, state.entities, dict(state.pages))
