"""A round of retraining: read what is new in the log, train, compare with the present bundle, promote or keep.

The order leaves nothing half done in use, wherever a kill comes:

1. `run.json` says up to which offset the round goes, so that it goes on with the same facts.
2. Train; the checkpoint is in `work`.
3. Measure candidate and present bundle on the newest window.
4. Put state and bundle into the store, with a note; nobody uses them yet.
5. `run.json` holds the decision: from here on it is only carried out, as often as need be.
6. If the brokers still say that this is the graph's only trainer: make the bundle present, announce it, remove old
   ones, forget the run.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import orjson
import structlog
import torch

from adatkg_core.clock import Clock
from adatkg_core.datasets import Dataset, aligned
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.messages import Announcement, Verdict, decode_announcement, encode_announcement
from adatkg_core.storage import Bundle, ModelStore, Saved, read_document, safe_name, why_unfit, write_document
from adatkg_core.text import TextEncoder, load_encoder
from streams.kafka import Connection, Origins, Topics, announce, event_log, open_log, partition_of
from streams.promotion import carry_out, require_unchanged
from trainer.fit import Report, train
from trainer.retrain.archive import Archive
from trainer.retrain.comparison import ModelUnderTest, judge
from trainer.retrain.folder_lock import only_trainer
from trainer.retrain.lease import Lease, lease
from trainer.retrain.metrics import TrainingMetrics
from trainer.retrain.plan import Plan, Round, Underway

TIMES = 2  # distinct times that training needs: some to learn from, and the newest to measure on
log = structlog.get_logger()


@contextmanager
def log_trainer(plan: Plan, connection: Connection, topics: Topics, metrics: TrainingMetrics) -> Iterator[LogTrainer]:
    """The only trainer of this graph, as long as it lasts."""
    events = event_log(connection, topics)
    log_id = events.log_id(partition_of(plan.graph, events.partitions))
    folder = plan.archive / safe_name(topics.prefix) / safe_name(plan.graph)
    with only_trainer(folder, plan.graph), lease(connection, topics, plan.graph) as held:
        # Offsets mean something in one log only: a topic that is made anew gets an archive of its own.
        yield LogTrainer(plan, connection, topics, metrics, folder / safe_name(log_id), log_id, held)


class LogTrainer:
    """Trains one graph from its log, round by round; made by `log_trainer`."""

    def __init__(
        self,
        plan: Plan,
        connection: Connection,
        topics: Topics,
        metrics: TrainingMetrics,
        folder: Path,
        log_id: str,
        held: Lease,
    ) -> None:
        self.plan, self._connection, self._topics, self._metrics = plan, connection, topics, metrics
        self._log_id, self._lease = log_id, held
        self._work = folder / "work"
        self._run_file, self._done_file = str(folder / "run.json"), str(folder / "done.json")
        self._archive = Archive(folder, plan.graph)
        self._store = ModelStore(plan.models)
        self._encoders: dict[str, TextEncoder] = {}
        self._clocks: dict[str, Clock | None] = {}  # of the present bundle

    def unfinished(self) -> bool:
        """Whether a round was begun and not ended."""
        return self._unfinished() is not None

    def new_facts(self, report: Report = lambda stage, done, total: None) -> int:
        """Read on in the log; returns how many facts came since those of the last round."""
        where = event_log(self._connection, self._topics)  # each time: it may have been made anew meanwhile
        partition = partition_of(self.plan.graph, where.partitions)
        with open_log(self._connection, self._topics.events) as reader:
            self._archive.update(
                reader,
                partition,
                self._clock(),
                self.plan.max_jump,
                log_id=where.log_id(partition),
                late=self.plan.late,
                max_entities=self.plan.config.model.max_entities,
                report=lambda done, total: report("read", done, total),
            )
        self._metrics.facts.labels(self.plan.graph).set(self._archive.facts)
        return self._archive.facts - int((read_document(self._done_file) or {}).get("facts", 0))

    def round(self, at_least: int = 0, report: Report = lambda stage, done, total: None) -> Round:
        """One round, if `at_least` so many facts are new; one that was begun before is brought to its end."""
        began = time.perf_counter()
        try:
            done = self._round(at_least, report, began)
        except AdatkgError as error:
            self._metrics.runs.labels(self.plan.graph, "failed").inc()
            log.error("training_failed", graph=self.plan.graph, problem=str(error))
            raise
        if done.status == "waiting":
            log.info("training_waits", graph=done.graph, reason=done.reason, offset=done.offset)
        else:
            outcome = "promoted" if done.status == "present" else "kept"
            self._metrics.runs.labels(done.graph, outcome).inc()
            self._metrics.seconds.labels(done.graph).observe(done.seconds)
            log.info(f"bundle_{outcome}", **asdict(done))
        return done

    # -- private ----------------------------------------------------------------------------------------------

    def _round(self, at_least: int, report: Report, began: float) -> Round:
        run = self._unfinished()
        if run is not None and run.decision is not None:
            announcement = decode_announcement(orjson.dumps(run.decision))
            if self._store.present(self.plan.graph) in (run.against, announcement.version):
                return self._carry_out(run, announcement, began)
        fresh = self.new_facts(report)
        resumed = run is not None
        if run is None:
            run = self._begin()
        dataset = self._archive.dataset(
            run.offset, self.plan.window, run.relations, name=f"{self.plan.graph}-{run.offset}"
        )
        if len(dataset.times) < TIMES:
            return self._waiting(run, f"the log has facts at {len(dataset.times)} times, training needs {TIMES}", began)
        if not resumed and fresh < at_least:
            return self._waiting(run, f"{fresh} new facts since the last round, wanted are {at_least}", began)
        write_document(self._run_file, asdict(run))
        log.info("training_begins", graph=self.plan.graph, offset=run.offset, facts=run.facts, resumed=resumed)
        bundle = self._train(run, dataset, report)
        if self._store.present(self.plan.graph) == bundle.version:
            return self._end(run, bundle.version, "present", "this very bundle is present already", None, began)
        run, announcement = self._decide(run, bundle, dataset, report, began)
        write_document(self._run_file, asdict(run))
        return self._carry_out(run, announcement, began)

    def _begin(self) -> Underway:
        base = self._store.present(self.plan.graph)
        present = None if base is None else self._bundle(base)
        shutil.rmtree(self._work, ignore_errors=True)
        archive = self._archive
        relations = [] if present is None else list(present.relations)
        origins = [list(pair) for pair in archive.origins.pairs()]
        return Underway(
            archive.next, archive.watermark, archive.facts, base, relations, self.plan.shaping(), origins=origins
        )

    def _unfinished(self) -> Underway | None:
        """The run that a kill left; one with other settings is of no use."""
        document = read_document(self._run_file)
        if document is None:
            return None
        try:
            run = Underway(**document)
        except TypeError:
            return None
        return run if run.shaping == self.plan.shaping() else None

    def _train(self, run: Underway, dataset: Dataset, report: Report) -> Bundle:
        warm = None
        if self.plan.warm_start and run.base is not None:
            warm = self._bundle(run.base)
            if warm is None:
                raise InputError(
                    f"bundle {run.base} of graph {self.plan.graph} cannot be read, so nothing can start from it; "
                    "train without --warm-start"
                )
        encoder = self._encoder(self.plan.config.model.encoder)
        device = self.plan.device
        trained = train(dataset, self.plan.config, encoder, self._work, device=device, warm=warm, report=report)
        return replace(trained.bundle, clock=self._archive.clock, graph=self.plan.graph)

    def _decide(
        self, run: Underway, bundle: Bundle, dataset: Dataset, report: Report, began: float
    ) -> tuple[Underway, Announcement]:
        graph, against = self.plan.graph, self._store.present(self.plan.graph)
        present = None if against is None else self._bundle(against)
        mine = ModelUnderTest(bundle, self._encoder(bundle.model.config.model.encoder))
        theirs = None if present is None else self._as_it_answers(present, dataset)
        verdict = judge(mine, theirs, dataset, self.plan.slice, self.plan.margin, report)
        self._metrics.scores(graph, verdict)
        reason = why_unfit(bundle, present, graph, verdict, forced=False)
        if verdict is None and present is not None:
            reason = reason or f"the newest window has no query of the slice {self.plan.slice} to judge by"
        if reason is None:
            praise = _praise(verdict, against, present)
            announcement = Announcement(graph, bundle.version, "present", praise, forced=False, verdict=verdict)
        else:
            announcement = Announcement(graph, bundle.version, "candidate", reason, forced=False, verdict=verdict)
        if bundle.version not in self._store.versions(graph):
            self._store.put(graph, bundle, self._state(run, bundle, dataset, mine.encoder))
        self._store.add_note(
            graph,
            bundle.version,
            status=announcement.status,
            reason=announcement.reason,
            scores=None if verdict is None else asdict(verdict),
            offset=run.offset,
            facts=run.facts,
            seconds=round(time.perf_counter() - began, 1),
        )
        decision = orjson.loads(encode_announcement(announcement))
        return replace(run, decision=decision, against=against), announcement

    def _as_it_answers(self, present: Bundle, dataset: Dataset) -> ModelUnderTest:
        encoder = self._encoder(present.model.config.model.encoder)
        try:
            state = self._store.state(self.plan.graph, present.version, self.plan.device)
        except AdatkgError as error:
            log.warning("state_unusable", graph=self.plan.graph, version=present.version, problem=str(error))
            state = None
        known = None if state is None else state.known_through
        if known is not None and dataset.times[0] > known:
            remedy = "replay those files into the log, or the new bundle starts without them"
            log.warning("facts_not_in_the_log", graph=self.plan.graph, up_to=known, remedy=remedy)
        return ModelUnderTest(present, encoder, state)

    def _state(self, run: Underway, bundle: Bundle, dataset: Dataset, encoder: TextEncoder) -> Saved:
        """What a worker with this bundle would know after the log below the run's offset."""
        engine = bundle.engine(encoder, late=self.plan.late, max_jump=self.plan.max_jump)
        facts = aligned(dataset, bundle.entities, bundle.relations).facts
        engine.observe_rows(torch.from_numpy(facts).to(engine.device))
        if run.watermark is not None:  # ticks may have moved it beyond the last fact
            engine.advance(run.watermark)
        origins = Origins(run.origins).pairs()
        return Saved(
            engine.snapshot(),
            graph=self.plan.graph,
            version=bundle.version,
            offset=run.offset,
            log=self._log_id,
            origins=origins,
        )

    def _carry_out(self, run: Underway, announcement: Announcement, began: float) -> Round:
        self._lease.require()
        require_unchanged(self._store, announcement, run.against)
        carry_out(self._store, announcement, lambda decided: announce(self._connection, self._topics, decided))
        for version in self._store.prune(self.plan.graph, self.plan.keep):
            log.info("bundle_removed", graph=self.plan.graph, version=version)
        return self._end(
            run, announcement.version, announcement.status, announcement.reason, announcement.verdict, began
        )

    def _end(
        self,
        run: Underway,
        version: str,
        status: Literal["present", "candidate"],
        reason: str,
        verdict: Verdict | None,
        began: float,
    ) -> Round:
        write_document(self._done_file, {"offset": run.offset, "facts": run.facts, "version": version})
        Path(self._run_file).unlink(missing_ok=True)
        shutil.rmtree(self._work, ignore_errors=True)
        scores = None if verdict is None else asdict(verdict)
        seconds = round(time.perf_counter() - began, 1)
        return Round(self.plan.graph, version, status, reason, scores, run.offset, run.facts, seconds)

    def _waiting(self, run: Underway, reason: str, began: float) -> Round:
        seconds = round(time.perf_counter() - began, 1)
        return Round(self.plan.graph, None, "waiting", reason, None, run.offset, run.facts, seconds)

    def _clock(self) -> Clock | None:
        """That of the present bundle, else the one the archive was begun with, else the days since 1970."""
        version = self._store.present(self.plan.graph)
        if version is not None and version not in self._clocks:  # asked for at every look at the log
            present = self._bundle(version)
            self._clocks = {} if present is None else {version: present.clock}
        if version in self._clocks:
            return self._clocks[version]
        return self._archive.clock or Clock()

    def _bundle(self, version: str) -> Bundle | None:
        """A bundle of the store; one that cannot be read is as good as none."""
        try:
            return self._store.bundle(self.plan.graph, version, self.plan.device)
        except AdatkgError as error:
            log.warning("model_unusable", graph=self.plan.graph, version=version, problem=str(error))
            return None

    def _encoder(self, spec: str) -> TextEncoder:
        if spec not in self._encoders:
            self._encoders[spec] = load_encoder(spec, device=self.plan.device)
        return self._encoders[spec]


def _praise(verdict: Verdict | None, against: str | None, present: Bundle | None) -> str:
    if against is None:
        return "the first bundle of this graph"
    if present is None or verdict is None or verdict.present is None:
        return f"the present bundle {against} cannot be read"
    figures = f"{verdict.candidate:.4f} against {verdict.present:.4f}"
    return f"MRR {figures} of {against} on the newest window ({verdict.slice}, margin {verdict.margin:g})"
