"""What is gathered for the page: right, bounded, and never in the way."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from types import MappingProxyType
from typing import Any

import orjson
import pytest

from adatkg_core.clock import Clock
from adatkg_core.events import Answer, Query, Ranking, Source
from adatkg_core.messages import Question
from streams.dashboard import Feed
from streams.dashboard.entity_history import EntityHistory
from streams.dashboard.event_stream import HEARTBEAT, EventStream
from streams.dashboard.feed import DEAD_LETTERS, HISTORY, PREDICTIONS, SAMPLED
from streams.dashboard.latency import MOST, WINDOW, Latency
from streams.dashboard.name_search import NameIndex
from streams.dashboard.recent_predictions import GRAPHS, ROWS, SHOWN, TRUTHS, RecentPredictions
from streams.worker import Answered, Arrival, BatchResult, GraphStatus, Rejected, ScoredAnswer
from streams.worker.live_score import LiveScore


def answered(
    offset: int,
    entity: str = "e",
    *,
    time: int = 5,
    interactions: int = 0,
    late: bool = False,
    horizon: int = 0,
    took: float = 0.1,
) -> Answered:
    """An answer to (entity, r, ?) at a time, or with a horizon at the next time; it was made just now."""
    query = Query("r", time, s=entity)
    top = tuple(Answer(name, 1.0, 0.1) for name in "abcdefgh")
    prediction = Ranking(top, time, late, interactions == 0, 0.25, interactions, memory_norm=1.5)
    made = monotonic()
    arrival = Arrival(Source(0, offset), made - took, b"g", b"")
    question = Question("q", query, {}, horizon > 0)
    return Answered(arrival, b"", question, prediction, time - 1 + horizon if horizon else time, made)


def batch(
    *answers: Answered,
    scored: Sequence[ScoredAnswer] = (),
    ended: Mapping[int, bool] = MappingProxyType({}),
    graph: str = "g",
    clock: Clock | None = None,
) -> BatchResult:
    counts = Counter(query=len(answers))
    return BatchResult(graph, "v1", clock, list(answers), counts=counts, scored=list(scored), ended=dict(ended))


def look(version: str = "v1", watermark: int = 3) -> GraphStatus:
    score = LiveScore()
    return GraphStatus(10, 2, 1, watermark, "1970-01-04", version, score.scores(), score.heuristic_scores(), 14, 0)


async def nothing() -> tuple[dict[str, GraphStatus], float]:
    return {}, 0.0


def feed(**statuses: GraphStatus) -> Feed:
    made = Feed(nothing, lambda: 7)
    made.see(statuses)
    return made


def heard(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Events and their JSON."""
    events = []
    for message in data.decode().split("\n\n"):
        if message.startswith("event: "):
            event, _, values = message.partition("\n")
            events.append((event.removeprefix("event: "), orjson.loads(values.removeprefix("data: "))))
    return events


async def told(watched: Feed, work: Any) -> list[tuple[str, dict[str, Any]]]:
    """What a reader hears while something is done."""
    reader = watched.broadcast.join()
    assert reader is not None
    work()
    taken = await reader.take(0.01)
    watched.broadcast.leave(reader)
    return heard(taken or b"")


# -- traces -------------------------------------------------------------------------------------------------------


def test_a_trace_follows_an_entity_and_knows_how_well_it_was_answered() -> None:
    traces = EntityHistory()
    asked = [answered(1, time=1), answered(2, time=1), answered(3, time=2, interactions=4)]
    traces.answered("g", asked, "v")
    traces.scored(
        "g", [ScoredAnswer(1, "a", 2.0, None), ScoredAnswer(2, "b", None, 1.0), ScoredAnswer(99, "c", 1.0, None)]
    )
    first, second = traces.trace("g", "e", Clock())
    assert first == {
        "t": 1,
        "t_iso": "1970-01-02",
        "interactions": 0,
        "model": "v",
        "gate": 0.25,
        "memory_norm": 1.5,
        "reciprocal_rank": 0.25,  # two questions at the same time with the same past: 1/2 and 0
    }
    assert second["reciprocal_rank"] is None and second["interactions"] == 4
    assert traces.trace("other", "e", None) == traces.trace("g", "x", None) == []


def test_a_trace_shows_where_another_version_took_over() -> None:
    traces = EntityHistory()
    traces.answered("g", [answered(1, time=1)], "first")
    traces.answered("g", [answered(2, time=1), answered(3, time=1)], "second")
    assert [point["model"] for point in traces.trace("g", "e", None)] == ["first", "second"]


def test_traces_hold_no_more_however_long_the_stream() -> None:
    traces = EntityHistory(points=10, all_points=100, open=50)
    for i in range(3_000):
        traces.answered("g", [answered(i, f"e{i % 40}", time=i), answered(i + 100_000, "busy", time=i)], "v")
        assert traces.points <= 100
    assert [point["t"] for point in traces.trace("g", "busy", None)] == list(range(2_990, 3_000))
    assert traces.trace("g", f"e{2_999 % 40}", None), "who was asked about last is there"
    held = [name for name in range(40) if traces.trace("g", f"e{name}", None)]
    assert sum(len(traces.trace("g", f"e{name}", None)) for name in held) == traces.points - 10


def test_a_truth_that_comes_after_its_answer_was_pushed_out_is_harmless() -> None:
    traces = EntityHistory(points=2, all_points=4, open=1)
    traces.answered("g", [answered(1, time=1), answered(2, time=2), answered(3, time=3)], "v")
    traces.scored("g", [ScoredAnswer(1, "a", 1.0, None), ScoredAnswer(3, "a", 4.0, None)])
    assert [point["reciprocal_rank"] for point in traces.trace("g", "e", None)] == [None, 0.25]


# -- the latest rows ----------------------------------------------------------------------------------------------


def test_the_latest_rows_are_the_newest_first_with_the_truths_that_came() -> None:
    latest = RecentPredictions()
    latest.add(batch(*(answered(i) for i in range(ROWS + 5))))
    latest.add(batch(answered(900)))
    assert latest.settle("g", ScoredAnswer(900, "a", 3.5, None)) == {
        "graph": "g",
        "id": "0-900",
        "entity": "a",
        "rank": 3.5,
        "heuristic_rank": None,
    }
    assert latest.settle("g", ScoredAnswer(0, "a", 1.0, None)) is None, "that one is no longer among them"
    rows = latest.rows("g")
    assert [row["id"] for row in rows[:2]] == ["0-900", f"0-{ROWS + 4}"] and len(rows) == ROWS
    assert rows[0] == {
        "id": "0-900",
        "graph": "g",
        "t": 5,
        "t_iso": None,
        "s": "e",
        "r": "r",
        "o": None,
        "top": [{"entity": name, "probability": 0.1} for name in "abcde"],
        "model": "v1",
        "cold_start": True,
        "gate": 0.25,
        "interactions": 0,
        "late": False,
        "asked_next": False,
        "until": 5,
        "until_iso": None,
        "within": "1 tick",
        "ended": False,
        "truths": [{"entity": "a", "rank": 3.5, "heuristic_rank": None}],
    }


def test_rows_are_bounded_over_graphs_and_truths_and_those_shown() -> None:
    latest = RecentPredictions()
    for i in range(GRAPHS + 20):
        latest.add(batch(answered(1), graph=f"g{i}"))
    assert latest.rows("g0") == [] and latest.rows(f"g{GRAPHS + 19}")
    scored = [latest.settle(f"g{GRAPHS}", ScoredAnswer(1, str(i), 1.0, None)) for i in range(TRUTHS + 5)]
    assert sum(one is not None for one in scored) == TRUTHS
    for i in range(SHOWN + 1):
        latest.show(answered(i), batch(answered(i)))
    assert latest.settle("g", ScoredAnswer(0, "a", 1.0, None)) is None
    assert latest.settle("g", ScoredAnswer(1, "a", 1.0, None)) is not None
    latest.keep_only([f"g{GRAPHS}"])
    assert latest.rows(f"g{GRAPHS + 1}") == [] and latest.rows(f"g{GRAPHS}")


def test_a_row_says_until_when_its_truth_may_come_and_that_none_came() -> None:
    latest, hours = RecentPredictions(), Clock(seconds=3600)
    asked = (
        answered(1, time=5, horizon=3),
        answered(2, time=5, horizon=48),
        answered(3, time=5),
        answered(4, late=True),
    )
    latest.add(batch(*asked, clock=hours))
    rows = latest.rows("g")[::-1]
    assert [row["asked_next"] for row in rows] == [True, True, False, False]
    assert [row["until"] for row in rows] == [7, 52, 5, 5] and rows[0]["until_iso"] == hours.iso(7)
    assert [row["within"] for row in rows] == ["3 hours", "2 days", "1 hour", "1 hour"]
    assert [row["ended"] for row in rows] == [False, False, False, True]
    assert latest.end("g", {1: False, 2: True, 99: False}) == [{"graph": "g", "id": "0-1", "within": "3 hours"}]
    assert [row["ended"] for row in latest.rows("g")[::-1]] == [True, True, False, True]
    assert latest.end("other", {1: False}) == []


# -- samples and events -------------------------------------------------------------------------------------------


def test_a_sample_counts_since_the_one_before() -> None:
    watched = feed(g=look())
    done = batch(answered(1, took=0.25), answered(2, took=0.75))
    done.rejected.append(Rejected(Arrival(Source(0, 9), 0.0, b"g", b""), "not-json", "it is no JSON"))
    watched.take([done])
    watched.sample(1_000.0)
    watched.sample(1_001.0)
    first, second = map(orjson.loads, watched.history)
    assert first["t"] == 1_000 and first["lag"] == 7 and (first["latency_p50"], first["latency_p95"]) == (0.75, 0.75)
    assert min(first["events_per_s"], first["predictions_per_s"], first["dead_letters_per_s"]) > 0
    assert first["events_per_s"] == first["predictions_per_s"]
    assert first["graphs"]["g"]["version"] == "v1" and first["graphs"]["g"]["watermark_iso"] == "1970-01-04"
    assert first["graphs"]["g"]["heuristic_mrr"] == {"all": None, "cold_start": None, "warm": None}
    assert first["graphs"]["g"]["count"] == {"all": 0, "cold_start": 0, "warm": 0}
    assert second["events_per_s"] == second["dead_letters_per_s"] == 0 and second["latency_p50"] == 0.75


def test_the_quantiles_differ_where_answers_took_differently_and_old_answers_do_not_count() -> None:
    latency = Latency()
    latency.add((100.0, 0.01 * (i + 1)) for i in range(100))
    assert latency.quantiles(110.0, 0.5, 0.95) == [0.51, 0.96]
    latency.add([(120.0, 7.0)])
    assert latency.quantiles(100.0 + WINDOW, 0.95) == [0.96]
    assert latency.quantiles(121.0 + WINDOW - 2, 0.5, 0.95) == [7.0, 7.0]
    assert latency.quantiles(121.0 + WINDOW, 0.5, 0.95) == [None, None]
    latency.add((200.0, float(i)) for i in range(3 * MOST))
    assert latency.quantiles(200.0, 0.0) == [2.0 * MOST], "of very many the latest are kept"


def test_a_reader_hears_that_nothing_came_within_the_horizon() -> None:
    async def run() -> None:
        watched = feed(g=look())
        watched.take([batch(answered(1, horizon=5), answered(2, horizon=5))])
        ends, unknown = batch(ended={1: False, 2: True}), batch(ended={77: False})
        assert await told(watched, lambda: watched.take([ends])) == [
            ("ended", {"graph": "g", "id": "0-1", "within": "5 ticks"})
        ]
        assert await told(watched, lambda: watched.take([unknown])) == []

    asyncio.run(run())


def test_a_reader_hears_predictions_truths_dead_letters_samples_and_new_versions() -> None:
    async def run() -> None:
        watched = feed(g=look())
        asked = answered(1)
        done = batch(asked, scored=[ScoredAnswer(1, "a", 1.0, 2.5)])
        done.rejected.append(Rejected(Arrival(Source(3, 9), 0.0, b"g", b""), "late", "too late"))

        def work() -> None:
            watched.take([done])
            watched.flush()
            watched.see({"g": look("v2")})
            watched.sample(1.0)

        truth, letter, prediction, models, sample = await told(watched, work)
        assert truth == ("truth", {"graph": "g", "id": "0-1", "entity": "a", "rank": 1.0, "heuristic_rank": 2.5})
        assert letter == (
            "deadletter",
            {"graph": "g", "reason": "late", "detail": "too late", "partition": 3, "offset": 9},
        )
        assert prediction[0] == "prediction" and prediction[1] == watched.latest.rows("g")[0]
        assert prediction[1]["truths"], "the truth that came meanwhile is in the row"
        assert models == ("models", {"graph": "g", "version": "v2"})
        assert sample[0] == "sample" and sample[1]["graphs"]["g"]["version"] == "v2"
        assert await told(watched, lambda: watched.take([batch(scored=[ScoredAnswer(1, "b", None, None)])])) == [
            ("truth", {"graph": "g", "id": "0-1", "entity": "b", "rank": None, "heuristic_rank": None})
        ]

    asyncio.run(run())


def test_a_fair_choice_of_predictions_is_shown_and_no_flood_of_dead_letters() -> None:
    async def run() -> None:
        watched, shown = feed(g=look()), []
        for round in range(300):
            offsets = range(1000 * round, 1000 * round + 40)

            def work(offsets: range = offsets) -> None:
                watched.take([batch(*map(answered, offsets))])
                watched.flush()

            rows = [values for event, values in await told(watched, work) if event == "prediction"]
            assert len(rows) == PREDICTIONS
            shown += [int(row["id"].removeprefix("0-")) - offsets.start for row in rows]
        # Each of 40 is shown 37 times on the average: none is left out, none preferred.
        counts = [shown.count(place) for place in range(40)]
        assert min(counts) > 10 and max(counts) < 80
        done = BatchResult("g", rejected=[Rejected(Arrival(Source(0, i), 0.0, b"g", b""), "x", "y") for i in range(50)])
        assert len(await told(watched, lambda: watched.take([done]))) == DEAD_LETTERS
        assert await told(watched, lambda: watched.take([done])) == []

    asyncio.run(run())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream() -> None:
    def play(watched: Feed, start: int, end: int) -> None:
        for i in range(start, end):
            graph = f"g{i % 50}"
            scored = [ScoredAnswer(10 * i + j, "a", 1.0, None) for j in range(10)]
            asked = (answered(10 * i + j, f"e{(10 * i + j) % 999}", time=i) for j in range(10))
            watched.take([batch(*asked, scored=scored, graph=graph)])
            watched.flush()
            watched.sample(float(i))

    def held() -> int:
        gc.collect()  # when it would have run by itself depends on the tests before this one
        return tracemalloc.get_traced_memory()[0]

    watched = feed(**{f"g{i}": look() for i in range(50)})
    watched.traces = EntityHistory(points=20, all_points=2_000, open=500)
    tracemalloc.start()
    try:
        play(watched, 0, HISTORY + 50)
        before = held()
        play(watched, HISTORY + 50, HISTORY + 350)
        grown = held() - before
    finally:
        tracemalloc.stop()
    assert len(watched.history) == HISTORY
    assert len(orjson.loads(watched.history[-1])["graphs"]) == SAMPLED
    assert before > 10_000_000 and grown < before // 20, "what is held is replaced, and nothing comes on top"


def test_what_goes_wrong_while_watching_does_not_reach_the_stream() -> None:
    nobody: Any = None
    watched = feed()
    watched.take([BatchResult("g", "v", None, [nobody])])
    watched.take([batch(answered(1))])
    assert watched.latest.rows("g")


def test_a_device_that_does_not_answer_holds_no_sample_up() -> None:
    async def run() -> None:
        asked = []

        async def never() -> tuple[dict[str, GraphStatus], float]:
            asked.append(True)
            await asyncio.Event().wait()
            raise AssertionError

        watched = Feed(never, lambda: None)
        running = asyncio.create_task(watched.run())
        while len(watched.history) < 2:
            await asyncio.sleep(0.05)
        assert len(asked) == 1, "it is not asked again before it has answered"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert watched.broadcast.join() is None, "nothing is shown after the end"

    asyncio.run(run())


# -- readers ------------------------------------------------------------------------------------------------------


def test_a_reader_that_does_not_keep_up_is_dropped_and_the_others_hear_everything() -> None:
    async def run() -> None:
        broadcast = EventStream(readers=2, backlog=5)
        slow, quick = broadcast.join(), broadcast.join()
        assert slow is not None and quick is not None and broadcast.join() is None
        taken = []
        for i in range(20):
            broadcast.send("sample", b"%d" % i)
            taken.append(await quick.take(1.0))
        assert taken == [b"event: sample\ndata: %d\n\n" % i for i in range(20)]
        assert slow.ended and await slow.take(1.0) is None and broadcast.readers == 1
        assert broadcast.join() is not None, "its place is free again"

    asyncio.run(run())


def test_a_quiet_stream_has_a_heartbeat_and_an_end() -> None:
    async def run() -> None:
        broadcast = EventStream()
        reader = broadcast.join()
        assert reader is not None
        assert await reader.take(0.01) == HEARTBEAT
        waiting = asyncio.create_task(reader.take(60.0))
        await asyncio.sleep(0)
        broadcast.close()
        assert await waiting is None and broadcast.join() is None

    asyncio.run(run())


# -- names --------------------------------------------------------------------------------------------------------


def test_names_are_found_by_the_beginnings_of_their_words_whatever_case_and_accents() -> None:
    index = NameIndex(["Angela Merkel", "Élysée Palace", "Merkel (Angela)", "Palais de l'Élysée", "Camel", "Straße"])
    assert index.search("mer", 10) == ["Merkel (Angela)", "Angela Merkel"]
    assert index.search("ELYSEE", 10) == ["Élysée Palace", "Palais de l'Élysée"]
    assert index.search("mel", 10) == ["Camel"] and index.search("strasse", 10) == ["Straße"]
    assert index.search("palais de", 1) == ["Palais de l'Élysée"] and index.search(" angela ", 1) == ["Angela Merkel"]
    assert index.search("", 2) == ["Angela Merkel", "Élysée Palace"] and index.search("zzz", 5) == []


def test_the_nearest_names_are_those_that_one_may_have_meant() -> None:
    index = NameIndex(["Barack Obama", "Michelle Obama", "Angela Merkel", "Make a visit", "Make statement", "EWR"])
    assert index.nearest("Barack Ob", 3) == ["Barack Obama"]
    assert index.nearest("Barak Obana", 3) == ["Barack Obama"]  # two errors
    assert index.nearest("make visit", 1) == ["Make a visit"] and index.nearest("ewr", 2) == ["EWR"]
    assert index.nearest("Nobody like this", 3) == [] and index.nearest("  ", 3) == []


def test_names_that_fill_their_blocks_are_all_found() -> None:
    index = NameIndex([f"Name {i}" for i in range(4_096)])
    assert len(index.search("", 50)) == 50 and index.search("name 4095", 2) == ["Name 4095"]
    assert NameIndex([]).search("", 5) == [] and NameIndex([]).nearest("x", 5) == []


def test_a_search_sees_names_that_came_since_and_takes_none_for_a_pattern() -> None:
    names = [f"Name {i}" for i in range(10_000)]
    index = NameIndex(names)
    assert index.search("name 9999", 5) == ["Name 9999"]
    names += ["a.*b [", "Nachzügler"]
    assert index.search("nachzug", 5) == ["Nachzügler"] and index.search(".*", 5) == ["a.*b ["]
    assert index.search("b [", 5) == ["a.*b ["]
    assert index.search("name 5000", 5) == ["Name 5000"] and len(index.search("name", 50)) == 50
