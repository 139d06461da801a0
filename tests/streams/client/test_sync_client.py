"""The client without an event loop, against the real broker."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest

from adatkg import SyncClient
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.events import Fact
from streams.client import Client, NoAnswer
from streams.kafka import Topics
from tests.support.fake_graph import answering, fresh_topics, prediction, question, records, send


@pytest.fixture
def topics(bootstrap: str) -> Topics:
    return fresh_topics(bootstrap)


@pytest.mark.parametrize("name", ["ask", "publish_fact", "publish_facts", "predictions", "__init__"])
def test_its_methods_are_those_of_the_client(name: str) -> None:
    ours, theirs = inspect.signature(getattr(SyncClient, name)), inspect.signature(getattr(Client, name))
    assert ours.parameters == theirs.parameters


def test_it_asks_and_says_what_was_refused(bootstrap: str, topics: Topics) -> None:
    with answering(bootstrap, topics), SyncClient(bootstrap, topics) as client:
        answer = client.ask("g", subject="Barack Obama", relation="Consult")
        assert (answer.top[0].entity, answer.tick, answer.time) == ("Angela Merkel", 7, "2014-01-08")
        with pytest.raises(InputError, match="did you mean 'Consult'"):
            client.ask("g", subject="Barack Obama", relation="Consutl")
        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(client.ask, "g", subject=f"P{i}", relation="Praise", time=i) for i in range(4)]
            assert [one.result().query["s"] for one in asked] == [f"P{i}" for i in range(4)]


def test_without_a_worker_it_gives_up(bootstrap: str, topics: Topics) -> None:
    with SyncClient(bootstrap, topics) as client, pytest.raises(NoAnswer, match=r"no answer within 0.5 s"):
        client.ask("g", subject="Barack Obama", relation="Consult", timeout=0.5)


def test_without_a_broker_the_error_names_it_and_no_thread_is_left() -> None:
    with pytest.raises(AdatkgError, match=r"no Kafka broker answers at 127\.0\.0\.1:1"), SyncClient("127.0.0.1:1"):
        pass
    assert not loops()


def test_facts_are_in_the_log_in_their_order_and_are_taken_in_the_callers_thread(
    bootstrap: str, topics: Topics
) -> None:
    seen: set[int] = set()

    def facts() -> Iterator[tuple[str, str, str, int]]:
        for number in range(2_500):
            seen.add(threading.get_ident())
            yield "a", "r", "b", number

    with SyncClient(bootstrap, topics) as client:
        assert client.publish_fact("g", "a", "r", "b", "2014-03-02").offset == 0
        assert client.publish_facts("g", facts()) == 2_500
        with pytest.raises(InputError, match="h, fact 1500: o is empty"):
            client.publish_facts("h", (Fact("a", "r", "b" if i != 1_500 else "", i) for i in range(2_000)))
    log = [(record.key, orjson.loads(record.value or b"")["t"]) for record in records(bootstrap, topics.events)]
    assert [time for key, time in log if key == b"g"] == ["2014-03-02", *range(2_500)]
    assert [time for key, time in log if key == b"h"] == list(range(1_500))
    assert seen == {threading.get_ident()}


def test_predictions_are_a_plain_iterator_that_ends_with_the_client(bootstrap: str, topics: Topics) -> None:
    said = [(b"g", prediction(question(), "g", 3, offset), ()) for offset in (0, 1, 1, 2)]
    send(bootstrap, topics.predictions, said)
    with SyncClient(bootstrap, topics) as client:
        following = client.predictions("g", from_beginning=True)
        assert [next(following).id for _ in range(3)] == ["3-0", "3-1", "3-2"]
        later = client.predictions("g").begin()
        send(bootstrap, topics.predictions, [(b"g", prediction(question(), "g", 3, 3), ())])
        assert next(later).id == next(following).id == "3-3"
        later.close()
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(list, following)
            client.close()
            assert waiting.result(30) == []
    assert list(following) == []
    assert not loops()


def test_it_works_where_a_loop_runs_already_and_can_be_opened_again(bootstrap: str, topics: Topics) -> None:
    client = SyncClient(bootstrap, topics)

    async def cell() -> int:
        with client:
            return client.publish_fact("g", "a", "r", "b", 1).offset

    assert [asyncio.run(cell()) for _ in range(2)] == [0, 1]


def test_a_client_that_is_not_open_says_so() -> None:
    client = SyncClient("127.0.0.1:1")
    with pytest.raises(RuntimeError, match="use `with SyncClient"):
        client.publish_fact("g", "a", "r", "b", 1)
    with pytest.raises(RuntimeError, match="use `with SyncClient"):
        next(client.predictions("g"))


def loops() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "adatkg-client"]
