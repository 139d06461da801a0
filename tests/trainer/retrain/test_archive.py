"""The archive holds what an engine would take from the log, whatever happens to it on the way."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors import torch as safetensors_torch
from structlog.testing import capture_logs

from adatkg_core.clock import Clock
from adatkg_core.datasets import synthesize
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Fact
from adatkg_core.messages import encode_fact, encode_query, encode_tick
from adatkg_core.storage import read_artifact
from streams.kafka import ORIGIN, Connection, Record, open_log, partition_of
from tests.support.running_system import World
from tests.support.small_graph import fresh_engine
from tests.support.trainer_logs import DAYS, GRAPH, MemoryLog, messages, named
from trainer.retrain import archive as module
from trainer.retrain.archive import Archive

WORLD = synthesize(30, 4, 20, 10, seed=5)


def fact(s: str, t: int | str, r: str = "Visit", o: str = "B") -> bytes:
    return encode_fact(s, r, o, t)


def segments(folder: Path) -> list[str]:
    return sorted(place.name for place in (folder / "segments").iterdir())


def span(first: int, following: int) -> str:
    return f"{first:020d}-{following:020d}"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are full with 50 facts."""
    monkeypatch.setattr(module, "FULL", 50)


# -- what is in it ------------------------------------------------------------------------------------------------


def test_it_holds_the_facts_of_the_log_in_order(tmp_path: Path, short: None) -> None:
    log = MemoryLog(messages(WORLD))
    archive = Archive(tmp_path, GRAPH)
    assert archive.update(log, 0, DAYS) == len(WORLD.facts) == archive.facts
    assert named(archive.dataset()) == named(WORLD)
    assert named(Archive(tmp_path, GRAPH).dataset()) == named(WORLD)
    assert len(segments(tmp_path)) == len(WORLD.facts) // 50 + (len(WORLD.facts) % 50 > 0)


def test_an_event_that_was_moved_twice_is_there_once_also_when_it_comes_again_later(tmp_path: Path) -> None:
    log = MemoryLog(messages(WORLD, 0, 6))
    moved = [replace(one, headers=((ORIGIN, b"3-%d" % i),)) for i, one in enumerate(log.records)]
    log.records = [replace(one, offset=i) for i, one in enumerate([*moved, *moved[2:]])]
    archive = Archive(tmp_path, GRAPH)
    assert archive.update(log, 0, DAYS) == 6
    log.records += [replace(one, offset=len(log.records) + i) for i, one in enumerate(moved)]
    again = Archive(tmp_path, GRAPH)
    assert (again.update(log, 0, DAYS), again.origins.pairs()) == (0, ((3, 5),))


def test_names_beyond_the_bound_are_left_out_as_an_engine_leaves_them_out(tmp_path: Path) -> None:
    log, archive = MemoryLog(messages(WORLD)), Archive(tmp_path, GRAPH)
    archive.update(log, 0, DAYS, max_entities=12)
    names, wanted = set[str](), []
    for one in named(WORLD):
        if len(names | {one[0], one[2]}) <= 12:
            names |= {one[0], one[2]}
            wanted.append(one)
    assert named(archive.dataset()) == wanted and len(wanted) < len(WORLD.facts)
    with pytest.raises(InputError, match="max_entities = 12, now it is 13; remove this folder"):
        Archive(tmp_path, GRAPH).update(log, 0, DAYS, max_entities=13)


def test_a_second_update_reads_only_what_is_new(tmp_path: Path, short: None) -> None:
    log = MemoryLog(messages(WORLD, 0, 120))
    Archive(tmp_path, GRAPH).update(log, 0, DAYS)
    log.append(messages(WORLD, 120))
    log.seen.clear()
    archive = Archive(tmp_path, GRAPH)
    assert archive.update(log, 0, DAYS) == len(WORLD.facts) - 120
    assert log.seen == list(range(120, len(WORLD.facts)))
    assert named(archive.dataset()) == named(WORLD)
    assert archive.update(log, 0, DAYS) == 0


def test_a_short_segment_grows_instead_of_being_followed(tmp_path: Path, short: None) -> None:
    log = MemoryLog()
    archive = Archive(tmp_path, GRAPH)
    for start in range(0, 49, 7):
        log.append(messages(WORLD, start, start + 7))
        archive.update(log, 0, DAYS)
        assert segments(tmp_path) == [span(0, start + 7)]
    log.append(messages(WORLD, 49, 60))
    archive.update(log, 0, DAYS)
    assert segments(tmp_path) == [span(0, 50), span(50, 60)]


def test_only_the_graphs_own_messages_count(tmp_path: Path) -> None:
    log = MemoryLog([fact("A", 1)])
    log.append([fact("X", 1)], key="another")
    log.append(
        [b"not json", encode_query("q", "Visit", 9, s="A"), encode_fact("A", "Visit", "B", "never"), fact("C", 2)]
    )
    archive = Archive(tmp_path, GRAPH)
    assert archive.update(log, 0, DAYS) == 2
    assert named(archive.dataset()) == [("A", "Visit", "B", 1), ("C", "Visit", "B", 2)]
    assert archive.next == 6


def test_late_and_far_facts_count_as_in_the_engine(tmp_path: Path) -> None:
    graph = WORLD.relations[0]
    times: list[tuple[str, int]] = [
        ("f", 5),
        ("f", 3),
        ("t", 9),
        ("f", 7),
        ("f", 5_000),
        ("t", 5_000),
        ("f", 10),
        ("f", 9),
    ]
    log = MemoryLog(fact(f"e{i}", t, r=graph) if kind == "f" else encode_tick(t) for i, (kind, t) in enumerate(times))
    archive = Archive(tmp_path, GRAPH)
    archive.update(log, 0, DAYS)
    assert [(s, t) for s, _, _, t in named(archive.dataset())] == [
        ("e0", 5),
        ("e1", 5),
        ("e3", 9),
        ("e6", 10),
        ("e7", 10),
    ]
    engine = fresh_engine()
    for i, (kind, t) in enumerate(times):
        if kind == "f":
            engine.observe([Fact(f"e{i}", graph, "B", t)])
        elif t < 1_000:
            engine.advance(t)
    assert engine.watermark == archive.watermark == 10
    strict = Archive(tmp_path / "strict", GRAPH)
    strict.update(log, 0, DAYS, late="refuse")
    assert [(s, t) for s, _, _, t in named(strict.dataset())] == [("e0", 5), ("e6", 10)]


def test_iso_times_are_ticks_of_the_clock(tmp_path: Path) -> None:
    archive = Archive(tmp_path, GRAPH)
    archive.update(MemoryLog([fact("A", "2020-01-03")]), 0, Clock("2020-01-01"))
    dataset = archive.dataset()
    assert dataset.facts[0, 3] == 2 and dataset.granularity == "day"
    with pytest.raises(InputError, match="remove this folder"):
        Archive(tmp_path, GRAPH).update(MemoryLog([fact("A", "2020-01-03")]), 0, Clock("1999-01-01"))


def test_the_valid_split_is_the_newest_window(tmp_path: Path) -> None:
    archive = Archive(tmp_path, GRAPH)
    archive.update(MemoryLog(messages(WORLD)), 0, DAYS)
    dataset = archive.dataset(window=0.25)
    times = dataset.times.tolist()
    assert dataset.split_bounds == (times[-5], times[-1] + 1)
    assert sorted(set(dataset.split("valid")[:, 3].tolist())) == times[-5:]
    assert len(dataset.split("test")) == 0
    assert archive.dataset(window=0.001).split_bounds[0] == times[-1]


def test_up_to_an_offset_nothing_later_shows(tmp_path: Path) -> None:
    archive = Archive(tmp_path, GRAPH)
    log = MemoryLog([fact("A", 1), fact("C", 2, r="Host"), fact("D", 3, r="Sue")])
    archive.update(log, 0, DAYS)
    dataset = archive.dataset(until=2, relations=("Old",))
    assert dataset.entities == ("A", "B", "C") and dataset.relations == ("Visit", "Host", "Old")
    assert len(dataset.facts) == 2


# -- what may happen ----------------------------------------------------------------------------------------------


def test_a_kill_between_writing_and_removing_changes_nothing(
    tmp_path: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog(messages(WORLD, 0, 20))
    Archive(tmp_path, GRAPH).update(log, 0, DAYS)
    log.append(messages(WORLD, 20, 40))
    with monkeypatch.context() as patch:
        patch.setattr(module, "remove_artifact", lambda url: None)
        Archive(tmp_path, GRAPH).update(log, 0, DAYS)
    assert segments(tmp_path) == [span(0, 20), span(0, 40)]
    again = Archive(tmp_path, GRAPH)
    assert named(again.dataset()) == named(WORLD)[:40]
    log.append(messages(WORLD, 40, 45))
    again.update(log, 0, DAYS)
    assert named(again.dataset()) == named(WORLD)[:45] and segments(tmp_path) == [span(0, 45)]


def test_a_reader_that_fails_loses_and_repeats_nothing(tmp_path: Path, short: None) -> None:
    class Failing(MemoryLog):
        def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
            for i, record in enumerate(super().read(partition, start, end)):
                if i == 70:
                    raise AdatkgError("the broker is away")
                yield record

    failing = Failing(messages(WORLD))
    archive = Archive(tmp_path, GRAPH)
    with pytest.raises(AdatkgError, match="away"):
        archive.update(failing, 0, DAYS)
    log = MemoryLog(messages(WORLD))
    assert archive.update(log, 0, DAYS) == len(WORLD.facts) - 50
    assert named(archive.dataset()) == named(WORLD)


def test_facts_lost_to_retention_are_told(tmp_path: Path) -> None:
    log = MemoryLog(messages(WORLD, 0, 30))
    archive = Archive(tmp_path, GRAPH)
    archive.update(log, 0, DAYS)
    log.append(messages(WORLD, 30, 60))
    log.first = 40
    with capture_logs() as said:
        assert archive.update(log, 0, DAYS) == 20
    assert [(one["archived_to"], one["log_begins"]) for one in said if one["event"] == "facts_lost_to_retention"] == [
        (30, 40)
    ]
    assert named(archive.dataset()) == named(WORLD)[:30] + named(WORLD)[40:60]


@pytest.mark.parametrize("damage", ["flipped", "manifest", "gone"])
def test_what_is_damaged_is_read_again(tmp_path: Path, short: None, damage: str) -> None:
    log = MemoryLog(messages(WORLD))
    Archive(tmp_path, GRAPH).update(log, 0, DAYS)
    spoil(tmp_path / "segments" / span(50, 100), damage)
    with pytest.raises(InputError, match="restore the segment"):
        Archive(tmp_path, GRAPH).dataset()
    log.seen.clear()
    archive = Archive(tmp_path, GRAPH)
    archive.update(log, 0, DAYS)
    assert min(log.seen) == 50 and named(archive.dataset()) == named(WORLD)


def test_what_is_damaged_and_no_longer_in_the_log_is_an_error_with_a_remedy(tmp_path: Path, short: None) -> None:
    log = MemoryLog(messages(WORLD))
    Archive(tmp_path, GRAPH).update(log, 0, DAYS)
    spoil(tmp_path / "segments" / span(50, 100), "flipped")
    before, log.first = segments(tmp_path), 60
    with pytest.raises(InputError, match=r"log begins at 60, so the facts from 50 on .* restore the segment"):
        Archive(tmp_path, GRAPH).update(log, 0, DAYS)
    assert segments(tmp_path) == before


def test_damage_that_comes_while_it_is_open_is_mended_by_the_next_update(tmp_path: Path, short: None) -> None:
    log = MemoryLog(messages(WORLD))
    archive = Archive(tmp_path, GRAPH)
    archive.update(log, 0, DAYS)
    spoil(tmp_path / "segments" / span(0, 50), "flipped")
    with pytest.raises(InputError, match="checksum"):
        archive.dataset()
    archive.update(log, 0, DAYS)
    assert named(archive.dataset()) == named(WORLD)


def test_a_segment_for_which_there_is_no_room_loses_and_repeats_nothing(
    tmp_path: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog(messages(WORLD, 0, 20))
    archive = Archive(tmp_path, GRAPH)
    archive.update(log, 0, DAYS)
    log.append(messages(WORLD, 20))
    save, room = safetensors_torch.save_file, iter([True, False])

    def full(tensors: Any, path: Path) -> None:
        if not next(room):
            path.write_bytes(b"part")
            raise OSError(errno.ENOSPC, "No space left on device")
        save(tensors, path)

    with monkeypatch.context() as patched:
        patched.setattr(safetensors_torch, "save_file", full)
        with pytest.raises(AdatkgError, match="No space left on device"):
            archive.update(log, 0, DAYS)
    assert not [name for name in segments(tmp_path) if name.startswith(".")], "what is half written is removed"
    archive.update(log, 0, DAYS)
    assert named(archive.dataset()) == named(WORLD) == named(Archive(tmp_path, GRAPH).dataset())


def test_a_read_that_fails_for_a_moment_removes_no_segment(
    tmp_path: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog(messages(WORLD))
    archive = Archive(tmp_path, GRAPH)
    archive.update(log, 0, DAYS)
    before = segments(tmp_path)
    archive._sound = False  # as after an update that failed
    read, reads = read_artifact, iter([True, False])

    def flaky(*arguments: Any) -> Any:
        if not next(reads):
            raise AdatkgError("the store fails (TimeoutError)")
        return read(*arguments)

    log.first = 150  # what is gone from the log is only in the archive
    with monkeypatch.context() as patched:
        patched.setattr(module, "read_artifact", flaky)
        with pytest.raises(AdatkgError, match="TimeoutError"):
            archive.update(log, 0, DAYS)
    archive.update(log, 0, DAYS)
    assert segments(tmp_path) == before and named(archive.dataset()) == named(WORLD)


def test_another_log_under_the_same_name_is_refused(tmp_path: Path) -> None:
    Archive(tmp_path, GRAPH).update(MemoryLog(messages(WORLD)), 0, DAYS, log_id="one")
    for other, log_id in ((MemoryLog(messages(WORLD, 0, 10)), "one"), (MemoryLog(messages(WORLD)), "two")):
        with pytest.raises(InputError, match="another log"):
            Archive(tmp_path, GRAPH).update(other, 0, DAYS, log_id=log_id)


def spoil(place: Path, damage: str) -> None:
    if damage == "gone":
        shutil.rmtree(place)
    elif damage == "manifest":
        (place / "manifest.json").unlink()
    else:
        path = place / "tensors.safetensors"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)


def test_it_equals_a_direct_read_of_a_real_log(bootstrap: str, tmp_path: Path) -> None:
    world = World(bootstrap, tmp_path)
    world.publish((GRAPH, value) for value in messages(WORLD))
    world.publish([("another", value) for value in messages(WORLD, 0, 5)])
    archive = Archive(tmp_path, GRAPH)
    with open_log(Connection(bootstrap), world.topics.events) as reader:
        partition = partition_of(GRAPH, len(reader.partitions()))
        archive.update(reader, partition, DAYS)
        end = reader.bounds(partition)[1]
    assert named(archive.dataset()) == named(WORLD) and archive.next == end
