from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from adatkg.main import main
from adatkg_core.datasets import synthesize, write_dataset

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_dataset(synthesize(20, 3, 10, 5, seed=1), tmp_path / "graph")
    with tarfile.open(tmp_path / "graph.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "graph", "graph")
    return tmp_path / "graph.tar.gz"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["adatkg", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_info_describes_the_shipped_data_set(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(monkeypatch, "datasets", "info", "icews14", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["entities"], found["relations"], found["facts"], found["times"]) == (7128, 230, 90730, 365)
    assert found["splits"]["test"] == {"times": 110, "facts": 28970, "first": "2014-09-13", "last": "2014-12-31"}
    assert found["entities_unknown_to_train"] == 1854
    assert (found["groups"]["written_as"], found["groups"]["groups"], found["groups"]["names"]) == (
        "brackets",
        317,
        4220,
    )


def test_info_says_which_layout_it_took_a_folder_for(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "train.txt").write_text("Q1\tP2\tQ3\t2014-01-01\t0\nQ3\tP2\tQ1\t2014-01-02\t1\n")
    assert run(monkeypatch, "datasets", "info", str(tmp_path), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["layout"] == "names and dates (TNTComplEx, DE-SimplE)"
    codes = "entities have codes such as Q1 for names: nothing can be learned from them"
    assert found["notes"] == ["the fifth column is ignored", codes]
    assert run(monkeypatch, "datasets", "info", str(tmp_path)) == 0
    assert "the fifth column is ignored" in capsys.readouterr().out


def test_list_names_the_shipped_data_set(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(monkeypatch, "datasets", "list", "--json") == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["datasets"]] == ["icews14"]
    assert run(monkeypatch, "datasets", "list") == 0
    assert "90,730" in capsys.readouterr().out


def test_a_generated_graph_can_be_described(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    out = str(tmp_path / "graph")
    sizes = ("--entities", "40", "--relations", "4", "--times", "10", "--facts-per-time", "8", "--seed", "3")
    assert run(monkeypatch, "datasets", "synth", out, *sizes, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert run(monkeypatch, "datasets", "info", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["entities"] == 40
    assert made["splits"] == found["splits"]
    assert found["splits"]["valid"] == {"times": 2, "facts": 16, "first": 5, "last": 6}  # it has no calendar
    assert run(monkeypatch, "datasets", "info", out) == 0
    assert "16 facts at 2 times, 5 to 6" in capsys.readouterr().out


def test_a_bad_file_is_one_line_on_stderr_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    write_dataset(synthesize(20, 3, 10, 5, seed=1), tmp_path / "graph")
    with (tmp_path / "graph" / "valid.txt").open("a") as file:
        file.write("1\t2\tthree\t4\n")
    assert run(monkeypatch, "datasets", "info", str(tmp_path / "graph")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert "valid.txt, line 11: object 'three'" in captured.err


@pytest.mark.parametrize("arguments", [["datasets", "info"], ["datasets", "nothing"], ["datasets", "list", "--x"]])
def test_wrong_usage_is_exit_code_2(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    assert run(monkeypatch, *arguments) == 2


@pytest.mark.parametrize("command", [["list"], ["info"], ["synth"], ["fetch"]])
def test_every_help_has_an_example(monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: list[str]) -> None:
    assert run(monkeypatch, "datasets", *command, "--help") == 0
    assert "Example: adatkg datasets" in capsys.readouterr().out


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_fetch_verifies_and_unpacks(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path, archive: Path, scheme: str
) -> None:
    out = tmp_path / "fetched"
    url = f"{scheme}{archive}"
    assert run(monkeypatch, "datasets", "fetch", url, str(out), "--sha256", checksum(archive), "--json") == 0
    assert json.loads(capsys.readouterr().out)["facts"] == 50
    assert (out / "train.txt").read_bytes() == (tmp_path / "graph" / "train.txt").read_bytes()


def test_fetch_also_takes_a_zip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, archive: Path) -> None:
    zipped = tmp_path / "graph.zip"
    with zipfile.ZipFile(zipped, "w") as target:
        for file in (tmp_path / "graph").iterdir():
            target.write(file, file.name)
    out = str(tmp_path / "fetched")
    assert run(monkeypatch, "datasets", "fetch", str(zipped), out, "--sha256", checksum(zipped)) == 0


def _evil(path: Path) -> None:
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("../evil.txt")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))


def _no_data_set(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("readme.txt", "nothing else")


def _no_archive(path: Path) -> None:
    path.write_text("hello")


def _truncated(path: Path) -> None:
    whole = path.with_name("graph.tar.gz").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_evil, "unsafe path"),
        (_no_data_set, "lacks train.txt"),
        (_no_archive, "not an archive"),
        (_truncated, "cannot be unpacked"),
    ],
)
def test_a_bad_archive_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path, archive: Path, make: object, says: str
) -> None:
    assert callable(make)
    bad = tmp_path / "bad"
    make(bad)
    before = sorted(tmp_path.iterdir())
    assert run(monkeypatch, "datasets", "fetch", str(bad), str(tmp_path / "out"), "--sha256", checksum(bad)) == 2
    assert says in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_a_wrong_checksum_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path, archive: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    for digits, says in (("0" * 64, "has the checksum"), ("12", "64 hex digits")):
        assert run(monkeypatch, "datasets", "fetch", str(archive), str(tmp_path / "out"), "--sha256", digits) == 2
        assert says in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_an_archive_that_is_not_there_is_wrong_input(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    url = str(tmp_path / "nothing.zip")
    assert run(monkeypatch, "datasets", "fetch", url, str(tmp_path / "out"), "--sha256", "0" * 64) == 2
    assert "cannot fetch" in capsys.readouterr().err
