"""The checker finds whatever is missing or different, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch

from adatkg.chaos import checker
from adatkg.chaos.checker import GraphLog, Verdict, versions_by_log
from adatkg.chaos.eras import Era, read_eras, write_era
from adatkg.chaos.evidence import Evidence, judge
from adatkg.chaos.offline import Event, Followed, follow
from adatkg.chaos.stream import ID, KIND
from adatkg.chaos.topics import Record
from adatkg_core.engine import Snapshot
from adatkg_core.events import Source
from adatkg_core.storage import Bundle, Saved
from adatkg_core.text import load_encoder
from streams.kafka import EventLog
from streams.settings import StreamSettings
from streams.worker import Arrival, LiveGraph, Replica
from tests.support.fake_worker import whole
from tests.support.running_system import GRAPH, VERSION, small_bundle, stream_of

PLACE = 3  # the partition
LOG = EventLog("now", 8)


class Store:
    """A model store with one bundle, which starts from this, or from nothing."""

    def __init__(self, state: Saved | None = None) -> None:
        self._state = state

    def bundle(self, graph: str, version: str) -> Bundle:
        return small_bundle()

    def state(self, graph: str, version: str) -> Saved | None:
        return self._state


@dataclass
class Left:
    """What a calm run has left: the worker's own graph has answered a log in one batch."""

    events: list[Record]
    predictions: list[dict[str, Any]]
    letters: list[Record]
    saved: Saved | None
    before: list[Record] = field(default_factory=list)  # of a log whose topic was made anew
    store: Store = field(default_factory=Store)

    @property
    def one(self) -> int:
        """A prediction with enough in it to be spoiled."""
        return next(i for i, one in enumerate(self.predictions) if len(one["top"]) == 5 and one["ranks"])

    def verdict(self) -> Verdict:
        """What the checker says."""
        acknowledged = {("g", record.headers[ID].decode()): record.place for record in [*self.before, *self.events]}
        made = [
            Record(PLACE, i, i / 10, b"g", orjson.dumps(prediction), {})
            for i, prediction in enumerate(self.predictions)
        ]
        eras = [Era(EventLog("before", 8), self.before)] if self.before else []
        evidence = Evidence([*eras, Era(LOG, self.events)], made, self.letters, acknowledged)
        return judge(evidence, {"g": self.saved}, self.store, {"g": VERSION})

    def end_era(self) -> None:
        """The topic is made anew, and the same events come again, with other ids; all is answered as before."""
        predictions = copy.deepcopy(self.predictions)
        self.before = self.events
        self.events = [_renewed(record) for record in self.events]
        for prediction in predictions:
            prediction["query"]["id"] = f"new-{prediction['query']['id']}"
        self.predictions += predictions


@pytest.fixture(scope="module")
def left_behind() -> Left:
    values = [(value, b"sound") for _, value in stream_of(GRAPH, "g", slice(0, 28))]
    values.insert(20, (b"{", b"garbage"))
    values.insert(30, (orjson.dumps({"v": 1, "kind": "fact", "s": "a", "r": "unheard of", "o": "b", "t": 1}), b"fact"))
    events = [
        Record(PLACE, i, i / 10, b"g", value, {ID: str(i).encode(), KIND: kind})
        for i, (value, kind) in enumerate(values)
    ]
    graph = LiveGraph("g", small_bundle(), load_encoder("hash:24"), StreamSettings(), Replica())
    result = graph.apply([Arrival(Source(PLACE, one.offset), 0.0, b"g", one.value) for one in events])
    letters = [_letter(events[one.arrival.source.offset], one.code) for one in result.rejected]
    return Left(
        events, [orjson.loads(one.body) for one in result.answered], letters, whole(graph.capture(len(events), ""))
    )


@pytest.fixture(scope="module", autouse=True)
def followed_once() -> Iterator[None]:
    """What the engine says to the same log is the same: it is asked once."""
    said: dict[tuple[Any, ...], Followed] = {}

    def follow_once(bundle: Bundle, start: Saved | None, events: Sequence[Event], asked: Any, end: int) -> Followed:
        key = (orjson.dumps([event.body for event in events]), frozenset(asked), end, start and start.offset)
        if key not in said:
            said[key] = follow(bundle, start, events, asked, end)
        return said[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, "follow", follow_once)
        yield


@pytest.fixture
def left(left_behind: Left) -> Left:
    return copy.deepcopy(left_behind)


def _letter(event: Record, reason: str) -> Record:
    headers = {"reason": reason.encode(), "partition": b"%d" % event.partition, "offset": b"%d" % event.offset}
    return Record(0, event.offset, 0.0, b"g", event.value, headers)


def _renewed(record: Record) -> Record:
    """The same event at the same place of another log: a query has another id."""
    value, headers = record.value or b"", record.headers | {ID: b"new-" + record.headers[ID]}
    if b'"id":' in value:
        body = orjson.loads(value)
        value = orjson.dumps(body | {"id": f"new-{body['id']}"})
    return replace(record, value=value, headers=headers)


def test_a_calm_run_is_found_whole_and_equal(left: Left) -> None:
    verdict = left.verdict()
    assert verdict.problems == []
    assert verdict.holds and verdict.asked == verdict.answered == len(left.predictions) > 30
    assert (verdict.repeated, verdict.dead_letters, verdict.longest_silence_seconds) == (0, 2, 0.1)


def test_an_answer_that_came_twice_is_a_repeat_and_no_harm(left: Left) -> None:
    left.predictions.append(left.predictions[5])
    verdict = left.verdict()
    assert verdict.holds and verdict.repeated == 1


def test_a_missing_answer_is_found(left: Left) -> None:
    gone = left.predictions.pop(left.one)
    verdict = left.verdict()
    assert not verdict.holds and verdict.missing == 1 and verdict.answered == verdict.asked - 1
    assert gone["query"]["id"] in verdict.problems[0]


def test_a_dead_letter_in_place_of_an_answer_that_can_be_given_is_a_missing_answer(left: Left) -> None:
    gone = left.predictions.pop(left.one)
    left.letters.append(_letter(left.events[gone["source"]["offset"]], "no-model"))
    assert left.verdict().missing == 1


def test_a_query_that_cannot_be_answered_is_answered_by_its_dead_letter(left: Left) -> None:
    query = {"v": 1, "kind": "query", "id": "q", "s": "a", "r": "unheard of", "t": 99}
    last = len(left.events)
    left.events.append(Record(PLACE, last, 0.0, b"g", orjson.dumps(query), {ID: b"q", KIND: b"query"}))
    assert left.saved is not None
    left.saved = replace(left.saved, offset=last + 1)
    assert left.verdict().missing == 1
    left.letters.append(_letter(left.events[last], "unknown-relation"))
    assert left.verdict().holds


def _other_score(prediction: dict[str, Any]) -> None:
    prediction["top"][2]["score"] += 3e-5


def _other_candidate(prediction: dict[str, Any]) -> None:
    prediction["top"][1]["entity"] = "nobody"


def _other_order(prediction: dict[str, Any]) -> None:
    prediction["top"].reverse()


def _other_version(prediction: dict[str, Any]) -> None:
    prediction["model"] = "small-2"


def _other_rank(prediction: dict[str, Any]) -> None:
    prediction["ranks"] = {name: rank + 3 for name, rank in prediction["ranks"].items()}


def _other_time(prediction: dict[str, Any]) -> None:
    prediction["as_of"] += 1


def _fewer(prediction: dict[str, Any]) -> None:
    prediction["top"].pop()


CHANGES = [_other_score, _other_candidate, _other_order, _other_version, _other_rank, _other_time, _fewer]


@pytest.mark.parametrize("change", CHANGES)
def test_a_repeat_that_differs_is_found(left: Left, change: Callable[[dict[str, Any]], None]) -> None:
    again = copy.deepcopy(left.predictions[left.one])
    change(again)
    left.predictions.append(again)
    verdict = left.verdict()
    assert not verdict.holds and (verdict.different, verdict.repeated, verdict.missing) == (1, 0, 0)


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_answer_is_found(left: Left, change: Callable[[dict[str, Any]], None]) -> None:
    change(left.predictions[left.one])
    verdict = left.verdict()
    assert not verdict.holds and verdict.different == 1


def test_scores_closer_than_promised_are_the_same_and_may_swap_places(left: Left) -> None:
    for prediction in left.predictions:
        for one in prediction["top"]:
            one["score"] += 5e-6
    assert left.verdict().holds


def test_a_state_that_differs_in_one_bit_is_found(left: Left) -> None:
    assert left.saved is not None
    tensor = left.saved.snapshot.tensors["memory"]
    tensor.view(torch.uint8).view(-1)[11] ^= 1
    verdict = left.verdict()
    assert not verdict.holds and not verdict.state_equal and "memory" in verdict.problems[0]


def test_a_state_with_another_watermark_is_found(left: Left) -> None:
    assert left.saved is not None
    snapshot = left.saved.snapshot
    left.saved = replace(left.saved, snapshot=Snapshot(snapshot.tensors, snapshot.meta | {"watermark": 1}))
    assert not left.verdict().state_equal


def test_a_state_that_is_not_that_of_the_whole_log_is_found(left: Left) -> None:
    assert left.saved is not None
    left.saved = replace(left.saved, offset=len(left.events) - 1)
    assert not left.verdict().state_equal
    left.saved = None
    assert not left.verdict().state_equal


def test_garbage_and_refused_facts_without_a_dead_letter_are_found(left: Left) -> None:
    left.letters.clear()
    verdict = left.verdict()
    assert not verdict.holds and verdict.dead_letters_missing == 2


def test_an_event_that_the_broker_acknowledged_and_lost_is_found(left: Left) -> None:
    acknowledged = {("g", "lost"): (PLACE, 10_000)}
    evidence = Evidence([Era(LOG, left.events)], [], left.letters, acknowledged)
    verdict = judge(evidence, {"g": left.saved}, Store(), {"g": VERSION})
    assert not verdict.holds and verdict.lost_events == 1


# -- a topic that was made anew ---------------------------------------------------------------------------------


def test_each_log_of_a_topic_that_was_made_anew_is_found_whole_and_equal(left: Left) -> None:
    alone = left.verdict()
    left.end_era()
    verdict = left.verdict()
    assert verdict.problems == [] and verdict.holds
    assert (verdict.asked, verdict.answered) == (2 * alone.asked, 2 * alone.asked)
    assert verdict.repeated == 0, "answers to queries at the same place of two logs are no repeats"


@pytest.mark.parametrize("era", ["before", "now"])
def test_an_answer_does_not_count_for_the_query_at_the_same_place_of_another_log(left: Left, era: str) -> None:
    count = len(left.predictions)
    left.end_era()
    gone = left.predictions.pop(left.one if era == "before" else left.one + count)
    verdict = left.verdict()
    assert not verdict.holds and (verdict.missing, verdict.different) == (1, 0)
    assert f"query {gone['query']['id']} " in verdict.problems[0]


@pytest.mark.parametrize("era", ["before", "now"])
@pytest.mark.parametrize("change", [_other_score, _other_version])
def test_a_wrong_answer_is_found_in_every_log(left: Left, era: str, change: Callable[[dict[str, Any]], None]) -> None:
    count = len(left.predictions)
    left.end_era()
    change(left.predictions[left.one if era == "before" else left.one + count])
    verdict = left.verdict()
    assert (verdict.missing, verdict.different) == (0, 1)


def test_a_dead_letter_counts_for_the_event_at_its_place_in_its_own_log_only(left: Left) -> None:
    left.end_era()
    i = next(i for i, record in enumerate(left.events) if record.headers[KIND] == b"garbage")
    left.events[i] = replace(left.events[i], value=b"[")
    verdict = left.verdict()
    assert not verdict.holds and verdict.dead_letters_missing == 1
    left.letters.append(_letter(left.events[i], "not-json"))
    assert left.verdict().holds


def test_an_acknowledged_event_that_no_log_has_at_its_place_is_found_among_several(left: Left) -> None:
    left.end_era()
    evidence = Evidence(
        [Era(EventLog("before", 8), left.before), Era(LOG, left.events)],
        [],
        left.letters,
        {("g", "0"): (PLACE, 0), ("g", "new-0"): (PLACE, 0), ("g", "new-1"): (PLACE, 0)},
    )
    assert judge(evidence, {"g": left.saved}, Store(), {"g": VERSION}).lost_events == 1


def test_the_state_of_a_log_that_is_gone_is_neither_wanted_nor_started_from(left: Left) -> None:
    left.end_era()
    assert left.saved is not None
    left.store = Store(replace(left.saved, offset=0, log="before-3"))
    spoiled = left.verdict()
    assert spoiled.different > 0, "in the log that it belongs to it is what the version starts from"
    assert spoiled.state_equal, "and in another one it is not"


def test_a_log_that_was_kept_is_read_as_it_was(left: Left, tmp_path: Path) -> None:
    large = replace(left.events[0], key=None, value=b"\xff\x00" * 40_000, headers={KIND: b"garbage"})
    for era in (Era(LOG, [*left.events, large]), Era(EventLog("later", 8), [])):
        write_era(tmp_path, era)
    first, second = read_eras(tmp_path)
    assert first == Era(LOG, [*left.events, large]) and second.log.id == "later"


def test_the_log_names_the_version_from_each_model_event_on_unless_it_follows_another() -> None:
    model = [("b", None), ("c", "a"), ("d", "b")]
    bodies: list[dict[str, Any]] = [{"kind": "model", "version": one, "after": after} for one, after in model]
    bodies = [{key: value for key, value in body.items() if value is not None} for body in bodies]
    query = {"kind": "query", "id": "q"}
    events = [Event(i, body) for i, body in enumerate([query, bodies[0], query, bodies[1], query, bodies[2], query])]
    log = GraphLog("g", PLACE, events, None)
    found = versions_by_log(log, {}, "a")
    assert [found[offset] for offset in (0, 2, 4, 6)] == ["a", "b", "b", "d"]
    refused = versions_by_log(log, {(PLACE, 5): "bad-model"}, "a")
    assert refused[6] == "b", "an event that became a dead letter changes nothing"
