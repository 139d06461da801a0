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
from adatkg.chaos.journal import acknowledged
from adatkg.chaos.offline import Event
from adatkg.chaos.stream import ID, KIND
from adatkg.chaos.topics import Record, read_topic
from adatkg_core.storage import Saved
from streams.kafka import Topics


@dataclass(frozen=True)
class Evidence:
    """Everything that can be looked at afterwards."""

    events: Sequence[Record]
    predictions: Sequence[Record]
    letters: Sequence[Record]
    acknowledged: Mapping[tuple[str, str], Place]  # where the broker said that it put each event, by graph and id


def gather(bootstrap: str, topics: Topics, journal: Path) -> Evidence:
    """Read the topics and the journal."""
    events, predictions, letters = (
        read_topic(bootstrap, topic) for topic in (topics.events, topics.predictions, topics.deadletter)
    )
    return Evidence(events, predictions, letters, acknowledged(journal))


def judge(evidence: Evidence, saved: Mapping[str, Saved | None], models: Models, first: Mapping[str, str]) -> Verdict:
    """Compare everything with what the engine says.

    `saved` has the states that were saved last, `first` the versions before any model event, both by graph.
    """
    logs = [graph_log(evidence.events, graph, state) for graph, state in saved.items()]
    predictions = answers_of([record.value or b"" for record in evidence.predictions])
    letters = letters_of(evidence.letters)
    verdict = check(logs, predictions, letters, models, first)
    _check_log(evidence, letters, verdict)
    for graph in saved:
        times = [record.timestamp for record in evidence.predictions if record.key == graph.encode()]
        verdict.longest_silence_seconds = max(verdict.longest_silence_seconds, round(longest_silence(times), 1))
    return verdict


def graph_log(records: Sequence[Record], graph: str, saved: Saved | None) -> GraphLog:
    """The events of one graph."""
    own = [record for record in records if record.key == graph.encode()]
    events = [Event(record.offset, _body(record), record.timestamp) for record in own]
    return GraphLog(graph, own[0].partition if own else 0, events, saved)


def letters_of(records: Sequence[Record]) -> dict[Place, str]:
    """The reasons of dead letters, by the place of the event."""
    found = {}
    for record in records:
        if "offset" in record.headers:
            place = int(record.headers["partition"]), int(record.headers["offset"])
            found[place] = record.headers["reason"].decode()
    return found


def _body(record: Record) -> dict[str, object] | None:
    """The event, unless it was sent to be of no use; what the system itself adds to the log is as it says."""
    if record.headers.get(KIND) == b"garbage":
        return None
    body: dict[str, object] = orjson.loads(record.value or b"")
    return body


def _check_log(evidence: Evidence, letters: Mapping[Place, str], verdict: Verdict) -> None:
    """What the broker acknowledged is in the log, and what has no key and so no graph is a dead letter."""
    there = {(record.place, record.headers.get(ID, b"").decode()) for record in evidence.events}
    for (graph, id), place in evidence.acknowledged.items():
        if (place, id) not in there:
            verdict.lost_events += 1
            verdict.note(f"{graph}: event {id} was acknowledged at {place} and is not there")
    for record in evidence.events:
        if record.key is None and record.place not in letters:
            verdict.dead_letters_missing += 1
            verdict.note(f"no dead letter for the event without a key at {record.place}")
