"""Everything that runs under chaos: a broker, workers behind wires that can be cut, a disk that can be filled."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from adatkg.chaos.disk import Disk
from adatkg.chaos.journal import Journal
from adatkg.chaos.proxy import Proxy
from adatkg.chaos.stream import Stream
from adatkg.chaos.worker import ChaosWorker
from adatkg.processes import Process, own_environment
from adatkg_core.errors import AdatkgError
from adatkg_core.storage import ModelStore
from streams.embedded_broker import Broker, choose_port
from streams.kafka import Connection, Topics, ensure_topics, event_log

HOST = "127.0.0.1"
CONFIG = "tiny"  # of all models: seconds to train, hashed names
GROUP = "chaos"  # of the workers
_SETTINGS = {
    "group": GROUP,
    "device": "cpu",
    "session_seconds": "10",  # on a busy machine a shorter one ends by itself
    "snapshot_seconds": "3",
    "web_host": HOST,
}
_NICENESS = 10  # of trainers: the stream stays live
_WATCH = 1.0  # seconds between two looks at the workers
_STARTING = 180.0  # seconds for the broker, on a machine that is busy with all this
log = structlog.get_logger()


class System:
    """Whatever was started ends when the `with` block does."""

    def __init__(self, folder: Path, graphs: tuple[str, ...], workers: int) -> None:
        self.folder, self.graphs = folder, graphs
        (folder / "tmp").mkdir(parents=True)
        self.journal = Journal(folder / "journal")
        self.disk = Disk(folder / "disk")
        self.snapshots = str(self.disk.folder / "snapshots")
        self.store = ModelStore(str(self.disk.folder / "models"))
        self.ends = threading.Event()
        own, *ports = _ports(1 + 3 * workers)
        wires = list(zip(ports[:workers], ports[workers : 2 * workers], strict=True))
        self.broker = Broker(folder / "broker", port=own, settings=_broker_settings(own, wires))
        self.connection, self.topics = Connection(self.broker.bootstrap), Topics()
        settings = _SETTINGS | {"models": self.store.url, "snapshots": self.snapshots}
        self.workers = [
            ChaosWorker(f"worker-{i}", folder, ports[2 * workers + i], Proxy(near, far), settings)
            for i, (near, far) in enumerate(wires)
        ]
        self.partitions = 0  # of the events' topic, once it is there
        self._stream: Stream | None = None
        self._lanes: dict[str, ThreadPoolExecutor] = {}
        self._watcher = threading.Thread(target=self._watch, name="watch")
        self._wakes = True  # whether a worker that ended by itself is started again

    @property
    def stream(self) -> Stream:
        """The producer."""
        assert self._stream is not None
        return self._stream

    @property
    def restarts(self) -> int:
        """How often a worker ended by itself and was started again, as its supervisor would."""
        return sum(worker.restarts for worker in self.workers)

    def start_broker(self) -> None:
        """Kafka, and its topics."""
        self.broker.start(_STARTING)
        ensure_topics(self.connection, self.topics)
        self.partitions = event_log(self.connection, self.topics).partitions
        self._stream = Stream(self.connection, self.topics.events, self.partitions, self.journal)

    def restart_broker(self) -> None:
        """Start it again after a kill, however long that takes."""
        while not self.ends.is_set():
            try:
                self.broker.start(_STARTING)
                return
            except AdatkgError as error:
                self.journal.fault("broker_start_failed", problem=str(error))
                self.ends.wait(2.0)

    def signal_broker(self, number: int) -> None:
        """Send it a signal."""
        if (pid := self.broker.pid) is not None:
            os.kill(pid, number)

    def start_workers(self) -> None:
        """All of them, and someone who starts again what ends by itself."""
        for i, worker in enumerate(self.workers):
            self.lane(f"worker-{i}", worker.start).result()
        self._watcher.start()

    def renew_workers(self) -> None:
        """Let each go on from what is on disk: one whose base was damaged as it ran has saved nothing sound since."""
        for i, worker in enumerate(self.workers):
            self.lane(f"worker-{i}", partial(self._renew, worker)).result()

    def trainer(self, graph: str) -> Process:
        """One round of training for a graph, whose bundle is promoted if it is better."""
        arguments = ["retrain", graph, "--models", self.store.url, "--config", CONFIG, "--epochs", "1"]
        arguments += ["--archive", str(self.disk.folder / "archive"), "--set", "retrain.keep=100000"]
        environment = own_environment(self.broker.bootstrap, self.folder / "tmp", {"OMP_NUM_THREADS": "1"})
        return Process("trainer", arguments, environment, self.folder / "trainer.log", niceness=_NICENESS)

    def lane(self, name: str, work: Callable[[], None]) -> Future[None]:
        """Do something after all else that this lane was given; its thread lives as long as the system."""
        if name not in self._lanes:
            self._lanes[name] = ThreadPoolExecutor(1, name)
        return self._lanes[name].submit(work)

    def first_versions(self) -> dict[str, str]:
        """The version of each graph that answers what stands in its log before any model event."""
        return {graph: self.store.first(graph) or "" for graph in self.graphs}

    def stop_workers(self) -> list[str]:
        """Let them save and leave; returns what was wrong with that."""
        self._wakes = False
        ends = [(worker.name, worker.stop()) for worker in self.workers]
        return [f"{name} {problem} when it was asked to end" for name, problem in ends if problem is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wakes = False
        self.ends.set()
        if self._stream is not None:
            self._stream.stop()
        for worker in self.workers:
            worker.kill()
            worker.wire.close()
        for lane in self._lanes.values():
            lane.shutdown(cancel_futures=True)
        if self._watcher.is_alive():
            self._watcher.join()
        for worker in self.workers:
            worker.kill()  # a fault that was under way may have started it again
        self.signal_broker(signal.SIGCONT)
        self.broker.kill()
        self.disk.close()
        self.journal.close()

    def _renew(self, worker: ChaosWorker) -> None:
        with worker.lock:
            worker.stop()
            worker.start()
            worker.await_ready(self.ends)

    def _watch(self) -> None:
        while not self.ends.wait(_WATCH):
            for worker in self.workers:
                if self._wakes and worker.ended is not None and worker.lock.acquire(blocking=False):
                    try:
                        if worker.ended is not None:
                            self.journal.fault("worker_ended", worker=worker.name, code=worker.ended)
                            worker.restarts += 1
                            worker.start()
                    finally:
                        worker.lock.release()


def _ports(count: int) -> list[int]:
    """Free ports, each another one."""
    found: dict[int, None] = {}
    while len(found) < count:
        found[choose_port(HOST)] = None
    return list(found)


def _broker_settings(own: int, wires: list[tuple[int, int]]) -> dict[str, str]:
    """A listener for each worker, which the broker tells it to reach through its wire."""
    names = [f"WIRE{i}" for i in range(len(wires))]
    protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *(f"{name}:PLAINTEXT" for name in names)]
    through = [f"{name}://{HOST}:{near}" for name, (near, _) in zip(names, wires, strict=True)]
    return {
        "listeners": ",".join(f"{name}://{HOST}:{far}" for name, (_, far) in zip(names, wires, strict=True)),
        "advertised.listeners": ",".join([f"PLAINTEXT://{HOST}:{own}", *through]),
        "listener.security.protocol.map": ",".join(protocols),
        # When an answer came is told by one clock, whatever a worker's says.
        "log.message.timestamp.type": "LogAppendTime",
    }
