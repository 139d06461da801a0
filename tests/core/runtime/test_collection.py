"""Full garbage collections happen when they are asked for, and see what came since the beginning."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from adatkg_core.runtime import collect_on_request

class Thing:
    pass

def cycle():
    thing = Thing()
    thing.itself = thing

full = []
gc.callbacks.append(lambda phase, info: full.append(phase) if info["generation"] == 2 else None)
collect_on_request()
full.clear()
kept = [[] for _ in range(500_000)]
assert not full, "a full collection by itself"
cycle()
gc.collect()
assert not [one for one in gc.get_objects() if isinstance(one, Thing)]
"""


def test_no_full_collection_happens_by_itself_and_one_on_request_finds_what_is_garbage() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
