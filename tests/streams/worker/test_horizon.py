"""Questions about the next time are scored by the next fact of their kind, within a horizon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adatkg_core.clock import Clock
from adatkg_core.errors import InputError
from adatkg_core.events import Fact, Query, Ranking, Source, Tick
from adatkg_core.messages import Question, encode_fact, encode_query, encode_tick
from adatkg_core.storage import Bundle
from streams.settings import StreamSettings, load_settings
from streams.worker import Answered, Arrival, BatchResult, LiveGraph, Replica, ScoredAnswer
from streams.worker.live_score import LiveScore
from streams.worker.rhythm import AT_FIRST, ENOUGH, GAPS, SHARE, Rhythm
from tests.support.small_graph import ENCODER, shared_model, small_graph

pytestmark = pytest.mark.slow  # seconds of models in all

DATA = small_graph()
RELATION, SUBJECT, OTHER = DATA.relations[0], DATA.entities[0], DATA.entities[1]

# -- against the definition -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """A question about the next time, to be settled within a horizon; without one, about an explicit time."""

    forward: bool
    given: str
    horizon: int | None
    ahead: int
    deep: tuple[str, ...]
    exclude: tuple[str, ...]
    ranks: dict[str, float]

    def at(self, watermark: int) -> Query:
        time = watermark + 1 if self.horizon is not None else watermark + self.ahead
        side: dict[str, Any] = {"s" if self.forward else "o": self.given}
        return Query("r", time, **side, exclude=self.exclude, rank_of=tuple(self.ranks))

    def until(self, watermark: int) -> int:
        return watermark + (self.ahead if self.horizon is None else self.horizon)


Event = Ask | Fact | Tick


@dataclass
class Heard:
    """What is told at one event."""

    scored: list[tuple[int, str, float | None]] = field(default_factory=list)
    ended: dict[int, bool] = field(default_factory=dict)


def play(log: Sequence[Event]) -> tuple[list[Heard], LiveScore]:
    """As a graph tells its score what the log brings."""
    score, watermark, heard = LiveScore(), 0, []
    for offset, event in enumerate(log):
        told = Heard()
        if isinstance(event, Ask):
            question = Question("q", event.at(watermark), {}, event.horizon is not None)
            made = Ranking((), question.query.t, False, False, 0.0, 0, event.ranks)
            score.answered(question, made, event.deep, offset, event.until(watermark))
        else:
            watermark = max(watermark, event.t)
            told.ended = score.passed(event.t)
            if isinstance(event, Fact):
                told.scored = [(one.offset, one.truth, one.rank) for one in score.happened(event)]
        heard.append(told)
    return heard, score


def by_definition(log: Sequence[Event]) -> list[Heard]:
    """Each question alone, with all of the log behind it."""
    heard = [Heard() for _ in log]
    watermark = 0
    for offset, ask in enumerate(log):
        if isinstance(ask, Ask):
            follow(ask, offset, watermark, log, heard)
        else:
            watermark = max(watermark, ask.t)
    return heard


def follow(ask: Ask, offset: int, reached: int, log: Sequence[Event], heard: list[Heard]) -> None:
    first, last = (reached, ask.until(reached)) if ask.horizon is not None else (ask.until(reached),) * 2
    came: list[str] = []
    for place in range(offset + 1, len(log)):
        event = log[place]
        if isinstance(event, Ask):
            continue
        late, reached = event.t < reached, max(reached, event.t)
        if reached > last:
            heard[place].ended[offset] = bool(came)
            return
        if not isinstance(event, Fact) or late or not first <= event.t <= last:
            continue
        given, truth = (event.s, event.o) if ask.forward else (event.o, event.s)
        if given != ask.given or truth in came or (truth in ask.exclude and truth not in ask.ranks):
            continue
        others = {*came, *ask.exclude}
        first = last = event.t
        came.append(truth)
        rank: float | None = ask.ranks.get(truth)
        if rank is None and truth in ask.deep:
            rank = 1 + sum(name not in others for name in ask.deep[: ask.deep.index(truth)])
        heard[place].scored.append((offset, truth, rank))


names = st.sampled_from("abcd")
asks = st.builds(
    Ask,
    forward=st.sampled_from([True, True, False]),
    given=st.sampled_from("ab"),
    horizon=st.sampled_from([None, 1, 1, 2, 3, 5]),
    ahead=st.integers(0, 3),
    deep=st.permutations("abcd").map(lambda deep: tuple(deep[:3])),
    exclude=st.sampled_from([(), (), (), ("c",), ("b", "d")]),
    ranks=st.sampled_from([{}, {}, {"c": 7.5}]),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Times that mostly stand still, sometimes move on, and sometimes are late."""
    log: list[Event] = []
    time = 0
    for _ in range(draw(st.integers(15, 50))):
        time += draw(st.sampled_from([0, 0, 0, 0, 1, 1, 2, 4]))
        fact = st.builds(
            Fact,
            s=st.sampled_from("ab"),
            r=st.just("r"),
            o=names,
            t=st.sampled_from([time, time, time, max(0, time - 1)]),
        )
        log.append(draw(st.one_of(fact, fact, asks, asks, st.just(Tick(time)))))
    return log


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(logs())
def test_marks_and_ends_are_those_of_the_definition(log: list[Event]) -> None:
    found, score = play(log)
    wanted = by_definition(log)
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert (sorted(one.scored), one.ended) == (sorted(other.scored), other.ended), place
    ended = [came for told in wanted for came in told.ended.values()]
    assert score.unsettled == ended.count(False)
    assert score.outstanding == sum(isinstance(event, Ask) for event in log) - len(ended)
    assert score.scores()["all"]["count"] == sum(len(told.scored) for told in wanted)


@pytest.mark.slow
def test_the_generated_logs_hold_every_kind_of_end() -> None:
    """Else the test above would say nothing."""
    seen: set[str] = set()

    @settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(logs())
    def look(log: list[Event]) -> None:
        for told in by_definition(log):
            for offset, came in told.ended.items():
                ask = log[offset]
                assert isinstance(ask, Ask)
                seen.add(f"{'exact' if ask.horizon is None else 'next'} {came}")
            offsets = [offset for offset, *_ in told.scored]
            seen.update(
                f"excluding {bool(ask.exclude)}" for ask in map(log.__getitem__, offsets) if isinstance(ask, Ask)
            )

    look()
    assert seen == {"exact True", "exact False", "next True", "next False", "excluding True", "excluding False"}


def test_memory_stays_bounded_where_nothing_ever_settles() -> None:
    score = LiveScore(outstanding=50, horizon=1 << 30)
    for i in range(10_000):
        question = Question("q", Query("r", i + 1, s=f"s{i % 7}", exclude=("a",)), {}, True)
        score.answered(question, Ranking((), i + 1, False, False, 0.0, 0), ("b",), i)
        score.happened(Fact(f"s{i % 7}", "r", "a", i))
        assert score.outstanding <= 50 and len(score._groups) <= 50 and len(score._ends) <= 4 * 50
    assert score.dropped == 10_000 - 50


# -- rhythm ---------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(names, names, st.integers(0, 5)), min_size=150, max_size=400))
def test_the_horizon_is_a_quantile_of_the_latest_gaps(steps: list[tuple[str, str, int]]) -> None:
    rhythm, gaps, last, time = Rhythm(gaps=120), [], dict[tuple[bool, str], int](), 0
    for s, o, step in steps:
        time += step
        rhythm.saw(Fact(s, "r", o, time))
        for kind in ((True, s), (False, o)):
            if kind in last and time > last[kind]:
                gaps.append(time - last[kind])
            last[kind] = time
        latest = sorted(gaps[-120:])
        assert rhythm.horizon == (latest[int(SHARE * len(latest))] if len(latest) >= ENOUGH else AT_FIRST)


def test_a_rhythm_holds_no_more_however_long_the_stream() -> None:
    rhythm = Rhythm(kinds=500)
    for i in range(20_000):
        rhythm.saw(Fact(f"s{i % 90}", "r", f"o{i}", i))
        rhythm.saw(Fact(f"s{i % 90}", "r", f"o{i}", i - 50))  # late: it tells nothing
    assert len(rhythm._last) == 500 and len(rhythm._gaps) == len(rhythm._ordered) == GAPS
    assert rhythm.horizon == 90


# -- in a graph -----------------------------------------------------------------------------------------------


def graph(**options: Any) -> LiveGraph:
    bundle = Bundle(shared_model("default"), DATA.relations, (), "v1", clock=Clock(seconds=900))
    return LiveGraph("g", bundle, ENCODER, StreamSettings(**options), Replica())


def apply(one: LiveGraph, *values: bytes, start: int = 0) -> BatchResult:
    result = one.apply([Arrival(Source(0, start + i), 0.0, b"g", value) for i, value in enumerate(values)])
    result.keep_score()
    return result


def fact(time: int, o: str = OTHER) -> bytes:
    return encode_fact(SUBJECT, RELATION, o, time)


ASKED = encode_query("q", RELATION, "next", s=SUBJECT)


def settled(result: BatchResult) -> list[tuple[int, str]]:
    return [(one.offset, one.truth) for one in result.scored]


@pytest.mark.parametrize("came", [5, 6, 8, 13])
def test_a_question_about_next_is_settled_by_the_next_fact_of_its_kind(came: int) -> None:
    one = graph(horizon=8)
    apply(one, fact(5))
    (answer,) = apply(one, ASKED, start=1).answered
    assert answer.until == 13 and answer.prediction.as_of == 6, "the answer is that of the tick after the watermark"
    elsewhere = encode_fact(OTHER, RELATION, SUBJECT, came)
    result = apply(one, elsewhere, fact(came), fact(came, SUBJECT), fact(came + 1), encode_tick(came + 2), start=2)
    assert settled(result) == [(1, OTHER), (1, SUBJECT)] and result.ended == {1: True}
    assert one.score.unsettled == 0 and one.score.scores()["all"]["count"] == 2


def test_a_question_to_which_nothing_comes_ends_in_no_score() -> None:
    one = graph(horizon=8)
    apply(one, fact(5), ASKED)
    assert apply(one, encode_tick(13), start=2).ended == {}
    result = apply(one, fact(14), start=3)
    assert (result.ended, settled(result)) == ({1: False}, [])
    assert one.score.unsettled == 1 and one.score.scores()["all"]["count"] == 0


def test_a_question_about_an_explicit_time_is_settled_by_that_time_alone() -> None:
    one = graph(horizon=8)
    result = apply(one, fact(5), encode_query("q", RELATION, 7, s=SUBJECT), fact(5), fact(6), fact(7), fact(8))
    assert settled(result) == [(1, OTHER)] and result.ended == {1: True}


@pytest.mark.parametrize("batch", [1, 3, 1_000])
def test_horizons_follow_the_log_and_not_how_it_was_batched(batch: int) -> None:
    values = []
    for time in range(0, 3 * ENOUGH, 3):
        values += [fact(time), ASKED]
    one, answered, scored = graph(), list[Answered](), list[ScoredAnswer]()
    for start in range(0, len(values), batch):
        result = apply(one, *values[start : start + batch], start=start)
        answered += result.answered
        scored += result.scored
    horizons = [answer.until - answer.question.query.t + 1 for answer in answered]
    assert horizons == [AT_FIRST] * (ENOUGH // 2) + [3] * (ENOUGH // 2), "a fact has two sides: two gaps"
    assert [one.offset for one in scored] == [answer.arrival.source.offset for answer in answered[:-1]]


def test_what_is_caught_up_with_in_silence_and_what_is_known_tells_of_the_rhythm_too() -> None:
    caught_up, knows = graph(), graph()
    knows.known_through = 10_000
    values = [fact(time) for time in range(0, 5 * ENOUGH, 5)]
    arrivals = [Arrival(Source(0, i), 0.0, b"g", value) for i, value in enumerate(values)]
    caught_up.apply(arrivals, silent=True)
    assert knows.apply(arrivals).counts == {"known": ENOUGH}
    assert caught_up.score.horizon == knows.score.horizon == 5


def test_two_answers_of_a_batch_that_were_made_apart_have_latencies_of_their_own() -> None:
    asked_before = encode_query("p", RELATION, 1, s=SUBJECT)
    result = apply(graph(), fact(0), asked_before, *(fact(1, name) for name in DATA.entities[2:9]), ASKED)
    early, late = result.answered
    assert early.made < late.made and 0 < early.latency < late.latency


# -- settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "horizon"), [("auto", "auto"), ("12", 12)])
def test_the_horizon_is_a_number_of_ticks_or_auto(text: str, horizon: Any) -> None:
    assert load_settings(None, {}, {"ADATKG_STREAM_HORIZON": text}).horizon == horizon


@pytest.mark.parametrize("text", ["0", "-3", "true", "soon", "1.5"])
def test_any_other_horizon_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"horizon.*(must be a int or one of auto|at least 1)"):
        load_settings(None, {}, {"ADATKG_STREAM_HORIZON": text})
