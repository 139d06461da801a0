"""Was anything lost, or different? Asked of the topics, the stores and the journal alone, when all is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import orjson

from adatkg.chaos.comparison import why_different, why_other_state
from adatkg.chaos.eras import Mark, id_mark
from adatkg.chaos.offline import Event, Followed, follow
from adatkg_core.errors import AdatkgError
from adatkg_core.storage import Bundle, Saved

Place = tuple[int, int]  # partition and offset
Predictions = Mapping[Place, Sequence[dict[str, Any]]]
Letters = Mapping[Place, str]  # reasons of dead letters, by the place of the event
PROBLEMS = 50  # that are told in words


class Models(Protocol):
    """Where bundles and the states that they start from are; a model store is one."""

    def bundle(self, graph: str, version: str) -> Bundle:
        """A bundle."""

    def state(self, graph: str, version: str) -> Saved | None:
        """What it starts from."""


@dataclass(frozen=True)
class GraphLog:
    """The events of one graph in one log, in their order.

    `id` is that of its partition of this log. In the last log there is the state that was saved of the graph last.
    """

    graph: str
    partition: int
    events: Sequence[Event]
    saved: Saved | None
    id: str = ""
    is_last: bool = True


@dataclass
class Verdict:
    """What was found; nothing may be missing or different."""

    asked: int = 0
    answered: int = 0
    repeated: int = 0  # answered more than once, with equal contents
    missing: int = 0
    different: int = 0
    state_equal: bool = True
    longest_silence_seconds: float = 0.0
    dead_letters: int = 0
    dead_letters_missing: int = 0
    lost_events: int = 0  # acknowledged by the broker and not in the log
    versions: int = 0  # of models that answered, over all graphs
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        lost = self.missing + self.different + self.dead_letters_missing + self.lost_events
        return lost == 0 and self.state_equal and self.asked > 0

    def note(self, problem: str) -> None:
        """Say what is wrong, in words, as long as there are few."""
        if len(self.problems) < PROBLEMS:
            self.problems.append(problem)


def check(
    logs: Sequence[GraphLog],
    predictions: Predictions,
    letters: Letters,
    models: Models,
    first: Mapping[str, str],
    verdict: Verdict,
) -> None:
    """Compare what was answered with what the engine says to the same logs of one topic; add that to the verdict.

    `first` are versions by graph: each log begins with them.
    """
    verdict.dead_letters += len(letters)
    for log in logs:
        _check_graph(log, predictions, letters, models, versions_by_log(log, letters, first[log.graph]), verdict)


def versions_by_log(log: GraphLog, letters: Letters, first: str) -> dict[int, str]:
    """Which version answers each event of a graph, by offset: from each model event on the one that it names.

    An event that names the version before it counts only after that one, and one that became a dead letter does not.
    """
    found: dict[int, str] = {}
    present = first
    for event in log.events:
        if event.body is not None and event.kind == "model" and (log.partition, event.offset) not in letters:
            present = event.body["version"] if event.body.get("after", present) == present else present
        found[event.offset] = present
    return found


def longest_silence(times: Sequence[float]) -> float:
    """The longest time between two answers."""
    return max((later - earlier for earlier, later in pairwise(sorted(times))), default=0.0)


def _check_graph(
    log: GraphLog,
    predictions: Predictions,
    letters: Letters,
    models: Models,
    versions: Mapping[int, str],
    verdict: Verdict,
) -> None:
    told = _tell(log, models, versions, verdict)
    verdict.versions += len(told)
    for event in log.events:
        place = (log.partition, event.offset)
        said = told.get(versions.get(event.offset, ""))
        if event.kind == "query":
            _check_query(log.graph, event, predictions.get(place, ()), letters.get(place), versions, said, verdict)
        elif (event.kind == "garbage" or (said and event.offset in said.refused)) and place not in letters:
            verdict.dead_letters_missing += 1
            verdict.note(f"{log.graph}: no dead letter for the {event.kind} at {place}")


def _tell(log: GraphLog, models: Models, versions: Mapping[int, str], verdict: Verdict) -> dict[str, Followed]:
    """What the engine says with each version; and compare the state that was saved last with that of a calm run."""
    told: dict[str, Followed] = {}
    last = log.events[-1].offset if log.events else -1
    saved = log.saved if log.is_last else None  # that of a log that is gone is gone with it
    if log.is_last and (saved is None or saved.offset <= last or versions.get(last) != saved.version):
        where = "no state" if saved is None else f"offset {saved.offset} with {saved.version}"
        verdict.state_equal = False
        verdict.note(f"{log.graph}: saved last was {where}; the log ends at {last} with {versions.get(last)}")
        saved = None
    for version in dict.fromkeys(versions.values()):
        own = {offset for offset, one in versions.items() if one == version}
        is_final = saved is not None and saved.version == version
        end = saved.offset if saved is not None and is_final else max(own) + 1
        try:
            bundle, start = models.bundle(log.graph, version), models.state(log.graph, version)
        except AdatkgError as error:
            verdict.note(f"{log.graph}: {version} has answered and cannot be asked: {error}")
            continue
        if start is not None and (start.log not in ("", log.id) or start.offset > min(own)):
            start = None  # it is of another log, or stands beyond what this version has answered here
        told[version] = follow(bundle, start, log.events, own, end)
        if saved is not None and is_final and (problem := why_other_state(saved.snapshot, told[version].snapshot)):
            verdict.state_equal = False
            verdict.note(f"{log.graph}: {problem}, at offset {saved.offset} with {version}")
    return told


def _check_query(
    graph: str,
    event: Event,
    made: Sequence[dict[str, Any]],
    letter: str | None,
    versions: Mapping[int, str],
    said: Followed | None,
    verdict: Verdict,
) -> None:
    verdict.asked += 1
    what = f"{graph}: query {event.body and event.body.get('id')} at offset {event.offset}"
    if said is not None and event.offset in said.refused:  # a dead letter is the answer to what cannot be answered
        verdict.answered += letter is not None
        verdict.missing += letter is None
        verdict.different += bool(made)
        if letter is None or made:
            verdict.note(f"{what} cannot be answered; it has {len(made)} answers and the dead letter {letter}")
        return
    if not made:
        verdict.missing += 1
        verdict.note(f"{what} has no answer; its dead letter: {letter}")
        return
    verdict.answered += 1
    ranking = None if said is None else said.answers.get(event.offset)
    problems = [
        "the engine has nothing to say" if ranking is None else why_different(one, ranking, versions[event.offset])
        for one in made
    ]
    if wrong := [problem for problem in problems if problem is not None]:
        verdict.different += 1
        verdict.note(f"{what}, answered {len(made)} times: {wrong[0]}")
    elif len(made) > 1:
        verdict.repeated += 1


def answers_of(bodies: Sequence[bytes]) -> dict[tuple[Place, Mark], list[dict[str, Any]]]:
    """Predictions by the place and the mark of their query."""
    found: dict[tuple[Place, Mark], list[dict[str, Any]]] = {}
    for body in bodies:
        prediction = orjson.loads(body)
        source = prediction["source"]
        place = source["partition"], source["offset"]
        found.setdefault((place, id_mark(prediction["query"]["id"])), []).append(prediction)
    return found
