"""A graph's facts from the log, kept in columns on this machine: each is read once and outlives the log's retention.

The archive is a row of segments, each an artifact with the facts between two offsets. A short last segment is written
again together with what is new and then removed, so that segments stay few; whoever is killed in between leaves both,
and the longer one counts.
"""

from __future__ import annotations

import re
import shutil
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog
import torch

from adatkg_core.clock import DAY, Clock, clock_from_dict
from adatkg_core.constants import MAX_JUMP, LatePolicy
from adatkg_core.datasets import Dataset, Facts, newest_window
from adatkg_core.engine import Admission, EntityLimit
from adatkg_core.errors import InputError
from adatkg_core.events import Fact, ModelEvent
from adatkg_core.messages import Question, Reason, Unusable, decode_event
from adatkg_core.state import Catalog
from adatkg_core.storage import read_artifact, remove_artifact, write_artifact
from streams.kafka import LogReader, Origins, Record, origin_of

KIND = "facts"
FULL = 250_000  # facts from which on a segment is left as it is; also what is held in memory while reading
COLUMNS = ("subject", "relation", "object", "time", "offset")
WINDOW = 0.1  # share of the distinct times that is the newest window
_NAME = re.compile(r"(\d{20})-(\d{20})")
_GRANULARITY = {DAY: "day", 900: "15 minutes"}

log = structlog.get_logger()


@dataclass(frozen=True)
class _Segment:
    place: Path
    facts: int


class Archive:
    """The facts of one graph up to `next`, the offset from which the log is read on. For one process at a time."""

    next: int
    watermark: int | None
    clock: Clock | None
    origins: Origins  # of events that were moved into this log
    _log: str | None  # the id of the log that it was read from
    _full_at: int | None  # the most entities, if a fact was left out because they would have been more
    _sound: bool  # whether memory says what the disk says
    _damage: tuple[int, str] | None  # from which offset on segments are of no use, and why

    def __init__(self, folder: Path, graph: str) -> None:
        self._folder, self.graph = folder / "segments", graph
        self._load()

    @property
    def facts(self) -> int:
        """How many facts there are."""
        return sum(segment.facts for segment in self._segments)

    def update(
        self,
        reader: LogReader,
        partition: int,
        clock: Clock | None,
        max_jump: int = MAX_JUMP,
        *,
        log_id: str = "",
        late: LatePolicy = "apply",
        max_entities: int = 0,
        report: Callable[[int, int], None] = lambda done, total: None,
    ) -> int:
        """Take in what the log has from `next` to its end, as an engine would; returns the number of new facts.

        `log_id` tells this log from any other, in which the offsets would mean something else.
        A message that no engine could use is left out, but one whose relation only the present model does not know
        is kept: that is how the next one learns it. Of names there are at most `max_entities`, unless that is 0.
        """
        if not self._sound:
            self._load()
        first, end = reader.bounds(partition)
        self._mend(first)
        self._require_same_log(log_id, first, end)
        self._adopt(clock)
        self._require_room(max_entities)
        self._sweep()
        if first > self.next:
            log.warning("facts_lost_to_retention", graph=self.graph, archived_to=self.next, log_begins=first)
        before, start = self.facts, max(first, self.next)
        self._log, left_out, key = log_id, 0, self.graph.encode()
        self._sound = False  # until what is in memory is on disk
        limit = EntityLimit(self._entities, max_entities) if max_entities else None
        admission = Admission(self.watermark, late, max_jump, entities=limit)
        for record in reader.read(partition, start, end):
            if record.key == key:
                left_out += not self._take(record, admission)
            if len(self._rows) >= FULL * len(COLUMNS):
                self._write(record.offset + 1)
            if (record.offset - start) % 1000 == 0:
                report(record.offset - start, end - start)
        if end > self.next:
            self._write(end)
            report(end - start, end - start)
        self._sound = True
        fresh = self.facts - before
        if end > start:
            log.info("log_read", graph=self.graph, start=start, end=end, facts=fresh, left_out=left_out)
        return fresh

    def dataset(
        self, until: int | None = None, window: float = WINDOW, relations: Sequence[str] = (), name: str | None = None
    ) -> Dataset:
        """The facts below an offset; its valid split is the newest window, a share of the distinct times.

        `relations` are named too where no fact mentions them.
        """
        if self._damage is not None:
            raise InputError(f"{self._damage[1]}; update the archive from the log, or restore the segment from a copy")
        facts = self._facts_below(self.next if until is None else until)
        entities = int(facts[:, [0, 2]].max()) + 1 if len(facts) else 0
        kinds = int(facts[:, 1].max()) + 1 if len(facts) else 0
        times = np.unique(facts[:, 3])
        bounds = newest_window(times, window) if len(times) else (0, 0)
        known = tuple(dict.fromkeys((*self._relations.names[:kinds], *relations)))
        granularity = _GRANULARITY.get(self.clock.seconds, "tick") if self.clock else "tick"
        names = tuple(self._entities.names[:entities])
        return Dataset(name or self.graph, names, known, facts, 1, granularity, bounds)

    # -- reading the log --------------------------------------------------------------------------------------

    def _take(self, record: Record, admission: Admission) -> bool:
        """Whether the message could be used; a fact behind the watermark counts as of the watermark."""
        if not self.origins.take(origin_of(record.headers)):
            return False
        try:
            event = decode_event(record.value, self.clock)
        except Unusable:
            return False
        if isinstance(event, Question | ModelEvent):
            return True
        objection = admission.object_to_fact(event) if isinstance(event, Fact) else admission.object_to_time(event.t)
        if objection is not None:
            if objection[0] is Reason.TOO_MANY_ENTITIES and admission.entities is not None:
                self._full_at = admission.entities.most
            return False
        self.watermark = admission.take_fact(event) if isinstance(event, Fact) else admission.take(event.t)
        if isinstance(event, Fact):
            self._entities.add((event.s, event.o))
            self._relations.add((event.r,))
            subject, other = self._entities.rows((event.s, event.o))
            self._rows.extend((subject, self._relations.rows((event.r,))[0], other, self.watermark, record.offset))
        return True

    def _require_same_log(self, log_id: str, first: int, end: int) -> None:
        """A new broker can have topics of the old names."""
        if self._log not in (None, log_id) or end < self.next:
            raise InputError(
                f"{self._folder}: was read up to offset {self.next} from another log than the present one, whose "
                f"offsets are {first} to {end}; give another --archive, or remove this folder to begin anew"
            )

    def _require_room(self, max_entities: int) -> None:
        """What was left out for want of room is not here; with more room it would be."""
        if self._full_at not in (None, max_entities):
            raise InputError(
                f"{self._folder}: facts with new names were left out with model.max_entities = {self._full_at}, now it "
                f"is {max_entities}; remove this folder to read the log again"
            )

    def _adopt(self, clock: Clock | None) -> None:
        if self.clock is not None and clock is not None and self.clock != clock:
            raise InputError(
                f"{self._folder}: its times were read by the clock {self.clock.as_dict()}, the present bundle has "
                f"{clock.as_dict()}; remove this folder to read the log again"
            )
        self.clock = clock or self.clock

    # -- segments ---------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Go through the segments from the beginning, as far as they are sound and without a hole."""
        self._entities, self._relations = Catalog(), Catalog()
        self._segments: list[_Segment] = []
        self._rows = array("q")  # the facts of the short last segment, flat
        self._begin = (0, 0, 0)  # where the segment to be written begins: offset, entities, relations
        self._damage = self._log = None
        self.next, self.watermark, self.clock, self.origins = 0, None, None, Origins()
        self._full_at = None
        self._sound = False  # until all is read: a disk that fails for a moment is no damage
        places = sorted(place for place in self._folder.glob("*-*") if _NAME.fullmatch(place.name))
        while rest := [place for place in places if int(place.name[21:]) > self.next]:
            # After a kill two may begin here; the longer one has all that the shorter one has.
            here = [place for place in reversed(rest) if int(place.name[:20]) == self.next]
            problem = f"{self._folder}: no segment begins at offset {self.next}"
            for place in here:
                try:
                    self._read(place)
                    break
                except InputError as error:
                    problem = str(error)
            else:
                self._damage = (self.next, problem)
                break
        self._sound = True

    def _read(self, place: Path) -> None:
        tensors, meta = read_artifact(place, KIND)
        try:
            begin = (int(meta["first"]), int(meta["entities_before"]), int(meta["relations_before"]))
            if begin != (self.next, len(self._entities), len(self._relations)) or meta["graph"] != self.graph:
                raise ValueError("its place in the archive")
            columns = np.stack([tensors[name].numpy().astype(np.int64) for name in COLUMNS], 1)
            clock = clock_from_dict(meta["clock"], where=f"{place}: clock")
            following, log_id = int(meta["next"]), str(meta["log"])
            origins, full = Origins(meta.get("origins", ())), meta.get("full_at")
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{place}: its description lacks {error}; it does not fit those before it") from error
        self._entities.add(meta["entities"])
        self._relations.add(meta["relations"])
        self._segments.append(_Segment(place, len(columns)))
        self.next, self.watermark, self.clock, self.origins = following, meta["watermark"], clock, origins
        self._full_at = None if full is None else int(full)
        self._log, self._rows, self._begin = log_id, array("q"), begin
        if len(columns) < FULL:
            self._rows.frombytes(columns.tobytes())
        else:
            self._begin = (self.next, len(self._entities), len(self._relations))

    def _write(self, following: int) -> None:
        """Put what is in memory into one segment; the short one that it grew out of goes when it is there."""
        first, entities, relations = self._begin
        columns = np.array(self._rows, dtype=np.int64).reshape(-1, len(COLUMNS))
        tensors = {name: torch.from_numpy(columns[:, i].copy()) for i, name in enumerate(COLUMNS)}
        meta: dict[str, Any] = {
            "graph": self.graph,
            "log": self._log,
            "first": first,
            "next": following,
            "watermark": self.watermark,
            "clock": self.clock.as_dict() if self.clock else None,
            "origins": self.origins.pairs(),
            "full_at": self._full_at,
            "entities_before": entities,
            "relations_before": relations,
            "entities": self._entities.names[entities:],
            "relations": self._relations.names[relations:],
        }
        place = self._folder / f"{first:020d}-{following:020d}"
        small = {name: t if name == "offset" else t.to(torch.int32) for name, t in tensors.items()}
        write_artifact(place, KIND, small, meta)
        if self._segments and self._segments[-1].place.name.startswith(f"{first:020d}-"):
            remove_artifact(self._segments.pop().place)
        self._segments.append(_Segment(place, len(columns)))
        self.next, full = following, len(columns) >= FULL
        if full:
            self._rows = array("q")
            self._begin = (following, len(self._entities), len(self._relations))

    def _mend(self, log_begins: int) -> None:
        """What is damaged is read from the log again, if that still has it."""
        if self._damage is None:
            return
        offset, problem = self._damage
        if log_begins > offset:
            raise InputError(
                f"{problem}; the log begins at {log_begins}, so the facts from {offset} on cannot be read again: "
                f"restore the segment from a copy, or remove {self._folder} to begin with what the log still has"
            )
        log.warning("archive_damaged", graph=self.graph, problem=problem, read_again_from=offset)
        self._damage = None

    def _sweep(self) -> None:
        """Remove what is not in use: leftovers of a kill, and what stood behind a damaged segment."""
        used = {segment.place for segment in self._segments}
        if self._folder.is_dir():
            for place in self._folder.iterdir():
                if place not in used:
                    shutil.rmtree(place, ignore_errors=True)

    def _facts_below(self, offset: int) -> Facts:
        facts, count = np.empty((self.facts, 4), dtype=np.int64), 0
        for segment in self._segments:
            try:
                tensors, _ = read_artifact(segment.place, KIND)
            except InputError:
                self._sound = False  # the next update looks at every segment again
                raise
            size = int(torch.searchsorted(tensors["offset"], offset))
            for column, name in enumerate(COLUMNS[:4]):
                facts[count : count + size, column] = tensors[name][:size].numpy()
            count += size
        return facts[:count]
