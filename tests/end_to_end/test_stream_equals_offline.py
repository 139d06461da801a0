"""What the stream says is what the engine says offline, wherever a query stands and whoever asks."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from adatkg.main import app
from adatkg_core.datasets import Dataset, load_dataset, write_dataset
from adatkg_core.messages import encode_fact, encode_query
from streams import Client
from tests.support.running_system import GRAPH, World, assert_same_answer, ids_of, stream_of, until

RELATION = GRAPH.relations[0]
DAYS = 24  # of which the last eight are asked about, well over a thousand facts


def newest_days(folder: Path) -> Dataset:
    """The end of icews14 as a data set of its own."""
    whole = load_dataset("icews14")
    facts = whole.facts[whole.facts[:, 3] >= whole.times[-DAYS]]
    write_dataset(replace(whole, facts=facts, calendar=whole.clock), folder, literal=True)
    return load_dataset(str(folder))


def test_mrr_measured_in_the_stream_is_the_one_that_evaluate_reports(world: World, tmp_path: Path) -> None:
    source, graph = str(tmp_path / "data"), "icews14"
    data = newest_days(Path(source))
    # One epoch is enough to rank well; the state goes up to the end of valid.
    quick = ("--config", "tiny", "--epochs", "1")
    trained = world.command("train", source, *quick, "--models", str(world.models), "--graph", graph)
    place = str(trained["bundle"])
    worker = world.start_worker()
    # The last facts of valid come again; the state that the bundle brought knows them.
    ask_from = data.split_bounds[1]
    times = ("--from", str(ask_from - 2), "--queries-from", str(ask_from))
    report = world.command("replay", source, "--graph", graph, *times)
    offline = world.command("evaluate", place, source, "--per-query", str(tmp_path / "ranks"))["slices"]["all"]
    assert report["queries"] == offline["count"] == 2 * len(data.split("test"))
    world.await_count(offline["count"])
    answers = [one for made in world.answers().values() for one in made]
    ranks = {one["id"]: rank for one in answers for rank in one["ranks"].values()}
    mrr = sum(1 / rank for rank in ranks.values()) / len(ranks)
    assert len(ranks) == len(answers) == offline["count"]
    assert mrr == pytest.approx(offline["mrr"], abs=5e-5) and mrr > 0.1
    alone = [orjson.loads(line)["rank"] for line in (tmp_path / "ranks").read_bytes().splitlines()]
    # Near ties may swap places by rounding; nearly all single ranks are the same too.
    assert (Counter(alone) & Counter(ranks.values())).total() > 0.999 * len(ranks)
    # The same score, kept by the worker itself as the facts come, over a window.
    recent = orjson.loads(worker.page("/scores")[1])["icews14"]["scores"]["all"]
    assert recent["count"] == 1_000 and 0.1 < recent["mrr"] < 0.9
    known = worker.metric('adatkg_events_total{graph="icews14",kind="known"}')
    assert known == report["facts"] - len(data.split("test")) > 0


def test_a_query_between_the_facts_of_its_time_is_answered_the_same_wherever_it_stands(world: World) -> None:
    world.add_model("g")
    world.start_worker()
    past = list(stream_of(GRAPH, "g", slice(0, 100)))
    time = int(GRAPH.facts[99, 3]) + 1
    facts = [encode_fact(GRAPH.entities[i], RELATION, GRAPH.entities[i + 3], time) for i in range(12)]
    events = [("g", fact) for fact in facts]
    for place in range(len(facts) + 1):
        # One subject takes part in the facts of this time, one appears with them, one never.
        for name, subject in (("known", GRAPH.entities[4]), ("new", "Somebody new"), ("stranger", "A stranger")):
            events.insert(2 * place if name == "known" else len(events) - place, ("g", b""))
            question = encode_query(f"{name}-{place}", RELATION, time, s=subject, k=1_000)
            events[events.index(("g", b""))] = ("g", question)
    events.insert(len(events) // 2, ("g", encode_fact("Somebody new", RELATION, GRAPH.entities[0], time)))
    world.publish([*past, *events])
    answers = world.await_answers([*ids_of(past), *ids_of(events)])
    for name in ("known", "new", "stranger"):
        wanted = answers[f"{name}-0"][0]
        assert wanted["as_of"] == time and not wanted["late"]
        for place in range(1, len(facts) + 1):
            found = answers[f"{name}-{place}"][0]
            own = {key: found[key] for key in ("id", "source", "query")}
            assert_same_answer(found, wanted | own)


def test_a_program_and_a_user_ask_the_running_system(world: World) -> None:
    world.add_model("g")
    worker = world.start_worker()
    events = list(stream_of(GRAPH, "g"))
    world.publish(events)
    world.await_answers(ids_of(events))
    subject = GRAPH.entities[0]
    table = world.ask("g", subject, RELATION)
    assert table["graph"] == "g" and len(table["top"]) == 10

    async def asked() -> tuple[float, bool]:
        async with Client(world.bootstrap, world.prefix) as client:
            await client.publish_fact("g", "Somebody new", RELATION, subject, int(GRAPH.facts[-1, 3]) + 1)
            forecast = await client.ask("g", subject="Somebody new", relation=RELATION)
            stranger = await client.ask("g", subject="Nobody ever", relation=RELATION)
            assert stranger.cold_start and stranger.gate == 0.0 and stranger.interactions == 0
            return forecast.gate, forecast.cold_start

    gate, cold = asyncio.run(asked())
    assert gate > 0 and not cold
    lines = CliRunner().invoke(
        app,
        ["tail", "g", "--json", "--from-beginning", "--count", "5"],
        env={"ADATKG_BOOTSTRAP": world.bootstrap, "ADATKG_TOPIC_PREFIX": world.prefix},
    )
    assert len(lines.stdout.splitlines()) == 5
    worker.stop()


def test_a_mended_dead_letter_goes_back_and_is_answered(world: World) -> None:
    world.add_model("g")
    world.start_worker()
    world.publish([("g", encode_query("typo", "Consullt", "next", s=GRAPH.entities[0]))])
    world.await_dead_letters(1)
    (letter,) = world.command("deadletters", "list")["deadletters"]
    assert letter["reason"] == "unknown-relation"
    world.command("deadletters", "retry", letter["id"], "--set", f"r={RELATION}")
    until(lambda: "typo" in world.answers(), "the mended query is answered")
    assert world.command("deadletters", "list")["deadletters"] == []


def test_the_pages_of_a_worker_tell_how_it_is(world: World) -> None:
    world.add_model("g")
    worker = world.start_worker()
    events = list(stream_of(GRAPH, "g"))
    world.publish([*events, ("g", b"rubbish")])
    world.await_answers(ids_of(events))
    world.await_dead_letters(1)
    assert worker.page("/health") == (200, b'{"status":"ok","incidents":[]}')
    assert worker.page("/ready") == (200, b'{"ready":true}')
    queries = len(ids_of(events))
    assert worker.metric('adatkg_predictions_total{graph="g"}') == queries
    assert worker.metric('adatkg_events_total{graph="g",kind="query"}') == queries
    assert worker.metric('adatkg_events_total{graph="g",kind="fact"}') == len(GRAPH.facts)
    assert worker.metric('adatkg_dead_letters_total{graph="g",reason="not-json"}') == 1
    assert worker.metric("adatkg_answer_seconds_count") == queries
    assert worker.metric("adatkg_batch_size_sum") == len(events) + 1
    until(worker.is_durable, "everything is durable")
    until(lambda: worker.metric('adatkg_state_bytes{graph="g"}') > 0, "the size of the state is known")
