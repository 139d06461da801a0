"""Functions that are compiled when they are first called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adatkg_core.runtime.compilation import compiled

MODULE = """
from adatkg_core.runtime.compilation import compiled


@compiled
def total(numbers):
    some = 0.0
    for number in numbers:
        some += number
    return some
"""
ASKED = """
import sys
import numpy
import sums

print("ready", flush=True)
sys.stdin.readline()
assert sums.total(numpy.arange(4.0)) == 6.0
print(sum(sums.total.stats.cache_misses.values()), flush=True)
"""


def _asking(folder: Path) -> subprocess.Popen[str]:
    environment = {"ADATKG_CACHE": str(folder / "cache"), "PYTHONPATH": f"{folder}:{Path(__file__).parents[3]}"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", ASKED], env=environment, **pipes)  # type: ignore[call-overload,no-any-return]


def test_of_processes_that_want_a_function_at_once_one_compiles_it(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(MODULE)
    both = [_asking(tmp_path), _asking(tmp_path)]
    for one in both:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in both:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    assert sorted(one.communicate(timeout=60)[0].strip() for one in both) == ["0", "1"]


def test_where_nothing_can_be_kept_a_function_is_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setenv("ADATKG_CACHE", str(tmp_path / "cache"))

    def twice(number: float) -> float:
        return 2 * number

    assert compiled(twice)(2.5) == 5.0


def test_a_full_disk_keeps_nobody_from_calling_what_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADATKG_CACHE", str(tmp_path))

    def is_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", is_full)

    def twice(number: int) -> int:
        return 2 * number

    assert compiled(twice)(21) == 42


DIVIDED = """
import numpy
from adatkg_core.runtime.compilation import compiled


@compiled
def shares(numbers, of):
    for i in range(numbers.size):
        numbers[i] /= of[i]


found = numpy.ones(3)
shares(found, numpy.array((2.0, 0.0, -0.0)))
assert found.tolist() == [0.5, numpy.inf, -numpy.inf], found
"""


def test_a_division_by_zero_in_compiled_code_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "divided.py").write_text(DIVIDED)
    environment = {"ADATKG_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, str(tmp_path / "divided.py")], env=environment, check=True)
