"""The messages of a replay in their order: a pure function of a data set and of what of it is chosen."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import orjson
from numpy.typing import NDArray

from adatkg_core.clock import readable
from adatkg_core.constants import LAST_TIME
from adatkg_core.datasets import Dataset, Split
from adatkg_core.errors import InputError
from adatkg_core.messages import MAX_K, VERSION, Unusable, require_graph, require_name
from replay.message_templates import Writer


@dataclass(frozen=True)
class Choice:
    """What of a data set is replayed, and as which graph; bounds are ticks and both included."""

    graph: str
    split: Split | None = None
    first: int | None = None
    last: int | None = None
    queries: bool = False
    queries_from: int | None = None  # implies `queries`
    k: int = 10


class ReplaySequence:
    """The messages, numbered from 0. Each time's queries, both directions of each fact, come before its facts."""

    def __init__(self, dataset: Dataset, choice: Choice) -> None:
        self.dataset, self.graph, self.k = dataset, choice.graph, choice.k
        self._begin, end = _chosen_rows(dataset, choice)
        times, first, facts = np.unique(dataset.facts[self._begin : end, 3], return_index=True, return_counts=True)
        asked = _asked(dataset, choice, times)
        self.times: NDArray[np.int64] = times  # [T]
        self._row = first + self._begin  # [T] of a time's first fact in the data set
        self._facts = facts  # [T]
        self._queries = np.where(asked, 2 * facts, 0)  # [T]
        self._end = np.cumsum(self._facts + self._queries)  # [T] number of the message after a time's last
        _check(dataset, choice)

    def __len__(self) -> int:
        return int(self._end[-1])

    @cached_property
    def digest(self) -> str:
        """Names the sequence: replays whose messages differ have different ones."""
        asked = np.flatnonzero(self._queries)
        shape = {
            "v": VERSION,
            "name": self.dataset.name,
            "graph": self.graph,
            "rows": [self._begin, self._begin + int(self._facts.sum())],
            "asked": int(self._row[asked[0]]) if len(asked) else None,
            "k": self.k if len(asked) else None,
        }
        content = hashlib.sha256(orjson.dumps([shape, self.dataset.entities, self.dataset.relations]))
        content.update(np.ascontiguousarray(self.dataset.facts, "<i8").tobytes())
        return content.hexdigest()[:16]

    def blocks(self, start: int = 0) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Each time with its messages, from message `start` on; nothing before that is made."""
        writer = Writer(self.dataset, self.k)
        place = self._place(start)
        for index in range(place, len(self.times)):
            skip = start - self._start(place) if index == place else 0
            yield int(self.times[index]), self._messages(writer, index, skip)

    def time_of(self, number: int) -> int:
        """The time that this message speaks of."""
        return int(self.times[self._place(number)])

    def counts(self, start: int, end: int) -> tuple[int, int]:
        """How many facts and how many queries the messages from `start` up to but not including `end` are."""
        queries = self._queries_before(end) - self._queries_before(start)
        return end - start - queries, queries

    def _queries_before(self, number: int) -> int:
        place = self._place(number)
        before = int(self._queries[:place].sum())
        if place < len(self.times):
            before += min(number - self._start(place), int(self._queries[place]))
        return before

    def _place(self, number: int) -> int:
        """Which time the message belongs to; the number of times for a message after the last."""
        return int(np.searchsorted(self._end, number, side="right"))

    def _start(self, place: int) -> int:
        return int(self._end[place - 1]) if place else 0

    def _messages(self, writer: Writer, index: int, skip: int) -> Iterator[bytes]:
        first, count, queries = (int(column[index]) for column in (self._row, self._facts, self._queries))
        rows: list[list[int]] = self.dataset.facts[first : first + count].tolist()
        if skip < queries:
            yield from _questions(writer, first, rows, skip)
        fact = writer.fact
        for s, r, o, t in rows[max(skip - queries, 0) :]:
            yield fact(s, r, o, t)


def _questions(writer: Writer, first: int, rows: list[list[int]], skip: int) -> Iterator[bytes]:
    """Both directions of each fact; `rows` are all of their time in the data set, so they hold every true answer."""
    objects: dict[tuple[int, int], set[int]] = defaultdict(set)
    subjects: dict[tuple[int, int], set[int]] = defaultdict(set)
    for s, r, o, _ in rows:
        objects[s, r].add(o)
        subjects[r, o].add(s)
    ask_object, ask_subject = writer.ask_object, writer.ask_subject
    for row, (s, r, o, t) in enumerate(rows[skip // 2 :], first + skip // 2):
        if not skip % 2 or row > first + skip // 2:
            answers = objects[s, r]
            yield ask_object(row, s, r, o, t, sorted(answers - {o}) if len(answers) > 1 else ())
        answers = subjects[r, o]
        yield ask_subject(row, s, r, o, t, sorted(answers - {s}) if len(answers) > 1 else ())


def _chosen_rows(dataset: Dataset, choice: Choice) -> tuple[int, int]:
    """The range of the data set's rows; whole times, because a split's bounds are times too."""
    facts = dataset.facts
    ticks = facts[:, 3]
    if choice.first is not None and choice.last is not None and choice.first > choice.last:
        first, last = readable(dataset.clock, choice.first), readable(dataset.clock, choice.last)
        raise InputError(f"--from {first} is after --to {last}: give the earlier time first")
    begin, end = 0, len(facts)
    if choice.split is not None:
        part = dataset.split(choice.split)
        if not len(part):
            raise InputError(f"data set {dataset.name}: its {choice.split} split is empty; choose another --split")
        begin, end = int(np.searchsorted(ticks, part[0, 3])), int(np.searchsorted(ticks, part[-1, 3], "right"))
    if choice.first is not None:
        begin = max(begin, int(np.searchsorted(ticks, choice.first, "left")))
    if choice.last is not None:
        end = min(end, int(np.searchsorted(ticks, choice.last, "right")))
    if begin >= end:
        whole = dataset.split(choice.split) if choice.split else facts
        first, last = (readable(dataset.clock, int(time)) for time in (whole[0, 3], whole[-1, 3]))
        bounds = f"{_shown(dataset, choice.first, 'the beginning')} to {_shown(dataset, choice.last, 'the end')}"
        raise InputError(
            f"data set {dataset.name}: nothing to publish from {bounds}; {choice.split or 'it'} has times "
            f"{first} to {last}, set --from and --to inside these"
        )
    return begin, end


def _asked(dataset: Dataset, choice: Choice, times: NDArray[np.int64]) -> NDArray[np.bool_]:
    if choice.queries_from is None:
        return np.full(len(times), choice.queries)
    if choice.queries_from > times[-1]:
        wanted, last = readable(dataset.clock, choice.queries_from), readable(dataset.clock, int(times[-1]))
        raise InputError(
            f"data set {dataset.name}: --queries-from {wanted} is after {last}, the last time that "
            "is published, so nothing would be asked; give an earlier one"
        )
    return np.asarray(times >= choice.queries_from)


def _check(dataset: Dataset, choice: Choice) -> None:
    """Refuse now what every reader of the stream would refuse message by message."""
    if not 0 <= choice.k <= MAX_K:
        raise InputError(f"--k {choice.k}: give a number from 0 to {MAX_K}")
    if int(dataset.facts[-1, 3]) > LAST_TIME:
        raise InputError(f"data set {dataset.name}: time {dataset.facts[-1, 3]} is too large; a tick has 32 bits")
    _check_name("--graph", choice.graph, "choose another", require_graph)
    remedy = f"correct it in the files of data set {dataset.name}"
    _check_name("the data set's name in the ids of queries", f"{dataset.name}-{len(dataset.facts)}-o", "rename it")
    for kind, names in (("entity", dataset.entities), ("relation", dataset.relations)):
        for number, name in enumerate(names):
            _check_name(f"{kind} {number}", name, remedy)


def _check_name(what: str, name: str, remedy: str, require: Callable[[str, str], str] = require_name) -> None:
    try:
        require(what, name)
    except Unusable as error:
        raise InputError(f"{error.detail}; {remedy}") from error


def _shown(dataset: Dataset, bound: int | None, otherwise: str) -> str:
    return otherwise if bound is None else f"time {readable(dataset.clock, bound)}"
