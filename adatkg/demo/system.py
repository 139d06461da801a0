"""Everything that runs in a demonstration: broker, worker, trainer, and the data set as a live stream."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Self

from adatkg.demo.pace import Pace
from adatkg.demo.plan import DATASET, Plan
from adatkg.demo.port import Port
from adatkg.processes import Process, own_environment
from adatkg_core.errors import AdatkgError, InputError
from replay import Choice, Published, ReplaySequence, publish, resume_position
from streams.embedded_broker import Broker, ensure_jars
from streams.kafka import Connection, Topics, ensure_topics

if TYPE_CHECKING:
    from adatkg_core.datasets import Dataset

Report = Callable[[str, int, int], None]
HOST = "127.0.0.1"
TOKEN = "ADATKG_STREAM_WEB_TOKEN"
_NICENESS = 10  # of the trainer: the stream stays live, and training takes what is left
_WORKER_PATIENCE = 20.0  # seconds to save and to leave the group
_TRAINER_PATIENCE = 5.0  # seconds; a round that is killed goes on from its checkpoint


class System:
    """Whatever was started ends when the `with` block does."""

    def __init__(self, plan: Plan, dataset: Dataset) -> None:
        self.plan = plan
        self._past = ReplaySequence(dataset, Choice(DATASET, last=plan.first - 1))
        self._live = ReplaySequence(dataset, Choice(DATASET, first=plan.first, last=plan.last, queries=True))
        self.past, self.last = len(self._past), int(self._live.times[-1])
        self.clock = dataset.clock
        self._resumed = plan.settle_in()
        self.broker = Broker(plan.folder / "broker", port=0)
        self.connection, self.topics = Connection(self.broker.bootstrap), Topics()
        self._port = Port(HOST, plan.port)
        self.token = os.environ.get(TOKEN) or secrets.token_urlsafe(12)
        self.worker_log, self.trainer_log = plan.folder / "worker.log", plan.folder / "trainer.log"
        self.pace = Pace()
        self.published = 0  # messages of the live stream that were handed to the broker
        self._worker: Process | None = None
        self._trainer: Process | None = None
        self._learner: Process | None = None
        self._helper = ThreadPoolExecutor(1, "demo")
        self._broker: Future[None] | None = None
        self._fetching: tuple[str, int, int] | None = None
        self._stream: Future[Published] | None = None
        self._ends = threading.Event()

    @property
    def dashboard(self) -> str:
        """The address of the worker's pages."""
        return f"http://{HOST}:{self._port.number}/"

    @property
    def share(self) -> float:
        """How much of the live stream is in the log."""
        return self.published / len(self._live)

    @property
    def facts(self) -> int:
        """How many facts are in the log."""
        return self.past + self._live.counts(0, self.published)[0]

    def start_broker(self) -> None:
        """Begin with Kafka on a free port; its jars are fetched first if they are not here, once on a machine."""

        def start() -> None:
            ensure_jars(self._fetched)
            self.broker.start()
            ensure_topics(self.connection, self.topics)

        self._broker = self._helper.submit(start)

    def has_broker(self, report: Report = lambda stage, done, total: None) -> bool:
        """Whether Kafka takes messages; what is being fetched until then is reported."""
        if self._fetching is not None:
            report(*self._fetching)
        assert self._broker is not None
        return self._broker.done() and self._broker.result() is None

    def start_learning(self, log: str) -> None:
        """Begin with the first model, unless there is one; progress and log lines of a level go to our stderr."""
        result = self.plan.folder / "first.json"  # holds something once the model is in the store
        if result.exists() and result.stat().st_size:
            return
        arguments = ["train", DATASET, "--to", str(self.plan.first - 1), "--config", self.plan.config]
        arguments += ["--models", self.plan.models, "--graph", DATASET, "--work", str(self.plan.folder / "first")]
        environment = self._environment({"ADATKG_LOG": log})
        self._learner = Process("first training", [*arguments, "--json"], environment, out=result)

    def has_learned(self) -> bool:
        """Whether the first model is there. A failure has been told by whoever failed; only its code is left."""
        code = 0 if self._learner is None else self._learner.code
        if code == 2:
            raise InputError("the first model could not be trained with these settings: see above")
        if code:
            raise AdatkgError(f"training of the first model ended with code {code}: see above")
        return code == 0

    def start_worker(self) -> None:
        """The worker, with the dashboard."""
        arguments = ["worker", "--models", self.plan.models, "--snapshots", str(self.plan.folder / "snapshots")]
        arguments += ["--web-host", HOST, "--web-port", str(self._port.number)]
        self._worker = Process("worker", arguments, self._environment({TOKEN: self.token}, half=True), self.worker_log)

    def start_trainer(self) -> None:
        """The trainer beside it, from now on."""
        arguments = ["retrain", DATASET, "--models", self.plan.models, "--config", self.plan.config]
        arguments += ["--archive", str(self.plan.folder / "archive"), "--warm-start"]
        arguments += ["--every", f"{self.plan.every}-facts"]
        self._trainer = Process(
            "trainer", arguments, self._environment(half=True), self.trainer_log, niceness=_NICENESS
        )

    def publish_past(self) -> None:
        """What the first model knows, so that later ones can learn from it too."""
        self._publish(self._past, None)

    def start_stream(self) -> None:
        """Publish what comes after, each time's questions before its facts, at the speed of the plan.

        Where that is not `max`, the stream waits for a worker that is far behind.
        """

        def stream() -> Published:
            done = self._publish(self._live, self.plan.speed, self._tell, self.pace.holds)
            if done.start == done.total:
                raise InputError(f"the stream in {self.plan.folder} has come to its end; give another --folder")
            return done

        self._stream = self._helper.submit(stream)

    @property
    def is_published(self) -> bool:
        """Whether the live stream has come to its end."""
        return self._stream is not None and self._stream.done()

    @property
    def trains(self) -> bool:
        """Whether the trainer was started."""
        return self._trainer is not None

    def check(self) -> None:
        """Raise the reason if something ended that should run."""
        if self._broker is not None and self._broker.done():
            self._broker.result()
            if self.broker.pid is None:
                raise AdatkgError(f"the broker at {self.broker.bootstrap} ended by itself. {self.broker.last_words()}")
        for process in (self._worker, self._trainer):
            if process is not None:
                process.check()
        if self._stream is not None and self._stream.done():
            self._stream.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        if self._learner is not None:
            self._learner.stop(_TRAINER_PATIENCE, signal.SIGINT)  # as from the terminal, which it leaves in order
        self._helper.shutdown(cancel_futures=True)
        if self._trainer is not None:
            self._trainer.stop(_TRAINER_PATIENCE)
        if self._worker is not None:
            self._worker.stop(_WORKER_PATIENCE)
        self.broker.stop()
        self._port.close()

    def _fetched(self, stage: str, done: int, total: int) -> None:
        if self._ends.is_set():
            raise AdatkgError("the demonstration ends")
        self._fetching = stage, done, total

    def _tell(self, done: int, total: int) -> None:
        self.published = done

    def _publish(
        self,
        sequence: ReplaySequence,
        speed: float | None,
        report: Callable[[int, int], None] = lambda done, total: None,
        hold: Callable[[], bool] = lambda: False,
    ) -> Published:
        log = (self.connection, self.topics.events)
        start = resume_position(sequence, *log) if self._resumed else 0
        return publish(sequence, *log, start=start, speed=speed, stop=self._ends, report=report, hold=hold)

    def _environment(self, more: dict[str, str] | None = None, half: bool = False) -> dict[str, str]:
        """What a process of ours is told; `half` leaves it half of the cores, because it shares them."""
        own = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // 2))} if half else {}
        return own_environment(self.connection.bootstrap, self.plan.folder / "tmp", own | (more or {}))
