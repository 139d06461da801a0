"""Memory that was freed stays with the process, but not without end."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from adatkg_core.runtime import ScatteredMemory, allocator, give_back_freed_memory, keep_freed_memory

FAULTS = """
import resource
from adatkg_core.runtime import keep_freed_memory
if {keeps}:
    keep_freed_memory()
b"x" * (64 << 20)  # more than the library keeps by itself
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    b"x" * (64 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

SCATTERED = """
from pathlib import Path
from adatkg_core.runtime import ScatteredMemory, keep_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) >> 8

keep_freed_memory()
memory = ScatteredMemory(least=32 << 20)
blocks = [b"x" * (1 << 16) for _ in range(3_000)]  # 188 MiB
full = resident()
del blocks[::2], blocks[::3]
freed = resident()
memory.give_back()
given = resident()
more = [b"x" * (1 << 16) for _ in range(1_000)]
del more[:-1]
again = resident()
memory.give_back()
print(full, freed, given, again, resident())
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the choice")


@glibc
def test_what_is_free_between_blocks_in_use_is_given_back_when_it_is_much_and_else_kept() -> None:
    done = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, check=True, text=True)
    full, freed, given, again, kept = map(int, done.stdout.split())
    assert freed > full - 30, "nothing goes back by itself"
    assert given < full - 80
    assert kept > again - 10, "little is left alone"


@glibc
def test_a_block_like_one_that_was_freed_costs_no_page_faults() -> None:
    gives_back, keeps = (
        int(subprocess.run([sys.executable, "-c", FAULTS.format(keeps=keeps)], capture_output=True, check=True).stdout)
        for keeps in (False, True)
    )
    assert keeps < 10 < gives_back


HELD = """
import ctypes
from adatkg_core.runtime import give_back_freed_memory, keep_freed_memory
keep_freed_memory()
def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
block = b"x" * (64 << 20)
above = b"y" * (1 << 20)  # so that the block is not at the end, where any library would give it back
del block
before = held()
give_back_freed_memory()
print(before - held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the choice")
def test_what_is_given_back_is_no_longer_held_even_below_what_is_in_use() -> None:
    found = subprocess.run([sys.executable, "-c", HELD], capture_output=True, check=True).stdout
    assert int(found) > 60 << 20


def test_where_the_c_library_has_no_such_choice_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    keep_freed_memory()
    ScatteredMemory(least=0).give_back()
    give_back_freed_memory()


@glibc
@pytest.mark.parametrize(("resident", "shared", "looked"), [(9_000, 500, 1), (9_000, 8_500, 0)])
def test_pages_of_files_do_not_count_as_blocks_that_were_freed(
    resident: int, shared: int, looked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[int]()
    monkeypatch.setattr(allocator, "_PAGES", tmp_path / "statm")
    monkeypatch.setattr(allocator, "_trim", lambda: given.append)
    (tmp_path / "statm").write_text(f"100000 {resident} {shared} 1 0 2000 0\n")
    ScatteredMemory(least=1 << 20).give_back()
    ScatteredMemory(least=4_000 * 4_096).give_back()
    assert len(given) == 1 + looked
