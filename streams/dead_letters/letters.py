"""Dead letters: what could not be processed, as it came, with the reason in its headers.

A dead letter is marked as retried by an empty record behind it in the same topic; nothing is ever deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kafka import KafkaProducer
from kafka.errors import KafkaError

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Source
from streams.kafka import LARGEST_MESSAGE, Connection, LogReader, Record, Topics, header, open_log, unreachable

HEADERS = {
    "reason": "why it is here, in a word that can be counted",
    "detail": "why it is here, in a sentence that can be acted on",
    "topic": "where the event stands: topic,",
    "partition": "its partition",
    "offset": "and its offset there",
    "graph": "the event's key as text",
}
RETRIED = "retried"  # header of a mark: the id of the dead letter that was put back
RETRY_OF = "retry-of"  # header of an event that was put back: the id of the dead letter
UNCHANGED = "unchanged"  # header of one that was put back as it was: the reason for which it had been refused
_PATIENCE = 60.0  # seconds until the broker has acknowledged a record


def dead_letter_headers(
    reason: str, detail: str, topic: str, partition: int, offset: int, graph: str
) -> list[tuple[str, bytes]]:
    """The headers of a dead letter: why it is one, and where in the log the event stands."""
    texts = (reason, detail, topic, str(partition), str(offset), graph)
    # A detail may quote what is no text at all; a dead letter must never be the next thing that fails.
    return [(name, text.encode(errors="replace")) for name, text in zip(HEADERS, texts, strict=True)]


@dataclass(frozen=True)
class DeadLetter:
    """An event that could not be processed, at its own place in the dead-letter topic."""

    partition: int
    offset: int
    timestamp: int  # milliseconds
    key: bytes | None
    value: bytes | None  # None also where it was left out, to read only what the headers say
    size: int  # of the value, in bytes
    headers: tuple[tuple[str, bytes], ...]
    retried: int = 0  # times

    @property
    def id(self) -> str:
        """How a user calls it."""
        return Source(self.partition, self.offset).id

    @property
    def reason(self) -> str:
        """A word that can be counted."""
        return header(self.headers, "reason") or "unknown"

    @property
    def detail(self) -> str:
        """A sentence that can be acted on."""
        return header(self.headers, "detail")

    @property
    def graph(self) -> str:
        """The graph it was meant for."""
        return header(self.headers, "graph")

    @property
    def topic(self) -> str:
        """The topic in which the event stands."""
        return header(self.headers, "topic")

    @property
    def source(self) -> Source | None:
        """Where in that topic; None when the headers do not say."""
        partition, offset = header(self.headers, "partition"), header(self.headers, "offset")
        return Source(int(partition), int(offset)) if partition.isdecimal() and offset.isdecimal() else None


Report = Callable[[int, int], None]


class DeadLetters:
    """Reads the dead-letter topic. Values may be large and many, so they are read one by one when they are wanted."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self._connection, self._topics = connection, topics

    def read(self, tell: Report = lambda done, total: None) -> list[DeadLetter]:
        """All that are kept, oldest first in each partition, without their values; `tell` hears how far it is."""
        with open_log(self._connection, self._topics.deadletter) as log:
            return _read(log, {partition: log.bounds(partition) for partition in log.partitions()}, 0, tell)

    def latest(self, count: int, shown: int) -> list[DeadLetter]:
        """Of the newest `count` records of each partition those letters that nobody put back, oldest first.

        `shown` bytes of their values are read along.
        """
        with open_log(self._connection, self._topics.deadletter) as log:
            bounds = {partition: log.bounds(partition) for partition in log.partitions()}
            newest = {partition: (max(first, end - count), end) for partition, (first, end) in bounds.items()}
            return [letter for letter in _read(log, newest, shown) if not letter.retried]

    def find(self, partition: int, offset: int) -> DeadLetter:
        """One letter with its value."""
        id = Source(partition, offset).id
        with open_log(self._connection, self._topics.deadletter) as log:
            first, end = log.bounds(partition) if partition in log.partitions() else (0, 0)
            # A letter that was put back is marked behind it.
            letters = _read(log, {partition: (offset, end)}, 0) if first <= offset < end else []
        return next(self.with_values(choose(letters, [id])))

    def with_values(self, letters: Sequence[DeadLetter]) -> Iterator[DeadLetter]:
        """The same letters with their values, read as they are taken, in the order of the log."""
        with open_log(self._connection, self._topics.deadletter) as log:
            for partition in sorted({letter.partition for letter in letters}):
                wanted = {letter.offset: letter for letter in letters if letter.partition == partition}
                for record in log.read(partition, min(wanted), max(wanted) + 1):
                    if letter := wanted.pop(record.offset, None):
                        yield replace(letter, value=record.value)
                if wanted:
                    gone = Source(partition, min(wanted)).id
                    raise AdatkgError(f"dead letter {gone}: {self._topics.deadletter} keeps it no longer")


def _read(
    log: LogReader, bounds: Mapping[int, tuple[int, int]], shown: int, tell: Report = lambda done, total: None
) -> list[DeadLetter]:
    """The letters in these ranges, with at most `shown` bytes of their values, none at all where it is 0."""
    letters: dict[str, DeadLetter] = {}
    retried: Counter[str] = Counter()
    total, done = sum(end - first for first, end in bounds.values()), 0
    for partition, (first, end) in bounds.items():
        for record in log.read(partition, first, end):
            done += 1
            tell(done, total)
            if put_back := header(record.headers, RETRIED):
                retried[put_back] += 1
            else:
                letter = _letter(record)
                letters[letter.id] = replace(letter, value=(letter.value or b"")[:shown] if shown else None)
    return [replace(letter, retried=retried[id]) for id, letter in letters.items()]


def choose(letters: Sequence[DeadLetter], ids: Sequence[str]) -> list[DeadLetter]:
    """The letters with these ids, in the order of the log."""
    known = {letter.id for letter in letters}
    if missing := [id for id in ids if id not in known]:
        raise InputError(f"dead letter {missing[0]}: there is none of this id; see `adatkg deadletters list --all`")
    return [letter for letter in letters if letter.id in set(ids)]


class Outbox:
    """Puts events back into the log and marks their dead letters; each step returns when the broker has all of it."""

    def __init__(self, connection: Connection, topics: Topics, producer: KafkaProducer) -> None:
        self._connection, self._topics, self._producer = connection, topics, producer

    def put_back(self, events: Sequence[tuple[DeadLetter, bytes]]) -> None:
        """Append events to the log, each under the key of its dead letter."""
        messages = []
        for letter, value in events:
            notes = [(RETRY_OF, letter.id.encode())]
            if value == letter.value:
                notes.append((UNCHANGED, letter.reason.encode()))
            messages.append((letter.key, value, notes))
        self._send(self._topics.events, messages)

    def mark(self, letters: Sequence[DeadLetter]) -> None:
        """Note that these have been put back."""
        self._send(self._topics.deadletter, [(letter.key, b"", [(RETRIED, letter.id.encode())]) for letter in letters])

    def retry(self, events: Sequence[tuple[DeadLetter, bytes]]) -> None:
        """Put back, then mark: whoever is killed in between finds them unmarked and loses nothing."""
        self.put_back(events)
        self.mark([letter for letter, _ in events])

    def _send(self, topic: str, messages: Sequence[tuple[bytes | None, bytes, list[tuple[str, bytes]]]]) -> None:
        try:
            underway = [
                self._producer.send(topic, key=key, value=value, headers=notes) for key, value, notes in messages
            ]
            for future in underway:
                future.get(_PATIENCE)
        except KafkaError as error:
            raise AdatkgError(
                f"{topic} at {self._connection.bootstrap}: writing failed ({error}); check the broker and try again"
            ) from error


@contextmanager
def open_outbox(connection: Connection, topics: Topics) -> Iterator[Outbox]:
    """An outbox while the context lasts."""
    try:
        producer = KafkaProducer(
            **connection.producer(), client_id="adatkg-deadletters", max_request_size=LARGEST_MESSAGE + 65_536
        )
    except KafkaError as error:
        raise unreachable(connection, error) from error
    try:
        yield Outbox(connection, topics, producer)
    finally:
        producer.close()


def _letter(record: Record) -> DeadLetter:
    return DeadLetter(
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        len(record.value or b""),
        record.headers,
    )
