"""What leaves us is read by clients of others as they come out of the box, with nothing of ours beside them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from adatkg_core.messages import encode_fact, encode_query
from streams.client import Client
from tests.support.running_system import World
from tests.support.small_graph import small_graph

SCRIPTS = Path(__file__).parent / "stock"
CLIENTS = {"kafka-python": SCRIPTS / "kafka_python.py", "confluent-kafka": SCRIPTS / "confluent.py"}
UNREACHABLE = ("client error (Connect)", "dns error", "the network was disabled")
GRAPH = small_graph()
QUERIES = 5


@pytest.fixture(scope="module", params=CLIENTS)
def stock(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The interpreter of a fresh environment that holds one client library, and a program that reads with it."""
    folder = tmp_path_factory.mktemp("stock")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python, uv = folder / "bin" / "python", Path(sys.executable).with_name("uv")
    installed = subprocess.run(
        [uv, "pip", "install", "--python", python, request.param], capture_output=True, text=True
    )
    if installed.returncode and any(words in installed.stderr for words in UNREACHABLE):
        pytest.skip(f"the package index cannot be reached: {installed.stderr.strip().splitlines()[-1]}")
    assert installed.returncode == 0, installed.stderr
    return python, CLIENTS[request.param]


@pytest.fixture(scope="module")
def answered(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world in which a worker has answered some queries and refused one event."""
    world = World(bootstrap, tmp_path_factory.mktemp("world"))
    world.add_model("g")
    world.start_worker()
    relation, subject, other = GRAPH.relations[0], *GRAPH.entities[:2]
    events = [encode_fact(subject, relation, other, 3)]
    events += [encode_query(f"q{number}", relation, "next", s=subject) for number in range(QUERIES)]
    world.publish([("g", event) for event in [*events, b"no event"]])
    world.await_answers([f"q{number}" for number in range(QUERIES)])
    world.await_dead_letters(1)
    yield world
    world.close()


def read(stock: tuple[Path, Path], bootstrap: str, topic: str, count: int) -> subprocess.CompletedProcess[str]:
    python, program = stock
    return subprocess.run([python, program, bootstrap, topic, str(count)], capture_output=True, text=True, timeout=120)


def test_predictions_and_dead_letters_of_a_worker_are_read(stock: tuple[Path, Path], answered: World) -> None:
    done = read(stock, answered.bootstrap, answered.topics.predictions, QUERIES)
    assert done.returncode == 0, done.stderr
    found = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert [one["query"]["id"] for one in found] == [f"q{number}" for number in range(QUERIES)]
    assert {(one["tick"], one["as_of"]) for one in found} == {(4, 4)}
    refused = read(stock, answered.bootstrap, answered.topics.deadletter, 1)
    assert (refused.returncode, refused.stdout) == (0, "no event\n"), refused.stderr


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_what_the_client_publishes_is_read(
    stock: tuple[Path, Path], bootstrap: str, tmp_path: Path, codec: str
) -> None:
    world = World(bootstrap, tmp_path)
    publish(world, codec)
    done = read(stock, bootstrap, world.topics.events, 100)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 100), done.stderr


def test_a_codec_that_a_reader_lacks_is_only_used_when_it_was_asked_for(bootstrap: str, tmp_path: Path) -> None:
    """That the tests above can fail: the same reader, without the library, cannot read zstd."""
    world = World(bootstrap, tmp_path)
    publish(world, "zstd")
    program = f"import sys; sys.modules['zstandard'] = None; exec(open({str(CLIENTS['kafka-python'])!r}).read())"
    command = [sys.executable, "-c", program, bootstrap, world.topics.events, "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "UnsupportedCodecError" in done.stderr
    assert len(world.records(world.topics.events)) == 100


def publish(world: World, codec: str) -> None:
    async def scene() -> None:
        async with Client(replace(world.connection, compression=codec), world.topics) as client:
            await client.publish_facts("g", [("a", "r", "b", number) for number in range(100)])

    asyncio.run(scene())
