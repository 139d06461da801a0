"""Deliveries as they may really come: again, in part, to the wrong place, from another log, after a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from structlog.testing import capture_logs

from adatkg_core.events import Source
from adatkg_core.messages import MAX_BYTES, encode_query
from streams.kafka import partition_of
from streams.settings import StreamSettings
from streams.worker import BatchResult, GraphHost, Loader, Replica
from tests.support.fake_worker import (
    HERE,
    PARTITIONS,
    RELATION,
    SUBJECT,
    NoLog,
    answered_by,
    fact,
    host_of,
    query,
    settings_with_model,
)


@pytest.fixture
def settings(tmp_path: Path) -> StreamSettings:
    return settings_with_model(tmp_path)


def interactions(results: Sequence[BatchResult]) -> list[int]:
    return [orjson.loads(one.body)["interactions"] for one in answered_by(results)]


def save(host: GraphHost, settings: StreamSettings) -> None:
    capture = host.capture()
    for state in capture.states:
        Loader(settings, Replica()).save(state)
    host.saved(capture)


def test_an_event_that_comes_again_within_a_batch_is_taken_in_once(settings: StreamSettings) -> None:
    host = host_of(settings)
    order = [0, 1, 2, 3, 1, 2, 3, 4, 5, 0, 6]
    assert interactions(host.process([*map(fact, order), query(7)])) == [7]
    assert interactions(host.process([query(7), query(8)])) == [7]


def test_what_was_delivered_to_others_meanwhile_is_read_from_the_log(settings: StreamSettings) -> None:
    log = NoLog("first")
    host = host_of(settings, log)
    host.process([fact(3), fact(4), fact(9), fact(10)])
    assert log.wanted == [(0, 3), (5, 9)]


def test_what_is_skipped_within_an_assignment_is_read_from_the_log_only_if_the_log_has_lost_it(
    settings: StreamSettings,
) -> None:
    def deliver(log: NoLog) -> list[tuple[int, int]]:
        host = host_of(settings, log)
        host.process([fact(3), replace(fact(5), follows=4), replace(fact(9), follows=6)])
        host.process([replace(query(12), follows=10)])
        return log.wanted

    assert deliver(NoLog("first")) == [(0, 3)], "these were marks of transactions"
    assert deliver(NoLog("second", first=7)) == [(7, 3), (7, 5), (7, 9)], "these are gone"


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
    truncated = [line for line in said if line["event"] == "log_truncated"]
    assert [(line["log_level"], line["wanted"], line["first"]) for line in truncated] == [("error", 0, 100)]
    assert log.wanted == [(100, 150)], "the events that are kept must be caught up with, and no others"


def test_a_snapshot_from_before_the_cut_is_used_and_what_is_missing_is_told(settings: StreamSettings) -> None:
    before = host_of(settings)
    before.process([fact(offset) for offset in range(20)])
    save(before, settings)
    with capture_logs() as said:
        after = host_of(settings, NoLog("first", first=100))
        assert interactions(after.process([fact(150), query(151)])) == [21]
    truncated = [line for line in said if line["event"] == "log_truncated"]
    assert [(line["wanted"], line["first"]) for line in truncated] == [(20, 100)]


def test_a_log_that_is_whole_is_not_called_truncated(settings: StreamSettings) -> None:
    with capture_logs() as said:
        host_of(settings).process([fact(0)])
    assert not [line for line in said if line["event"] == "log_truncated"]
