from __future__ import annotations

import gzip
import io
import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from adatkg.main import main
from adatkg_core.datasets import load_dataset

Capture = pytest.CaptureFixture[str]

EVENTS = """subject,relation,object,time
Ann,met,Bob,2014-03-02
Ann,met,Bob,2014-03-02
Bob,met,[Carl],2014-03-05
,met,Bob,x
"""


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.csv"
    file.write_text(EVENTS)
    return file


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["adatkg", "import", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def test_the_report_is_one_object(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, events: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "graph")
    assert run(monkeypatch, str(events), "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "folder": out,
        "facts": 3,
        "entities": 3,
        "relations": 1,
        "times": 2,
        "first": "2014-03-02",
        "last": "2014-03-05",
        "time_format": "ISO dates",
        "granularity": "day",
        "zone": "UTC",
        "zone_from": "no offset in the times",
        "skipped": 1,
        "odd": [
            {
                "kind": "empty subject",
                "skipped": True,
                "count": 1,
                "examples": [{"line": 5, "value": " | met | Bob | x"}],
            },
            {
                "kind": "repeated facts",
                "skipped": False,
                "count": 1,
                "examples": [{"line": 3, "value": "Ann | met | Bob | 2014-03-02"}],
            },
        ],
        "groups": {"written_as": "none", "groups": 0, "names": 0, "heads": 0, "example": None},
    }
    data = load_dataset(out)
    assert data.clock is not None
    assert data.clock.iso(int(data.times[-1])) == "2014-03-05"


def test_the_table_names_what_is_odd(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("s\tr\to\tt\nA\tr\t[red]B\t5\nA\tr\t[red]B\t5\nA\tr\tB\x1b[2J\t6\n")
    assert run(monkeypatch, str(file), "--out", str(tmp_path / "graph")) == 0
    shown = capsys.readouterr().out
    assert "repeated facts" in shown
    assert "[red]B" in shown
    assert "control characters" in shown
    assert "\x1b" not in shown


def test_options_reach_the_import(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "events.txt"
    file.write_bytes("who;what;whom;when\nZoë;met;Bob;2014-03-05 10:00\n".encode("latin-1"))
    flags = ("--subject", "who", "--relation", "2", "--object", "whom", "--time", "4", "--granularity", "week")
    out = str(tmp_path / "graph")
    assert run(monkeypatch, str(file), "--out", out, *flags, "--delimiter", ";", "--encoding", "latin-1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["first"], found["granularity"]) == ("2014-03-03", "week")
    assert load_dataset(out).entities == ("Zoë", "Bob")


def test_several_offsets_hint_at_the_zone_that_keeps_them(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "events.csv"
    file.write_text("s,r,o,t\nA,r,B,2013-03-09T08:00-05:00\nA,r,B,2013-03-11T08:00-04:00\n")
    assert run(monkeypatch, str(file), "--out", str(tmp_path / "one")) == 0
    assert "--zone keeps the zone" in capsys.readouterr().err
    zone = ("--zone", "America/New_York")
    assert run(monkeypatch, str(file), "--out", str(tmp_path / "two"), *zone, "--granularity", "day", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["zone"], found["first"], found["last"]) == ("America/New_York", "2013-03-09", "2013-03-11")


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, packed: bool) -> None:
    data = gzip.compress(EVENTS.encode()) if packed else EVENTS.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run(monkeypatch, "-", "--out", str(tmp_path / "graph")) == 0
    assert len(load_dataset(str(tmp_path / "graph")).facts) == 3


def test_an_existing_folder_wants_replace(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, events: Path, tmp_path: Path
) -> None:
    arguments = (str(events), "--out", str(tmp_path / "graph"))
    assert [run(monkeypatch, *arguments) for _ in range(2)] == [0, 2]
    assert "--replace" in capsys.readouterr().err
    assert run(monkeypatch, *arguments, "--replace") == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("subject,relation,object,time\n", "no rows"),
        ("who,relation,object,time\na,b,c,2014-01-01\n", "--subject"),
        ("s,r,o,t\na,b,c,2014-01-01\na,b,c,x\na,b,c,y\n", "2 of 3 rows cannot be used"),
    ],
)
def test_a_bad_file_is_one_line_on_stderr_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path, content: str, says: str
) -> None:
    file = tmp_path / "events.csv"
    file.write_text(content)
    assert run(monkeypatch, str(file), "--out", str(tmp_path / "graph"), "--json") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert says in captured.err
    assert not (tmp_path / "graph").exists()


def test_the_report_says_how_names_tell_of_groups(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "events.csv"
    mails = [f"p{chr(97 + i)}@firm{i % 6}.org" for i in range(24)]
    file.write_text("s,r,o,t\n" + "".join(f"{one},mails,{two},5\n" for one, two in pairwise(mails)))
    assert run(monkeypatch, str(file), "--out", str(tmp_path / "graph")) == 0
    assert "6 by address, 24 names such as 'pa@firm0.org'" in capsys.readouterr().out
    assert run(monkeypatch, str(file), "--out", str(tmp_path / "graph"), "--replace", "--json") == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert groups == {"written_as": "address", "groups": 6, "names": 24, "heads": 0, "example": "pa@firm0.org"}


def test_fine_ticks_get_a_hint(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("s,r,o,t\na,b,c,1388534400\na,b,c,1388534401\n")
    assert run(monkeypatch, str(file), "--out", str(tmp_path / "graph")) == 0
    assert "--granularity hour" in capsys.readouterr().err


def test_help_states_the_rule_and_has_an_example(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(monkeypatch, "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "divides every gap between two times" in shown
    assert "Example: adatkg import" in shown
