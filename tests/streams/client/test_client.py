from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
import pytest
from msgspec import structs
from structlog.testing import capture_logs

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Fact, Source
from adatkg_core.messages import Question, decode_event, decode_prediction
from streams import Client
from streams.client import Prediction, Seen
from streams.embedded_broker import Broker
from streams.kafka import Topics
from tests.support.fake_graph import answering, fresh_topics, prediction, question, records, send


@pytest.fixture
def topics(bootstrap: str) -> Topics:
    return fresh_topics(bootstrap)


def play(scene: Coroutine[Any, Any, None], patience: float = 60) -> None:
    async def timely() -> None:
        async with asyncio.timeout(patience):
            await scene

    asyncio.run(timely())


def said(graph: str, offset: int) -> tuple[bytes, bytes, tuple[()]]:
    return graph.encode(), prediction(question(), graph, 3, offset), ()


async def take(client: Client, graph: str | None, count: int) -> list[Prediction]:
    taken: list[Prediction] = []
    async for forecast in client.predictions(graph, from_beginning=True):
        taken.append(forecast)
        if len(taken) == count:
            break
    return taken


def test_predictions_come_in_order_and_once_and_what_is_broken_is_skipped(bootstrap: str, topics: Topics) -> None:
    broken = (b"g", b"\xff{", ()), (b"g", None, ()), (b"g", b'{"v":1}', ()), (b"g", b'{"v":2}', ())
    wrong = (b"g", orjson.dumps(orjson.loads(said("g", 5)[1]) | {"top": [1]}), ())
    other = [said(f"g{i}", 100 + i) for i in range(20)]  # some of them share the partition
    send(
        bootstrap, topics.predictions, [said("g", 0), *other, said("g", 1), *broken, wrong, said("g", 0), said("g", 2)]
    )

    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            with capture_logs() as logs:
                taken = await take(client, "g", 3)
            everything = await take(client, None, 23)
        assert [forecast.id for forecast in taken] == ["3-0", "3-1", "3-2"]
        assert len(logs) == 5
        assert {entry["event"] for entry in logs} == {"prediction skipped"}
        assert "top[0] is not of type object" in logs[-1]["detail"]
        assert {forecast.graph for forecast in everything} == {"g", *(f"g{i}" for i in range(20))}

    play(scene())


def test_a_forecast_has_the_fields_of_the_message() -> None:
    data = prediction(question(), "g", 3, 5)
    forecast = decode_prediction(data)
    assert forecast.raw == orjson.loads(data)
    assert (forecast.id, forecast.graph, forecast.source) == ("3-5", "g", Source(3, 5))
    assert (forecast.top[0].entity, forecast.top[0].probability) == ("Angela Merkel", 0.5)
    assert (forecast.tick, forecast.time) == (12, "2014-01-13")
    assert (forecast.as_of, forecast.as_of_time) == (12, "2014-01-13")
    assert (forecast.late, forecast.model) == (False, "model-1")
    assert (forecast.cold_start, forecast.gate, forecast.interactions) == (True, 0.25, 3)
    assert (forecast.ranks, forecast.query["rank_of"]) == ({"Angela Merkel": 1.0}, ["Angela Merkel"])


def test_what_a_newer_worker_says_is_kept_and_a_changed_forecast_says_what_it_holds() -> None:
    message = orjson.loads(prediction(question(), "g", 3, 5))
    forecast = decode_prediction(orjson.dumps(message | {"unheard-of": [1]}))
    assert forecast.raw == message | {"unheard-of": [1]}
    assert structs.replace(forecast, late=True).raw == message | {"late": True}


def test_a_graph_without_a_calendar_has_ticks_only() -> None:
    forecast = decode_prediction(prediction(question(), "g", 3, 5, clock=None))
    assert (forecast.tick, forecast.time, forecast.as_of_time) == (12, None, None)


@pytest.mark.parametrize(("asked", "tick"), [(12, 12), ("next", None), ("2014-01-13", None)])
def test_a_prediction_from_before_it_said_its_times_can_still_be_read(asked: int | str, tick: int | None) -> None:
    message = orjson.loads(prediction(question(), "g", 3, 5))
    for key in ("tick", "time", "as_of_time"):
        del message[key]
    message["query"]["t"] = asked
    forecast = decode_prediction(orjson.dumps(message))
    assert (forecast.tick, forecast.time, forecast.as_of, forecast.as_of_time) == (tick, None, 12, None)


def test_without_from_beginning_only_what_comes_after_is_read(bootstrap: str, topics: Topics) -> None:
    send(bootstrap, topics.predictions, [said("g", 0)])

    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            following = await client.predictions("g").begin()
            await asyncio.to_thread(send, bootstrap, topics.predictions, [said("g", 1)])
            assert (await anext(following)).id == "3-1"

    play(scene())


def test_closing_the_client_ends_what_is_followed(bootstrap: str, topics: Topics) -> None:
    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            following = await client.predictions("g").begin()
            task = asyncio.create_task(take_all(following))
            await asyncio.sleep(0.05)
        assert await task == []

    async def take_all(following: Any) -> list[Prediction]:
        return [forecast async for forecast in following]

    play(scene())


def test_what_is_remembered_of_repeats_is_bounded_for_each_partition_apart() -> None:
    seen = Seen(remembered=3)

    def forecast(partition: int, offset: int) -> Prediction:
        return decode_prediction(prediction(question(), "g", partition, offset))

    assert not seen.repeats(forecast(1, 0))
    assert not any(seen.repeats(forecast(0, i)) for i in range(5))
    assert seen.repeats(forecast(1, 0))
    assert [seen.repeats(forecast(0, i)) for i in (4, 3, 2)] == [True, True, True]
    assert not seen.repeats(forecast(0, 0))


def test_questions_asked_at_once_each_get_their_own_answer(bootstrap: str, topics: Topics) -> None:
    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            answers = await asyncio.gather(
                *(client.ask("g", subject=f"Person {i}", relation="Consult", time=i) for i in range(8)),
                client.ask("h", object="China", relation="Praise", time="2014-03-02", k=3),
            )
        assert [answer.query["s"] for answer in answers[:8]] == [f"Person {i}" for i in range(8)]
        assert (answers[8].graph, answers[8].query["o"], answers[8].query["k"]) == ("h", "China", 3)

    with answering(bootstrap, topics):
        play(scene())


def test_ask_does_not_miss_an_answer_that_is_there_before_the_query_is_acknowledged(
    bootstrap: str, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            really = client._send

            async def overtaken(graph: str, data: bytes) -> Any:
                asked = decode_event(data, None)
                assert isinstance(asked, Question)
                answer = (graph.encode(), prediction(asked, graph, 3, 0), ())
                await asyncio.to_thread(send, bootstrap, topics.predictions, [answer])
                return await really(graph, data)

            monkeypatch.setattr(client, "_send", overtaken)
            assert (await client.ask("g", subject="Barack Obama", relation="Consult")).id == "3-0"

    play(scene())


def test_a_query_that_the_worker_refuses_is_wrong_input(bootstrap: str, topics: Topics) -> None:
    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            with pytest.raises(InputError, match=r"g: .*relation 'consutl'.* did you mean 'Consult'\? \(unknown-"):
                await client.ask("g", subject="Barack Obama", relation="consutl")

    with answering(bootstrap, topics):
        play(scene())


def test_without_a_worker_ask_gives_up_and_says_what_to_do(bootstrap: str, topics: Topics) -> None:
    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            with pytest.raises(AdatkgError, match=r"g: no answer within 0.5 s.*adatkg worker") as error:
                await client.ask("g", subject="Barack Obama", relation="Consult", timeout=0.5)
            assert error.value.exit_code == 1

    play(scene())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "exactly one of s and o"),
        ({"subject": "a", "object": "b"}, "exactly one of s and o"),
        ({"subject": " "}, "s is empty"),
        ({"subject": "a", "time": "soon"}, "neither a whole tick nor an ISO time"),
        ({"subject": "a", "k": 10**6}, "k is 1000000"),
        ({"subject": object()}, "not to be written as JSON"),
    ],
)
def test_a_query_that_no_worker_could_answer_is_not_sent(wrong: dict[str, Any], says: str) -> None:
    async def scene() -> None:
        with pytest.raises(InputError, match=says):
            await Client("127.0.0.1:1").ask("g", relation="Consult", **wrong)

    play(scene())


def test_facts_are_in_the_log_in_their_order_under_their_graph(bootstrap: str, topics: Topics) -> None:
    async def scene() -> None:
        async with Client(bootstrap, topics) as client:
            place = await client.publish_fact("g", "a", "r", "b", "2014-03-02")
            assert place.offset == 0
            assert await client.publish_facts("g", [Fact("a", "r", "b", 1), ("b", "r", "c", "2014-03-03")]) == 2
            assert await client.publish_facts("h", (("a", "r", "b", i) for i in range(2_500))) == 2_500
            with pytest.raises(InputError, match="i, fact 1: o is empty"):
                await client.publish_facts("i", [("a", "r", "b", 1), ("a", "r", "", 2), ("a", "r", "b", 3)])
            with pytest.raises(InputError, match="graph is empty"):
                await client.publish_fact("", "a", "r", "b", 1)

    play(scene())
    log = [(record.key, orjson.loads(record.value or b"")) for record in records(bootstrap, topics.events)]
    assert [value["t"] for key, value in log if key == b"g"] == ["2014-03-02", 1, "2014-03-03"]
    assert [value["t"] for key, value in log if key == b"h"] == list(range(2_500))
    assert [value["t"] for key, value in log if key == b"i"] == [1]


def test_without_a_broker_the_error_comes_at_once_and_names_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        async def scene() -> None:
            with pytest.raises(AdatkgError, match=f"no Kafka broker answers at {address}.*adatkg broker"):
                async with Client(address):
                    pass

        began = time.monotonic()
        play(scene())
        assert time.monotonic() - began < 10


def test_following_and_publishing_go_on_when_the_broker_comes_back(private_broker: Callable[[], Broker]) -> None:
    broker = private_broker()
    broker.start()
    topics = fresh_topics(broker.bootstrap)

    async def scene() -> None:
        async with Client(broker.bootstrap, topics) as client:
            following = await client.predictions("g").begin()
            await asyncio.to_thread(send, broker.bootstrap, topics.predictions, [said("g", 0)])
            assert (await anext(following)).id == "3-0"
            waiting = asyncio.create_task(anext(following))
            broker.kill()
            await asyncio.to_thread(broker.start)
            await asyncio.to_thread(send, broker.bootstrap, topics.predictions, [said("g", 0), said("g", 1)])
            assert (await waiting).id == "3-1"
            assert (await client.publish_fact("g", "a", "r", "b", 1)).offset == 0

    play(scene(), patience=200)
