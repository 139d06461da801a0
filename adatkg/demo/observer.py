"""Looks at a running demonstration from outside, as anyone could: its topics, its pages and its logs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from adatkg.demo.mishaps import Mishaps
from adatkg.demo.plan import DATASET
from adatkg.demo.process_logs import Story
from adatkg.demo.system import System
from adatkg.demo.worker_pages import Pages
from adatkg.processes import Lines
from adatkg_core.messages import Prediction, decode_prediction
from streams.client import Seen
from streams.kafka import LogReader, open_log, partition_of

_PAGES = 1.0  # seconds between two looks at the pages


class Watch:
    """What there is to see of a system since the watch began; what cannot be read is passed over."""

    def __init__(self, system: System, predictions: LogReader, mishaps: Mishaps) -> None:
        self._mishaps = mishaps
        self.pages = Pages(system.dashboard, DATASET)
        self.story = Story(Lines(system.trainer_log), Lines(system.worker_log))
        self.predictions = 0
        self.first: float | None = None  # when the first prediction was written, in unix seconds
        self.last: Prediction | None = None
        self._ranked, self._reciprocal = 0, 0.0
        self._reader, self._seen = predictions, Seen()
        self._partition = partition_of(DATASET, len(predictions.partitions()))
        _, self._next = predictions.bounds(self._partition)
        self._delivered = 0  # like `predictions`, repeats after a restart of the worker included
        self._looked = 0.0

    def look(self) -> None:
        """See what is new."""
        with self._mishaps.bear("read the logs of the processes"):
            self.story.look()
        if time.monotonic() - self._looked >= _PAGES:
            self._look_at_pages()
            self._looked = time.monotonic()
        with self._mishaps.bear("read the predictions"):
            self._read_on()

    @property
    def mrr(self) -> float | None:
        """Over all answers to queries that asked for the rank of what then happened."""
        return self._reciprocal / self._ranked if self._ranked else None

    def is_ready(self) -> bool:
        """Whether events reach the worker."""
        self._look_at_pages()
        return self.pages.ready

    def is_even(self, last: int) -> bool:
        """Whether the worker has taken in everything up to this time and all its answers have been seen."""
        pages = self.pages
        return pages.watermark == last and pages.lag == 0 and self._delivered >= pages.predictions

    def _look_at_pages(self) -> None:
        with self._mishaps.bear("read the pages of the worker"):
            self.pages.look()

    def _read_on(self) -> None:
        _, end = self._reader.bounds(self._partition)
        for record in self._reader.read(self._partition, self._next, end):
            self._next = record.offset + 1
            self._delivered += 1
            with self._mishaps.bear("read a prediction", partition=record.partition, offset=record.offset):
                self._take(decode_prediction(record.value), record.timestamp / 1000)
        self._next = end

    def _take(self, forecast: Prediction, written: float) -> None:
        if self._seen.repeats(forecast):
            return
        self.predictions += 1
        self.first = written if self.first is None else self.first
        self.last = forecast
        for rank in forecast.ranks.values():
            self._ranked += 1
            self._reciprocal += 1 / rank


@contextmanager
def watching(system: System, mishaps: Mishaps) -> Iterator[Watch]:
    """A watch over what happens from now on."""
    with open_log(system.connection, system.topics.predictions) as predictions:
        yield Watch(system, predictions, mishaps)
