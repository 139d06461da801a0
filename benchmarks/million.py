"""A state of a million entities: facts, memory, a snapshot beside the stream, and a restart from it.

Ten million facts are taken in, in some five minutes; `--entities 100000 --facts 1000000` is quick. Facts are drawn as
tensors, more of them about some entities than about others. What they cost is the processor's time, which tells little
of what else the machine does. Memory is what no file can take back (`held_memory`), without the vectors of names. Every
figure is told beside the matmul rate of the same run.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import gc
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from adatkg_core.engine import Engine, EngineCapture, compile_engine
from adatkg_core.events import Query
from adatkg_core.model import AdaTKG
from adatkg_core.runtime import give_back_freed_memory, keep_freed_memory
from adatkg_core.settings import load_config
from adatkg_core.storage import Bundle, Saved, SavedIncrement, SnapshotStore

from .held_memory import HeldMemory
from .matmul import matmul_gflops
from .results import tell

RELATIONS, TIMES, NAME_LENGTH = 300, 1_000, 64
NAMED_AT_ONCE = 20_000
BESIDE = 50  # times that pass while a snapshot is taken
GIGA = 1e9


class DrawnNames:
    """In the place of a text encoder: vectors at random, since here nobody reads names."""

    name, dim = "drawn", NAME_LENGTH

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Vectors of as many texts, [n, dim]."""
        return torch.randn(len(texts), self.dim)


def main() -> None:
    """Take all facts in, take snapshots meanwhile, and begin anew from them."""
    options = _options()
    keep_freed_memory()
    torch.manual_seed(1)
    compile_engine()
    with HeldMemory() as held:
        said = _measured(options, held)
    rate = matmul_gflops()
    figures = {
        "million_late_to_early_rate": "late_to_early_rate",
        "million_gigabytes_beside_text": "gigabytes_beside_text",
        "million_gigabytes_with_snapshot": "gigabytes_with_snapshot",
        "million_snapshot_pause_ms": "pause_ms",
        "million_increment_to_whole": "increment_to_whole",
        "million_restart_seconds": "restart_seconds",
    }
    for name, what in figures.items():
        tell(name, said[what], matmul_gflops=rate, **said)


def _measured(options: argparse.Namespace, held: HeldMemory) -> dict[str, Any]:
    """All figures by name."""
    size, tenth = options.facts // TIMES, TIMES // 10
    bundle = _bundle(options.model)
    engine = _named(bundle.engine(DrawnNames()), options.entities)
    text = engine.state.tensors["text"].nbytes
    taken = [_take(engine, now, size) for now in range(TIMES)]
    late = sum(taken[-tenth:])
    said: dict[str, Any] = {
        "entities": options.entities,
        "facts_per_second": round(size * TIMES / sum(taken)),
        "late_to_early_rate": sum(taken[:tenth]) / late,
        "late_to_second_tenth": sum(taken[tenth : 2 * tenth]) / late,
        "state_gigabytes": (sum(one.nbytes for one in engine.state.tensors.values()) - text) / GIGA,
        "gigabytes_beside_text": (held.most() - text) / GIGA,
    }
    with tempfile.TemporaryDirectory() as folder:
        store = SnapshotStore(folder, "million", "log-1")
        said |= _snapshots(engine, store, size, folder)
        with_snapshot = held.most()
        said["gigabytes_while_saved"] = (with_snapshot - text) / GIGA
        # A restart is of another process: what this one holds for the engine before it is given back first.
        del engine
        gc.collect()
        give_back_freed_memory()
        held.forget()
        said |= _restart(bundle, store)
        said["gigabytes_of_restart"] = (held.most() - text) / GIGA
    said["gigabytes_with_snapshot"] = max(said["gigabytes_while_saved"], said["gigabytes_of_restart"])
    said["resident_gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGA
    return said


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--model", action="store_true", help="with the paper's model beside the recall head")
    return parser.parse_args()


def _bundle(with_model: bool) -> Bundle:
    relations = tuple(f"relation {i}" for i in range(RELATIONS))
    config = load_config("full" if with_model else "live", {"model.dim": NAME_LENGTH, "model.names": "none"})
    return Bundle(AdaTKG(config, DrawnNames().encode(relations), 0).eval(), relations, (), "untrained")


def _named(engine: Engine, entities: int) -> Engine:
    for start in range(0, entities, NAMED_AT_ONCE):
        engine.register([f"entity {i}" for i in range(start, min(start + NAMED_AT_ONCE, entities))])
    return engine


def _take(engine: Engine, now: int, size: int) -> float:
    """The processor's seconds for the facts of one time, committed."""
    ends = (torch.rand(2, size).square() * len(engine.catalog)).long()
    relation = (torch.rand(size).square() * RELATIONS).long()
    facts = torch.stack((ends[0], relation, ends[1], torch.full((size,), now)), 1)
    began = time.process_time()
    engine.observe_rows(facts)
    engine.advance(now + 1)
    return time.process_time() - began


def _standing(offset: int) -> dict[str, Any]:
    return {"graph": "million", "version": "untrained", "offset": offset, "log": "log-1"}


def _snapshots(engine: Engine, store: SnapshotStore, size: int, folder: str) -> dict[str, float | str]:
    """A whole snapshot and an increment, each while facts come; the longest that the stream waits for either."""
    steps = _Steps()
    with steps.one("capture and watch_changes"):
        whole, changes = engine.capture(folder=folder), engine.state.watch_changes()
    _copy(engine, whole, TIMES, size, steps)
    began = time.perf_counter()
    store.save(Saved(whole.snapshot(), **_standing(TIMES)))
    written, bytes_ = time.perf_counter() - began, whole.size
    whole.let_go()
    with steps.one("capture of changes"):
        some = engine.capture(changes, folder)
    _copy(engine, some, TIMES + BESIDE, size, steps)
    store.save(SavedIncrement(some.increment(), TIMES, **_standing(TIMES + BESIDE)))
    return {
        "pause_ms": max(steps.waited) * 1e3,
        "pause_p99_ms": sorted(steps.waited)[len(steps.waited) * 99 // 100] * 1e3,
        "pause_processor_ms": max(steps.worked) * 1e3,
        "longest_step": steps.names[steps.waited.index(max(steps.waited))],
        "whole_gigabytes": bytes_ / GIGA,
        "whole_written_seconds": written,
        "increment_to_whole": some.size / bytes_,
    }


class _Steps:
    """For how many seconds the stream waits for each step of a snapshot, and for how many of these it works."""

    def __init__(self) -> None:
        self.waited, self.worked, self.names = list[float](), list[float](), list[str]()

    @contextmanager
    def one(self, name: str) -> Iterator[None]:
        """Around one of them."""
        waited, worked = time.perf_counter(), time.thread_time()
        yield
        self.waited.append(time.perf_counter() - waited)
        self.worked.append(time.thread_time() - worked)
        self.names.append(name)


def _copy(engine: Engine, capture: EngineCapture, now: int, size: int, steps: _Steps) -> None:
    """Copy it, with the facts of a time after some of its steps."""
    copying, done = capture.copy(), 0
    while True:
        with steps.one(f"{'whole' if capture.is_whole else 'increment'} from {_place(copying)}"):
            ended = next(copying, copying) is copying
        if ended:
            return
        done += 1
        if done % 8 == 0 and done // 8 < BESIDE:
            _take(engine, now + done // 8, size)


def _place(copying: Any) -> str:
    """Where a copy under way stands: the functions that have not come to their end, and which tensor or kind it is."""
    found = []
    while getattr(copying, "gi_frame", None) is not None:
        inside = copying.gi_frame.f_locals
        found.append(" ".join(filter(None, (copying.__name__, inside.get("kind") or inside.get("name")))))
        copying = copying.gi_yieldfrom
    return ", ".join(found[1:]) or "its beginning"


def _restart(bundle: Bundle, store: SnapshotStore) -> dict[str, float]:
    """From the newest snapshot, which is an increment upon a whole one, to the first answer."""
    began = time.perf_counter()
    saved = next(store.newest_first("untrained", "cpu"))
    read = time.perf_counter() - began
    engine = bundle.engine(DrawnNames(), snapshot=saved.snapshot.given())
    engine.predict([Query("relation 1", (engine.watermark or 0) + 1, s="entity 1", k=3)])
    return {"restart_read_seconds": read, "restart_seconds": time.perf_counter() - began}


if __name__ == "__main__":
    main()
