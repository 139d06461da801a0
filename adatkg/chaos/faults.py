"""What can go wrong: one function for each kind, which does the harm, lets it last, and mends what operators would."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from adatkg.chaos.messages import garbage
from adatkg.chaos.remake import remake_events, remake_models
from adatkg.chaos.schedule import Fault
from adatkg.chaos.snapshots import base_of, newest_snapshots
from adatkg.chaos.system import System
from adatkg.chaos.worker import ChaosWorker, faketime
from adatkg_core.errors import InputError
from adatkg_core.messages import Announcement
from adatkg_core.storage import read_artifact, write_artifact
from streams.kafka import announce
from streams.promotion import promote, roll_back, teller

_TRAINING = 240.0  # seconds for a round of training on a busy machine
BAD = "bad-"  # versions that must never answer


@dataclass(frozen=True)
class Kind:
    """A kind of fault; faults of one lane come one after the other. `why_not` says why it is impossible here."""

    lane: str  # worker: that of the worker it strikes
    least: float  # seconds that it lasts
    most: float
    strike: Callable[[System, Fault], str | None]  # returns what came of it, where that is worth a word
    why_not: Callable[[System], str | None] = lambda system: None


def strike(system: System, fault: Fault) -> None:
    """Let a fault happen, and write down what came of it."""
    target = _worker(system, fault).name if KINDS[fault.kind].lane == "worker" else _graph(system, fault)
    system.journal.fault(fault.kind, target=target, seconds=round(fault.seconds, 1), planned=round(fault.at, 1))
    try:
        told = KINDS[fault.kind].strike(system, fault)
    except Exception as error:  # an operator's command that fails under another fault is part of the day
        told = repr(error)
    system.journal.fault(f"{fault.kind}_over", target=target, told=told)


def lane_of(system: System, fault: Fault) -> str:
    """The lane that a fault belongs to."""
    lane = KINDS[fault.kind].lane
    return _worker(system, fault).name if lane == "worker" else lane


def _worker(system: System, fault: Fault) -> ChaosWorker:
    return system.workers[fault.target % len(system.workers)]


def _graph(system: System, fault: Fault) -> str:
    return system.graphs[fault.target % len(system.graphs)]


# -- workers --------------------------------------------------------------------------------------------------


def _kill_worker(system: System, fault: Fault) -> str | None:
    return _start_anew(system, fault, lambda worker: worker.kill())


def _restart_worker(system: System, fault: Fault) -> str | None:
    return _start_anew(system, fault, lambda worker: worker.stop())


def _start_anew(
    system: System, fault: Fault, end: Callable[[ChaosWorker], str | None], skew: str | None = None
) -> str | None:
    worker = _worker(system, fault)
    with worker.lock:
        told = end(worker)
        system.ends.wait(fault.seconds)
        if not system.ends.is_set():
            worker.start(skew)
            if not worker.await_ready(system.ends):
                told = f"{told or ''}; not ready yet".removeprefix("; ")
    return told


def _freeze_worker(system: System, fault: Fault) -> str | None:
    worker = _worker(system, fault)
    with worker.lock:
        worker.freeze()
        system.ends.wait(fault.seconds)
        worker.thaw()
    return None


def _cut_wire(system: System, fault: Fault) -> str | None:
    wire = _worker(system, fault).wire
    wire.cut()
    system.ends.wait(fault.seconds)
    wire.mend()
    return None


def _hush_wire(system: System, fault: Fault) -> str | None:
    wire = _worker(system, fault).wire
    wire.hush()
    system.ends.wait(fault.seconds)
    wire.mend()
    return None


def _set_clock_back(system: System, fault: Fault) -> str | None:
    return _start_anew(system, fault, lambda worker: worker.kill(), skew="-1h" if fault.draw < 0.7 else "+1h")


def _why_no_clock(system: System) -> str | None:
    return None if faketime() else "libfaketime is not installed"


# -- the broker -----------------------------------------------------------------------------------------------


def _kill_broker(system: System, fault: Fault) -> str | None:
    system.broker.kill()
    system.ends.wait(fault.seconds)
    system.restart_broker()
    return None


def _freeze_broker(system: System, fault: Fault) -> str | None:
    system.signal_broker(signal.SIGSTOP)
    system.ends.wait(fault.seconds)
    system.signal_broker(signal.SIGCONT)
    return None


# -- what is on disk ------------------------------------------------------------------------------------------


def _damage(harm: Callable[[Path], None]) -> Callable[[System, Fault], str | None]:
    """The newest snapshot of each graph is harmed while a worker is away, so that its graphs must do without."""

    def strike(system: System, fault: Fault) -> str | None:
        def end(worker: ChaosWorker) -> str:
            worker.kill()
            harmed = newest_snapshots(system.snapshots)
            for snapshot in harmed:
                harm(snapshot)
            return f"harmed: {', '.join(one.name for one in harmed)}"

        return _start_anew(system, fault, end)

    return strike


def _flip(snapshot: Path) -> None:
    path = _tensors(snapshot)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)


def _flip_base(snapshot: Path) -> None:
    _flip(base_of(snapshot))


def _truncate(snapshot: Path) -> None:
    path = _tensors(snapshot)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])


def _unmake(snapshot: Path) -> None:
    (snapshot / "manifest.json").unlink(missing_ok=True)


def _tensors(snapshot: Path) -> Path:
    return next(snapshot.glob("*.safetensors"))


def _fill_disk(system: System, fault: Fault) -> str | None:
    try:
        system.disk.fill()
        system.ends.wait(fault.seconds)
    finally:
        system.disk.clear()
    return None


# -- models ---------------------------------------------------------------------------------------------------


def _promote(system: System, fault: Fault) -> str | None:
    graph, store = _graph(system, fault), system.store
    present = store.present(graph)
    others = [one for one in store.versions(graph) if one != present and not one.startswith(BAD)]
    version = others[int(fault.draw * len(others))]
    promote(store, graph, version, lambda: teller(system.connection, system.topics, store.url), _ignore, forced=True)
    return version


def _roll_back(system: System, fault: Fault) -> str | None:
    graph, store = _graph(system, fault), system.store
    if len(store.line(graph)) < 2:
        return _promote(system, fault)
    return roll_back(store, graph, lambda: teller(system.connection, system.topics, store.url), _ignore)[0]


def _promote_nan(system: System, fault: Fault) -> str | None:
    """A bundle with NaN gets past every check of ours, by another program perhaps; later someone rolls it back."""
    graph, store = _graph(system, fault), system.store
    present = store.present(graph)
    assert present is not None
    tensors, meta = read_artifact(store.bundle_url(graph, present), "bundle")
    version = f"{BAD}{round(fault.at)}"
    spoiled = {
        name: torch.full_like(one, torch.nan) if one.is_floating_point() else one for name, one in tensors.items()
    }
    write_artifact(store.bundle_url(graph, version), "bundle", spoiled, meta | {"version": version})
    store.make_present(graph, version)
    announcement = Announcement(graph, version, "present", "chaos", forced=True, verdict=None)
    announce(system.connection, system.topics, announcement)
    system.ends.wait(fault.seconds)
    while store.present(graph) == version:
        try:
            roll_back(store, graph, lambda: teller(system.connection, system.topics, store.url), _ignore)
        except InputError:
            raise
        except Exception as error:  # the broker is away, or the disk is full: an operator tries again
            system.journal.fault("rollback_failed", problem=repr(error))
            if system.ends.wait(1.0):
                break
    return version


def _retrain(system: System, fault: Fault) -> str | None:
    trainer = system.trainer(_graph(system, fault))
    if (code := trainer.wait(_TRAINING)) is None:
        trainer.kill()
    return f"code {code}"


def _kill_trainer(system: System, fault: Fault) -> str | None:
    """In the middle of its work, and once more; what it had done is taken up again."""
    first = system.trainer(_graph(system, fault))
    first.wait(fault.seconds)
    first.kill()
    return _retrain(system, fault)


def _ignore(warning: str) -> None:
    """What an operator would read and pass over."""


# -- the stream -----------------------------------------------------------------------------------------------


def _throw_garbage(system: System, fault: Fault) -> str | None:
    system.stream.throw(garbage(_graph(system, fault), f"garbage-{round(fault.at, 1)}"))
    return None


KINDS: dict[str, Kind] = {
    "worker_killed": Kind("worker", 0, 8, _kill_worker),
    "worker_restarted": Kind("worker", 0, 8, _restart_worker),
    "worker_stopped": Kind("worker", 2, 25, _freeze_worker),
    "worker_cut_off": Kind("worker", 2, 20, _cut_wire),
    "worker_unheard": Kind("worker", 2, 25, _hush_wire),
    "worker_clock_wrong": Kind("worker", 0, 5, _set_clock_back, _why_no_clock),
    "broker_killed": Kind("broker", 0, 8, _kill_broker),
    "broker_stopped": Kind("broker", 2, 15, _freeze_broker),
    "snapshot_corrupted": Kind("worker", 0, 8, _damage(_flip)),
    "base_corrupted": Kind("worker", 0, 8, _damage(_flip_base)),
    "snapshot_truncated": Kind("worker", 0, 8, _damage(_truncate)),
    "manifest_removed": Kind("worker", 0, 8, _damage(_unmake)),
    "disk_full": Kind("disk", 4, 20, _fill_disk, lambda system: system.disk.why_not),
    "promoted": Kind("models", 0, 0, _promote),
    "rolled_back": Kind("models", 0, 0, _roll_back),
    "nan_promoted": Kind("models", 2, 12, _promote_nan),
    "retrained": Kind("models", 0, 0, _retrain),
    "trainer_killed": Kind("models", 3, 15, _kill_trainer),
    "garbage_sent": Kind("stream", 0, 0, _throw_garbage),
    "topic_remade": Kind("topics", 0, 0, remake_events),
    "models_topic_remade": Kind("topics", 0, 0, remake_models),
}
