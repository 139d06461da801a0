"""`adatkg bench`: what it runs, what it says, and how it ends."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from adatkg.commands import bench
from adatkg.main import main

Capture = pytest.CaptureFixture[str]
BESIDE = {"matmul_gflops": 300.0}
REAL = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks that take no time: one holds, one does not, one breaks; one module tells two figures."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    shutil.copy(REAL / "results.py", folder)
    limits = {"quick": ("min", 2.0), "slow": ("max", 1.25), "broken": ("min", 1.0), "slower": ("max", 1.5)}
    known = {n: {"module": n, "unit": "ratio", "bound": bound, "limit": at} for n, (bound, at) in limits.items()}
    known["slower"]["module"], known["quick"]["short"] = "slow", True
    (folder / "limits.json").write_text(json.dumps(known))
    telling = '"""What {0} costs,\nin short.\n\nMore of it."""\nfrom .results import tell\n{1}\n'
    telling += 'tell("{0}", 2.0, matmul_gflops=300.0)\n'
    (folder / "quick.py").write_text(telling.format("quick", "print('a line of a log')"))
    runs = f"print(1, file=open({str(folder / 'runs')!r}, 'a'))"
    also = 'tell("slower", 2.0, matmul_gflops=300.0)\n'
    (folder / "slow.py").write_text(telling.format("slow", runs) + also)
    (folder / "broken.py").write_text(telling.format("broken", "raise ValueError('no broker')"))
    monkeypatch.setattr(bench, "PLACE", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def run(monkeypatch: pytest.MonkeyPatch, capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["adatkg", "bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def figure(name: str, bound: str, limit: float, ok: bool) -> dict[str, Any]:
    return {"name": name, "value": 2.0, "unit": "ratio", "limit": limit, "bound": bound, "ok": ok, "beside": BESIDE}


@pytest.mark.usefixtures("small")
def test_figures_stand_beside_their_limits_and_one_that_fails_fails_all(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    code, out, _ = run(monkeypatch, capsys, "quick", "slow", "--json")
    held, failed = figure("quick", "min", 2.0, True), figure("slow", "max", 1.25, False)
    assert (code, json.loads(out)) == (1, {"benchmarks": [held, failed]})
    code, out, _ = run(monkeypatch, capsys, "quick", "--json")
    assert (code, json.loads(out)) == (0, {"benchmarks": [held]})


@pytest.mark.usefixtures("small")
def test_the_table_says_which_limit_holds(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, out, _ = run(monkeypatch, capsys, "slow", "quick")
    rows, beside = [line.split() for line in out.splitlines()], ["matmul_gflops", "300"]
    assert code == 1
    assert ["fails", "slow", "2", "at", "most", "1.25", *beside] in rows
    assert ["holds", "quick", "2", "at", "least", "2", *beside] in rows


@pytest.mark.usefixtures("small")
def test_figures_of_one_module_come_from_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    _, out, _ = run(monkeypatch, capsys, "slow", "quick", "slower", "--json")
    assert [one["name"] for one in json.loads(out)["benchmarks"]] == ["slow", "slower", "quick"]
    assert (tmp_path / "benchmarks" / "runs").read_text() == "1\n"


@pytest.mark.usefixtures("small")
def test_the_short_form_runs_only_what_is_said_to_be_short(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, out, _ = run(monkeypatch, capsys, "--short", "--json")
    assert (code, [one["name"] for one in json.loads(out)["benchmarks"]]) == (0, ["quick"])


@pytest.mark.usefixtures("small")
def test_a_benchmark_that_breaks_is_named_with_its_last_words(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, out, error = run(monkeypatch, capsys, "broken", "--json")
    assert (code, out) == (1, "")
    assert "benchmark broken: ended with code 1 and no figure" in error and "no broker" in error


@pytest.mark.usefixtures("small")
def test_a_name_that_is_none_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, out, error = run(monkeypatch, capsys, "broken", "fast")
    assert (code, out) == (2, "") and "benchmark fast" in error and "quick, slow, broken, slower" in error


@pytest.mark.usefixtures("small")
def test_the_list_says_what_each_measures_and_runs_nothing(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, out, _ = run(monkeypatch, capsys, "--list", "--json")
    broken = {"name": "broken", "unit": "ratio", "limit": 1.0, "bound": "min", "about": "What broken costs, in short."}
    assert code == 0 and broken in json.loads(out)["benchmarks"]


def test_an_installation_without_benchmarks_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(bench, "PLACE", tmp_path)
    code, _, error = run(monkeypatch, capsys)
    assert code == 1 and "lacks the benchmarks" in error


@pytest.mark.usefixtures("small")
def test_a_figure_that_its_module_does_not_tell_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "benchmarks" / "slow.py").write_text(
        'from .results import tell\ntell("slow", 1.0, matmul_gflops=1.0)\n'
    )
    code, out, error = run(monkeypatch, capsys, "slow", "slower", "--json")
    assert (code, out) == (1, "") and "benchmark slower: ended with code 0 and no figure" in error


def test_every_limit_belongs_to_a_module_that_measures_it() -> None:
    found = bench.benchmarks()
    assert len(found) >= 5
    for name, one in found.items():
        text = one.source.read_text("utf-8")
        assert "import tell" in text and f'"{name}"' in text and one.about
        assert importlib.util.find_spec(f"benchmarks.{one.source.stem}")


def test_benchmarks_import_each_other_by_no_name_that_they_lose_in_the_package() -> None:
    for source in REAL.glob("*.py"):
        assert "from benchmarks" not in source.read_text("utf-8"), source


def test_a_figure_may_be_read_with_words_too() -> None:
    assert bench.shown_beside({"beside": {"seconds": 1234.5, "step": "whole"}}) == "seconds 1,234.5, step whole"
