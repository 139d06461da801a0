"""What a run has left behind, as the checker wants it: logs, answers, dead letters, states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from adatkg.chaos.checker import (
    GraphLog,
    Models,
    Place,
    Verdict,
    answers_of,
    check,
    longest_silence,
)
from adatkg.chaos.eras import Era, Mark, mark_of, read_eras
from adatkg.chaos.journal import acknowledged
from adatkg.chaos.offline import Event
from adatkg.chaos.stream import ID, KIND
from adatkg.chaos.topics import Record, read_topic
from adatkg_core.storage import Saved
from streams.kafka import Connection, Topics, event_log


@dataclass(frozen=True)
class Evidence:
    """Everything that can be looked at afterwards."""

    eras: Sequence[Era]  # in their order; the last one is that of the topic as it is
    predictions: Sequence[Record]
    letters: Sequence[Record]
    acknowledged: Mapping[tuple[str, str], Place]  # where the broker said that it put each event, by graph and id


def gather(connection: Connection, topics: Topics, journal: Path) -> Evidence:
    """Read the topics and the journal."""
    events, predictions, letters = (
        read_topic(connection.bootstrap, topic) for topic in (topics.events, topics.predictions, topics.deadletter)
    )
    eras = [*read_eras(journal), Era(event_log(connection, topics), events)]
    return Evidence(eras, predictions, letters, acknowledged(journal))


def judge(evidence: Evidence, saved: Mapping[str, Saved | None], models: Models, first: Mapping[str, str]) -> Verdict:
    """Compare everything with what the engine says.

    `saved` has the states that were saved last, `first` the versions before any model event, both by graph.
    """
    verdict = Verdict()
    predictions = answers_of([record.value or b"" for record in evidence.predictions])
    letters = letters_of(evidence.letters)
    for era in evidence.eras:
        marks = [(record.place, mark_of(record.value)) for record in era.events]
        own_predictions = {one[0]: predictions[one] for one in marks if one in predictions}
        own_letters = {one[0]: letters[one] for one in marks if one in letters}
        is_last = era is evidence.eras[-1]
        logs = [graph_log(era, graph, state, is_last) for graph, state in saved.items()]
        check([log for log in logs if log.events], own_predictions, own_letters, models, first, verdict)
        _check_keyless(era, own_letters, verdict)
    _check_acknowledged(evidence, verdict)
    for graph in saved:
        times = [record.timestamp for record in evidence.predictions if record.key == graph.encode()]
        verdict.longest_silence_seconds = max(verdict.longest_silence_seconds, round(longest_silence(times), 1))
    return verdict


def graph_log(era: Era, graph: str, saved: Saved | None, is_last: bool = True) -> GraphLog:
    """The events of one graph in one log, of which `saved` is the state if it is the last."""
    own = [record for record in era.events if record.key == graph.encode()]
    events = [Event(record.offset, _body(record), record.timestamp) for record in own]
    partition = own[0].partition if own else 0
    return GraphLog(graph, partition, events, saved, era.log.log_id(partition), is_last)


def letters_of(records: Sequence[Record]) -> dict[tuple[Place, Mark], str]:
    """The reasons of dead letters, by the place and the mark of the event."""
    found = {}
    for record in records:
        if "offset" in record.headers:
            place = int(record.headers["partition"]), int(record.headers["offset"])
            found[place, mark_of(record.value)] = record.headers["reason"].decode()
    return found


def _body(record: Record) -> dict[str, object] | None:
    """The event, unless it was sent to be of no use; what the system itself adds to the log is as it says."""
    if record.headers.get(KIND) == b"garbage":
        return None
    body: dict[str, object] = orjson.loads(record.value or b"")
    return body


def _check_acknowledged(evidence: Evidence, verdict: Verdict) -> None:
    """What the broker acknowledged is in the log, or was there when its topic was deleted."""
    events = [record for era in evidence.eras for record in era.events]
    there = {(record.place, record.headers.get(ID, b"").decode()) for record in events}
    for (graph, id), place in evidence.acknowledged.items():
        if (place, id) not in there:
            verdict.lost_events += 1
            verdict.note(f"{graph}: event {id} was acknowledged at {place} and is not there")


def _check_keyless(era: Era, letters: Mapping[Place, str], verdict: Verdict) -> None:
    """What has no key and so no graph is a dead letter."""
    for record in era.events:
        if record.key is None and record.place not in letters:
            verdict.dead_letters_missing += 1
            verdict.note(f"no dead letter for the event without a key at {record.place}")
