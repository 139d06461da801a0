"""Memory that was freed stays with the process."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

from adatkg_core.runtime import keep_freed_memory

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the choice")
def test_a_block_like_one_that_was_freed_costs_no_page_faults() -> None:
    gives_back, keeps = (
        int(subprocess.run([sys.executable, "-c", FAULTS.format(keeps=keeps)], capture_output=True, check=True).stdout)
        for keeps in (False, True)
    )
    assert keeps < 10 < gives_back


def test_where_the_c_library_has_no_such_choice_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    keep_freed_memory()
