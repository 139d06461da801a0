from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adatkg_core.events import Fact, Query, Ranking, Recurrent
from adatkg_core.messages import Question
from streams.worker import ScoredAnswer
from streams.worker.live_score import AT_ONCE, NAMES_EACH, LiveScore

NAMES = ("a", "b", "c", "d")
Scores = dict[str, dict[str, float | int | None]]


@dataclass(frozen=True)
class Ask:
    query: Query
    deep: tuple[str, ...]
    ranks: dict[str, float] = field(default_factory=dict)
    late: bool = False
    cold_start: bool = False

    def tell(self, score: LiveScore) -> None:
        made = Ranking((), self.query.t, self.late, self.cold_start, 0.0, 0, self.ranks)
        score.answered(Question("q", self.query, {}, False), made, self.deep)


@dataclass(frozen=True)
class Pass:
    watermark: int


Event = Ask | Fact | Pass


def play(log: Sequence[Event], **options: int) -> LiveScore:
    score = LiveScore(**options)
    for event in log:
        if isinstance(event, Ask):
            event.tell(score)
        elif isinstance(event, Fact):
            score.happened(event)
        else:
            score.passed(event.watermark)
    return score


def by_definition(log: Sequence[Event], window: int, outstanding: int) -> tuple[Scores, int]:
    """The scores, from the whole past of each query, and how many queries had to be dropped."""
    waiting: list[tuple[Ask, list[str]]] = []  # the answers that came since
    settled: list[tuple[bool, Fraction, float]] = []
    dropped = 0
    for event in log:
        if isinstance(event, Pass):
            waiting = [(ask, came) for ask, came in waiting if ask.query.t >= event.watermark]
        elif isinstance(event, Ask):
            if not event.late:
                waiting.append((event, []))
                dropped += len(waiting) > outstanding
                waiting = waiting[-outstanding:]
        else:
            # A fact settles first what asks for its object, then what asks for its subject.
            for forward in (True, False):
                given, truth = (event.s, event.o) if forward else (event.o, event.s)
                for ask, came in waiting:
                    query = ask.query
                    if (query.s is not None) != forward or (query.s or query.o, query.r, query.t) != (
                        given,
                        event.r,
                        event.t,
                    ):
                        continue
                    if truth in came:
                        continue
                    others = {*came, *query.exclude}
                    came.append(truth)
                    if truth in ask.ranks:
                        rank = ask.ranks[truth]
                    elif truth in query.exclude:
                        continue
                    elif truth in ask.deep:
                        rank = 1 + sum(name not in others for name in ask.deep[: ask.deep.index(truth)])
                    else:
                        rank = float("inf")
                    reciprocal = Fraction(0) if rank == float("inf") else 1 / Fraction(rank)
                    settled.append((ask.cold_start, reciprocal, rank))
    slices = {
        "all": settled[-window:],
        "cold_start": [one for one in settled if one[0]][-window:],
        "warm": [one for one in settled if not one[0]][-window:],
    }
    return {name: _summed(rows) for name, rows in slices.items()}, dropped


def _summed(rows: list[tuple[bool, Fraction, float]]) -> dict[str, float | int | None]:
    count = len(rows)
    if not count:
        return {"mrr": None, "hits@1": None, "hits@3": None, "hits@10": None, "count": 0}
    hits = {f"hits@{depth}": sum(rank <= depth for *_, rank in rows) / count for depth in (1, 3, 10)}
    return {"mrr": float(sum(reciprocal for _, reciprocal, _ in rows) / count), **hits, "count": count}


# Few of everything, so that facts and queries meet.
names, relations, times = st.sampled_from(NAMES), st.sampled_from("rrrq"), st.sampled_from([0, 0, 0, 1])
facts = st.builds(Fact, s=st.sampled_from("ab"), r=relations, o=names, t=times)


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    asked_for = tuple(draw(st.sampled_from([(), (), ("b",), ("a", "c")])))
    query = Query(
        draw(relations),
        draw(times),
        **{draw(st.sampled_from("so")): draw(st.sampled_from("ab"))},  # type: ignore[arg-type]
        rank_of=asked_for,
        exclude=draw(st.sampled_from([(), (), ("a",), ("c", "d")])),
    )
    ranks = {name: draw(st.sampled_from([1.0, 1.5, 2.0, 3.0, 3.5, 7.0, 10.5, 300.0])) for name in asked_for}
    fillers = [f"filler {i}" for i in range(draw(st.sampled_from([0, 0, 3, 11])))]
    deep = tuple(draw(st.permutations([*NAMES, *fillers])))[draw(st.integers(0, len(NAMES))) :]
    return Ask(query, deep, ranks, late=draw(st.integers(0, 9)) == 9, cold_start=draw(st.booleans()))


logs = st.lists(st.one_of(facts, facts, asks(), asks(), st.builds(Pass, st.integers(-5, 2))), min_size=20, max_size=60)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(logs, st.sampled_from([1, 2, 5, 1_000]), st.sampled_from([1, 2, 5, 1_000]))
def test_the_scores_are_those_of_the_definition(log: list[Event], window: int, outstanding: int) -> None:
    score = play(log, window=window, outstanding=outstanding)
    wanted, dropped = by_definition(log, window, outstanding)
    found = score.scores()
    assert score.dropped == dropped
    for name, row in wanted.items():
        assert found[name]["count"] == row["count"]
        assert row["count"] == 0 or found[name] == pytest.approx(row, rel=1e-12)
        assert row["count"] or found[name] == row


@pytest.mark.slow
def test_the_generated_logs_settle_queries_of_every_kind() -> None:
    """Else the test above would say nothing."""
    seen: set[str] = set()

    @settings(max_examples=60, deadline=None)
    @given(logs)
    def look(log: list[Event]) -> None:
        for name, row in play(log, window=1).scores().items():
            if row["count"]:
                seen.add(name)
                seen.update(
                    f"{key} {value:.0f}" for key, value in row.items() if value in (0.0, 1.0) and key != "count"
                )

    look()
    assert {"all", "cold_start", "warm", "mrr 0", "mrr 1", "hits@10 0", "hits@1 1"} <= seen


# -- one by one -----------------------------------------------------------------------------------------------


def ask(deep: Sequence[str], **query: Any) -> Ask:
    return Ask(Query("r", 5, s="s", **query), tuple(deep))


def ranks(*log: Event) -> list[float]:
    """The ranks that were counted, from the scores before and after each event."""
    found, total = [], 0.0
    for end in range(1, len(log) + 1):
        row = play(log[:end]).scores()["all"]
        now = (row["mrr"] or 0.0) * (row["count"] or 0)
        if now != total:
            found.append(round(1 / (now - total), 9))
        total = now
    return found


def test_an_answer_that_came_before_is_not_in_the_way_of_the_next() -> None:
    assert ranks(ask("abc"), Fact("s", "r", "b", 5), Fact("s", "r", "c", 5)) == [2, 2]


def test_an_answer_that_came_before_the_query_is_in_the_way() -> None:
    assert ranks(ask("z"), Fact("s", "r", "b", 5), ask("bc"), Fact("s", "r", "c", 5)) == [2]


def test_a_repeated_fact_settles_only_what_was_asked_since() -> None:
    fact = Fact("s", "r", "b", 5)
    assert ranks(ask("ab"), fact, fact) == [2]
    assert play([ask("ab"), fact, ask("ab"), fact]).scores()["all"]["count"] == 2


def test_a_fact_settles_both_directions() -> None:
    inverse = Ask(Query("r", 5, o="o"), ("x", "s"))
    score = play([ask("o"), inverse, Fact("s", "r", "o", 5)]).scores()["all"]
    assert (score["count"], score["mrr"], score["hits@1"]) == (2, 0.75, 0.5)


def test_the_exact_rank_goes_before_the_place_in_the_list() -> None:
    asked = Ask(Query("r", 5, s="s", rank_of=("a",), exclude=("a",)), ("b", "c"), {"a": 4.0})
    assert ranks(asked, Fact("s", "r", "a", 5)) == [4]


def test_an_excluded_answer_does_not_count() -> None:
    assert play([ask("ab", exclude=("a",)), Fact("s", "r", "a", 5)]).scores()["all"]["count"] == 0
    assert ranks(ask("ab", exclude=("a",)), Fact("s", "r", "b", 5)) == [1]


def test_an_answer_beyond_the_list_counts_as_nothing() -> None:
    row = play([ask("ab"), Fact("s", "r", "z", 5)]).scores()["all"]
    assert row == {"mrr": 0.0, "hits@1": 0.0, "hits@3": 0.0, "hits@10": 0.0, "count": 1}


def test_what_time_has_passed_is_not_settled_and_not_held() -> None:
    score = play([ask("a"), Pass(5)])
    assert score.outstanding == 1
    score.passed(6)
    score.happened(Fact("s", "r", "a", 5))
    assert (score.outstanding, score.dropped, score.scores()["all"]["count"]) == (0, 0, 0)


# -- cost -----------------------------------------------------------------------------------------------------


def held(score: LiveScore) -> int:
    """How many things it holds."""
    groups = list(score._groups.values())
    asked = [one for group in groups for one in group.asked.values()]
    names = sum(len(one.listed) + len(one.unwanted) + len(one.ranks) for one in asked)
    assert sorted(one.moment for one in asked) == list(score._asked)
    assert names + sum(len(group.came) for group in groups) == score._names
    return score._names + len(asked) + len(groups) + len(score._ends)


def test_memory_stays_bounded_whatever_is_asked() -> None:
    score = LiveScore(window=10, outstanding=50)
    most = 0
    for i in range(20_000):
        far = Ask(Query("r", i * 7_919 % 100_003, s="s"), ("a",))
        long = Ask(Query("r", 5, s="s", exclude=tuple(map(str, range(i % 300)))), ("a",))
        (far if i % 3 else long).tell(score)
        score.happened(Fact("s", "r", f"o{i}", 5))
        if i % 20 == 0:
            most = max(most, held(score))
    assert 50 * NAMES_EACH / 2 < most <= 50 * (NAMES_EACH + 6)
    score.passed(1 << 31)
    assert held(score) == 0


def test_a_repeated_fact_costs_nothing_however_many_queries_it_settled() -> None:
    score = LiveScore()
    for _ in range(20_000):
        ask("a").tell(score)
    score.happened(Fact("s", "r", "a", 5))
    began = perf_counter()
    for _ in range(20_000):
        score.happened(Fact("s", "r", "a", 5))
    assert perf_counter() - began < 5  # some milliseconds; it would be an hour if each looked at each


def test_sums_do_not_drift() -> None:
    score = LiveScore(window=3)
    for i in range(30_000):
        Ask(Query("r", i, s="s"), (), {"a": 1.0 + i % 997 / 2}).tell(score)
        score.happened(Fact("s", "r", "a", i))
    wanted = sum(1 / (1.0 + i % 997 / 2) for i in islice(range(30_000), 29_997, None)) / 3
    assert score.scores()["all"]["mrr"] == pytest.approx(wanted, rel=1e-15)


def test_the_heuristic_is_marked_for_the_same_queries_and_ties_share_their_places() -> None:
    def made(names: str, levels: list[int], ranks: dict[str, float]) -> Ranking:
        simple = Recurrent(tuple(names), bytes(levels), ranks)
        return Ranking((), 0, False, False, 0.0, 0, recurrent=simple)

    score = LiveScore()
    asked = Question("q", Query("r", 0, s="a"), {}, False)
    score.answered(asked, made("bcdef", [0, 1, 1, 1, 2], {}), "fedcb", 10)
    score.answered(asked, made("bcdef", [0, 1, 1, 1, 2], {"d": 7.5}), "fedcb", 11)
    score.answered(asked, Ranking((), 0, False, False, 0.0, 0), "fedcb", 12)
    # d ties with two others behind one: places 2 to 4.
    assert score.happened(Fact("a", "r", "d", 0)) == [
        ScoredAnswer(10, "d", 3, 3.0),
        ScoredAnswer(11, "d", 3, 7.5),
        ScoredAnswer(12, "d", 3, None),
    ]
    # c ties with one other, since d has come already; g is in no list.
    assert score.happened(Fact("a", "r", "c", 0))[0] == ScoredAnswer(10, "c", 3, 2.5)
    assert score.happened(Fact("a", "r", "g", 0))[0] == ScoredAnswer(10, "g", None, None)
    assert score.happened(Fact("a", "r", "d", 0)) == []
    assert score.scores()["all"]["count"] == 9
    heuristic = score.heuristic_scores()
    assert heuristic["all"]["count"] == heuristic["warm"]["count"] == 6 and heuristic["cold_start"]["mrr"] is None
    assert heuristic["all"]["mrr"] == pytest.approx((1 / 3 + 1 / 7.5 + 2 / 2.5) / 6)


def test_of_many_queries_that_one_fact_settles_only_the_latest_are_told_and_all_count() -> None:
    score = LiveScore(window=10_000)
    for offset in range(AT_ONCE + 50):
        score.answered(
            Question("q", Query("r", 0, s="a"), {}, False), Ranking((), 0, False, False, 0.0, 0), "b", offset
        )
    assert [one.offset for one in score.happened(Fact("a", "r", "b", 0))] == list(range(50, AT_ONCE + 50))
    assert score.scores()["all"]["count"] == AT_ONCE + 50
