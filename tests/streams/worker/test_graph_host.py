"""Deliveries as they may really come: again, in part, to the wrong place, from another log, after a gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from fsspec.implementations.local import LocalFileSystem
from structlog.testing import capture_logs

from adatkg_core.engine import Snapshot
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Source
from adatkg_core.messages import MAX_BYTES, encode_query
from adatkg_core.storage import Bundle, ModelStore, write_document
from streams.kafka import Record, partition_of
from streams.settings import StreamSettings
from streams.worker import BatchResult, GraphHost, IncidentKind, Loader, Replica, loader
from tests.support.fake_worker import (
    GRAPH,
    HERE,
    PARTITIONS,
    RELATION,
    SUBJECT,
    NoLog,
    WholeLog,
    answered_by,
    fact,
    host_of,
    query,
    save_all,
    settings_with_model,
    whole,
)
from tests.support.small_graph import shared_model


@pytest.fixture
def settings(tmp_path: Path) -> StreamSettings:
    return settings_with_model(tmp_path)


def interactions(results: Sequence[BatchResult]) -> list[int]:
    return [orjson.loads(one.body)["interactions"] for one in answered_by(results)]


def save(host: GraphHost, settings: StreamSettings) -> None:
    save_all(host, Loader(settings, Replica()))


def test_an_event_that_comes_again_within_a_batch_is_taken_in_once(settings: StreamSettings) -> None:
    host = host_of(settings)
    order = [0, 1, 2, 3, 1, 2, 3, 4, 5, 0, 6]
    assert interactions(host.process([*map(fact, order), query(7)])) == [7]
    assert interactions(host.process([query(7), query(8)])) == [7]


def test_what_was_answered_by_others_meanwhile_is_taken_in_from_the_log_in_silence(settings: StreamSettings) -> None:
    log = NoLog("first")
    host = host_of(settings, log)
    host.process([replace(fact(offset), answered=answered) for offset, answered in ((3, 3), (4, 3), (9, 9), (10, 9))])
    assert (log.wanted, log.missed) == ([(0, 3), (5, 9)], [])


@pytest.mark.parametrize("loaded", [False, True])
def test_what_was_neither_delivered_nor_answered_is_read_from_the_log_and_answered(
    settings: StreamSettings, loaded: bool
) -> None:
    """As when something that was fetched before partitions were dealt out anew overtakes what is fetched after it."""
    whole_log = [fact(0), query(1), *map(query, range(2, 9)), fact(9)]
    host = host_of(settings, WholeLog("first", whole_log))
    answers = answered_by(host.process(whole_log[:2])) if loaded else []
    assert len(answers) == loaded
    overtaking = [replace(one, answered=3) for one in whole_log[6:]]
    coming_again = [replace(one, answered=3) for one in whole_log[3:8]]
    answers = answered_by(host.process([*overtaking, *coming_again]))
    assert [orjson.loads(one.body)["query"]["id"] for one in answers] == ["q3", "q4", "q5", "q6", "q7", "q8"]
    assert host.capture().positions == {HERE: 10}


def test_what_is_skipped_within_an_assignment_is_read_from_the_log_only_if_the_log_has_lost_it(
    settings: StreamSettings,
) -> None:
    def deliver(log: NoLog) -> list[tuple[int, int]]:
        host = host_of(settings, log)
        host.process([fact(3), replace(fact(5), follows=4), replace(fact(9), follows=6)])
        host.process([replace(query(12), follows=10)])
        return log.missed

    assert deliver(NoLog("first")) == [(0, 3)], "these were marks of transactions"
    assert deliver(NoLog("second", first=7)) == [(0, 3), (4, 5), (6, 9)], "these are gone"


ELSEWHERE = (HERE + 1) % PARTITIONS


def test_an_event_in_a_foreign_partition_is_moved_to_its_graphs_own(settings: StreamSettings) -> None:
    huge = replace(fact(2, ELSEWHERE), value=b"x" * (MAX_BYTES + 1))
    (result,) = host_of(settings).process([fact(0, ELSEWHERE), query(1, ELSEWHERE), huge])
    assert [one.source.offset for one in result.moved] == [0, 1]
    assert [rejected.code for rejected in result.rejected] == ["too-large"]
    assert (result.counts["moved"], result.answered) == (2, [])


def test_of_several_replicas_one_moves(tmp_path: Path) -> None:
    for replica, moved in ((1, 1), (2, 0)):
        host = host_of(settings_with_model(tmp_path / str(replica), replica=replica, replicas=2))
        (result,) = host.process([fact(0, ELSEWHERE)])
        assert len(result.moved) == moved and not result.rejected


def test_a_move_that_is_made_again_has_its_effect_once_also_after_a_restart(settings: StreamSettings) -> None:
    host = host_of(settings)
    moved = [replace(fact(offset), origin=Source(ELSEWHERE, 40 + offset)) for offset in range(4)]
    again = [replace(one, source=Source(HERE, 4 + i)) for i, one in enumerate(moved)]
    assert interactions(host.process([*moved, *again[:2], query(6)])) == [4]
    save(host, settings)
    started = host_of(settings)
    late = [replace(one, source=Source(HERE, 7 + i)) for i, one in enumerate(moved)]
    other = replace(fact(11), origin=Source(ELSEWHERE + 1, 0))
    assert interactions(started.process([*late, other, query(12)])) == [5]


@pytest.mark.parametrize(
    ("asks", "says"), [({"k": 11}, "k asks for 11"), ({"rank_of": list("abcd")}, "rank_of asks for 4")]
)
def test_a_query_that_asks_for_too_much_is_a_dead_letter(tmp_path: Path, asks: dict[str, Any], says: str) -> None:
    host = host_of(settings_with_model(tmp_path, max_k=10, max_ranked=3))
    value = encode_query("q", RELATION, "next", s=SUBJECT, **asks)
    (result,) = host.process([fact(0), replace(query(1), value=value), query(2)])
    (rejected,) = result.rejected
    assert rejected.code == "too-much" and says in rejected.detail and len(result.answered) == 1


KEYS = [
    b"x" * 240,
    b"x" * 241,
    "\u00e4".encode() * 60,
    "\U0001f600".encode() * 21,
    b"x" * 5_000,
    b"../../etc",
    b"..",
    b".hidden",
    b"a/b\\c:d*?",
    b"\xff\xfe",
    b"nul\0",
    b" ",
    b"",
    None,
]


@pytest.mark.parametrize("key", KEYS)
def test_any_key_names_a_graph_or_makes_a_dead_letter_and_the_next_graph_goes_on(
    settings: StreamSettings, key: bytes | None
) -> None:
    partition = partition_of(key or b"", PARTITIONS)
    host = host_of(settings)
    (result,) = host.process([replace(query(0, partition), key=key)])
    (rejected,) = result.rejected
    quoted = len(quote((key or b"").decode(errors="replace"), safe=""))
    assert rejected.code == ("no-model" if result.graph else "no-graph")
    assert (quoted > 240) <= (rejected.code == "no-graph")
    assert interactions(host.process([query(1)])) == [0]


def test_a_partition_that_has_moved_elsewhere_is_forgotten_with_its_graphs(settings: StreamSettings) -> None:
    host = host_of(settings)
    host.process([fact(0)])
    host.keep_only([HERE])
    assert host.find("g") is not None
    host.keep_only([(HERE + 1) % PARTITIONS])
    assert host.find("g") is None and host.capture().states == ()


def test_a_snapshot_of_another_log_is_neither_used_nor_in_the_way(settings: StreamSettings) -> None:
    old = host_of(settings)
    old.process([fact(offset) for offset in range(20)])
    save(old, settings)
    new = host_of(settings, NoLog("second"))
    assert interactions(new.process([fact(0), query(1)])) == [1]
    save(new, settings)
    again = host_of(settings, NoLog("second"))
    assert interactions(again.process([query(2)])) == [1]


def test_a_capture_that_was_not_saved_is_captured_again(settings: StreamSettings) -> None:
    host = host_of(settings)
    host.process([fact(0)])
    assert len(host.capture().states) == len(host.capture().states) == 1
    save(host, settings)
    assert host.capture().states == ()


# -- a log of which the beginning is gone ---------------------------------------------------------------------------


def test_a_log_cut_by_retention_is_told_and_the_graph_begins_with_what_is_kept(settings: StreamSettings) -> None:
    log = NoLog("first", first=100)
    with capture_logs() as said:
        assert interactions(host_of(settings, log).process([fact(150), query(151)])) == [1]
    assert [line["log_level"] for line in said if line["event"] == "incident"] == ["error"]
    assert lost(log) == ["offsets 0 to 99"]
    assert log.wanted == [(100, 150)], "the events that are kept must be caught up with, and no others"


def test_a_snapshot_from_before_the_cut_is_used_and_what_is_missing_is_told(settings: StreamSettings) -> None:
    before = host_of(settings)
    before.process([fact(offset) for offset in range(20)])
    save(before, settings)
    log = NoLog("first", first=100)
    assert interactions(host_of(settings, log).process([fact(150), query(151)])) == [21]
    assert lost(log) == ["offsets 20 to 99"]


def test_what_is_gone_when_a_gap_is_filled_is_told(settings: StreamSettings) -> None:
    log = WholeLog("first", [fact(offset) for offset in range(30)])
    host = host_of(settings, log)
    host.process([fact(0), fact(1)])
    log.first = 12
    assert interactions(host.process([fact(20), query(21)])) == [2 + 8 + 1]
    assert lost(log) == ["offsets 2 to 11"]


def test_a_log_that_is_cut_while_it_is_read_is_told(settings: StreamSettings) -> None:
    class Cut(WholeLog):
        def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
            self.first = 8
            yield from super().read(partition, start, end)

    log = Cut("first", [fact(offset) for offset in range(10)])
    host_of(settings, log).process([query(10)])
    assert lost(log) == ["offsets 0 to 7"]


def test_gaps_that_are_no_losses_and_a_log_that_is_whole_are_no_incident(settings: StreamSettings) -> None:
    log = WholeLog("first", [fact(offset) for offset in range(0, 20, 2)])  # as markers of transactions leave it
    host = host_of(settings, log)
    host.process([fact(0), fact(10)])
    host.process([fact(18)])
    assert log.incidents.open() == []


# -- a fault costs one graph ----------------------------------------------------------------------------------------


def test_a_graph_whose_bundle_cannot_be_used_is_set_aside_and_the_others_go_on(settings: StreamSettings) -> None:
    other = neighbour(settings)
    spoil_bundle(settings, "g")
    log = WholeLog("first")
    host = host_of(settings, log)
    results = host.process([fact(0), fact(1, key=other), query(2), query(3, key=other)])
    assert [one.arrival.source.offset for one in answered_by(results)] == [3]
    assert [result.counts["waiting"] for result in results if result.graph == "g"] == [2]
    assert not [one for result in results for one in result.rejected], "its queries wait too"
    (incident,) = log.incidents.open()
    assert (incident.graph, incident.kind) == ("g", IncidentKind.BAD_ARTIFACT) and "checksum" in incident.detail
    capture = host.capture()
    assert capture.positions == {HERE: 4} and capture.waiting == {HERE: 0}


@pytest.mark.parametrize(
    ("break_", "kind", "detail"),
    [
        ("encoder", IncidentKind.BAD_ARTIFACT, "no such encoder"),
        ("before", IncidentKind.BAD_ARTIFACT, "names no version"),
        ("store", IncidentKind.UNREACHABLE, "ClientError"),
        ("log", IncidentKind.UNREACHABLE, "nothing came"),
        ("mistake", IncidentKind.FAILED, "KeyError"),
    ],
)
def test_whatever_keeps_a_graph_from_loading_is_told_as_what_it_is(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch, break_: str, kind: IncidentKind, detail: str
) -> None:
    log = WholeLog("first")
    host = host_of(settings, log)
    if break_ == "encoder":

        def no_encoder(*_: Any, **__: Any) -> None:
            raise InputError("no such encoder; install it")

        monkeypatch.setattr(loader, "load_encoder", no_encoder)
    elif break_ == "before":
        write_document(f"{settings.models}/g/present.json", {"version": "v1", "before": None})
    elif break_ == "store":
        monkeypatch.setattr(LocalFileSystem, "cat_file", failing(type("ClientError", (Exception,), {})("SlowDown")))
    elif break_ == "log":
        log.fails = AdatkgError("nothing came for 60 s")
    else:
        monkeypatch.setattr(Loader, "begin", failing(KeyError("entities")))
    (result,) = host.process([fact(0), query(1)])
    assert result.counts["waiting"] == 2 and not result.rejected
    (incident,) = log.incidents.open()
    assert (incident.graph, incident.kind) == ("g", kind) and detail in incident.detail
    assert incident.next_try is not None and incident.next_try > incident.since


@pytest.mark.parametrize("lacks", ["pending", "entities", "watermark", "wrong type"])
def test_a_snapshot_that_lacks_something_is_passed_over_for_the_log(settings: StreamSettings, lacks: str) -> None:
    host = host_of(settings)
    host.process([fact(offset) for offset in range(5)])
    state = whole(*host.capture().states)
    tensors, meta = dict(state.snapshot.tensors), dict(state.snapshot.meta)
    if lacks == "pending":
        del tensors["pending"]
    elif lacks == "wrong type":
        meta["entities"] = 7
    else:
        del meta[lacks]
    Loader(settings, Replica()).save(replace(state, snapshot=Snapshot(tensors, meta)))
    log = WholeLog("first", [fact(offset) for offset in range(5)])
    assert interactions(host_of(settings, log).process([query(5)])) == [5] and log.incidents.open() == []


def test_a_batch_that_fails_costs_the_state_of_its_graph_and_nothing_else(
    settings: StreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = neighbour(settings)
    log = WholeLog("first")
    host = host_of(settings, log)
    host.process([fact(0), fact(1, key=other)])
    failing_graph = host.find("g")
    assert failing_graph is not None
    monkeypatch.setattr(failing_graph.graph, "apply", failing(RuntimeError("halfway")))
    results = host.process([fact(2), query(3, key=other)])
    assert len(answered_by(results)) == 1 and host.find("g") is None
    assert [(one.graph, one.kind, one.detail) for one in log.incidents.open()] == [
        ("g", IncidentKind.FAILED, "RuntimeError: halfway")
    ]
    capture = host.capture()
    assert [state.graph for state in capture.states] == [other.decode()] and capture.waiting == {HERE: 2}


def test_two_groups_do_not_take_each_others_snapshots(settings: StreamSettings) -> None:
    first = host_of(settings)
    first.process([fact(offset) for offset in range(5)])
    save(first, settings)
    apart = replace(settings, group="another")
    log = WholeLog("first", [fact(offset) for offset in range(5)])
    host = host_of(apart, log)
    assert len(answered_by(host.process([query(0), query(1)]))) == 2, "nobody of this group has answered these"
    save(host, apart)
    assert sorted(path.name for path in Path(settings.snapshots).iterdir()) == ["@another", "g"]
    assert interactions(host_of(settings).process([query(5)])) == [5]


def neighbour(settings: StreamSettings) -> bytes:
    """Another graph of the same partition, with a model."""
    name = next(name for i in range(100) if partition_of(name := f"n{i}", PARTITIONS) == HERE)
    store = ModelStore(settings.models)
    store.put(name, Bundle(shared_model("default"), GRAPH.relations, (), "v1"), None)
    store.make_present(name, "v1")
    return name.encode()


def spoil_bundle(settings: StreamSettings, graph: str) -> Path:
    place = Path(settings.models) / graph / "bundles" / "v1" / "meta.json"
    place.write_bytes(place.read_bytes().replace(b"version", b"Version", 1))
    return place


def failing(problem: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise problem

    return fail


def lost(log: NoLog) -> list[str]:
    """Which offsets are told to be gone."""
    found = [one.detail for one in log.incidents.open() if one.kind == IncidentKind.RECORDS_LOST]
    return [detail[detail.index("offsets") : detail.index(" are no longer")] for detail in found]
