"""`adatkg replay` as a user runs it."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from adatkg.main import main
from adatkg_core.datasets import synthesize, write_dataset
from adatkg_core.messages import Question, decode_event
from streams.kafka import Connection, Record, open_log, partition_of

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 10 times, 8 facts at each."""
    folder = tmp_path_factory.mktemp("data") / "graph"
    write_dataset(synthesize(30, 4, 10, 8, seed=2), folder)
    return folder


@pytest.fixture
def prefix() -> str:
    """Topics that no other test has."""
    return f"replay-cli-{uuid.uuid4().hex[:12]}"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setenv("ADATKG_LOG", "warning")
    monkeypatch.setattr("sys.argv", ["adatkg", "replay", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def log_of(bootstrap: str, prefix: str, graph: str) -> list[Record]:
    with open_log(Connection(bootstrap), f"{prefix}.events") as log:
        partition = partition_of(graph, len(log.partitions()))
        return list(log.read(partition, *log.bounds(partition)))


def test_the_report_is_what_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, bootstrap: str, prefix: str, data: Path
) -> None:
    place = ("--bootstrap", bootstrap, "--topic-prefix", prefix)
    flags = ("--graph", "live", "--from", "2", "--to", "6", "--queries-from", "5", "--k", "4")
    assert run(monkeypatch, str(data), *flags, *place, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    log = log_of(bootstrap, prefix, "live")
    events = [decode_event(record.value, None) for record in log]
    asked = [event for event in events if isinstance(event, Question)]
    assert {record.key for record in log} == {b"live"}
    assert {event.query.t for event in asked} == {5, 6} and {event.query.k for event in asked} == {4}
    assert printed.pop("seconds") > 0 and printed.pop("messages_per_second") > 0
    assert printed == {
        "graph": "live",
        "replay": log[0].header("replay"),
        "messages": len(log),
        "facts": len(log) - len(asked),
        "queries": len(asked),
        "remaining": 0,
        "lag_seconds": 0.0,
        "last_time": 6,
        "interrupted": False,
        "resumed_at": None,
    }

    assert run(monkeypatch, str(data), *flags, *place, "--resume", "--speed", "100") == 0
    assert f"all {len(log)} messages of this replay are in the log already" in capsys.readouterr().out
    assert len(log_of(bootstrap, prefix, "live")) == len(log)


def test_without_flags_all_facts_go_out_as_the_data_sets_graph(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, bootstrap: str, prefix: str, data: Path
) -> None:
    assert run(monkeypatch, str(data), "--bootstrap", bootstrap, "--topic-prefix", prefix) == 0
    assert "graph: 80 messages (80 facts, 0 queries)" in capsys.readouterr().out
    log = log_of(bootstrap, prefix, "graph")
    assert [record.key for record in log] == [b"graph"] * 80


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--from", "7", "--to", "3"), "--from 7 is after --to 3"),
        (("--from", "70"), "nothing to publish from time 70"),
        (("--from", "2014-01-05"), "--from 2014-01-05: nothing is known of this graph's calendar"),
        (("--queries-from", "70"), "--queries-from 70 is after 9"),
        (("--k", "-1"), "--k -1"),
        (("--graph", ""), "--graph is empty"),
        *((("--speed", speed), f"--speed {speed}: give ticks a second") for speed in ("0", "-1", "fast", "nan", "inf")),
    ],
)
def test_what_cannot_be_published_is_refused_in_one_line_before_any_broker_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, data: Path, flags: tuple[str, ...], words: str
) -> None:
    assert run(monkeypatch, str(data), *flags, "--bootstrap", "127.0.0.1:1") == 2
    errors = capsys.readouterr().err
    assert words in errors and len(errors.splitlines()) == 1
