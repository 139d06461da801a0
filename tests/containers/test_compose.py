from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from streams.embedded_broker import choose_port
from streams.kafka import Topics
from tests.support.docker_engine import Compose, run

pytestmark = pytest.mark.timeout(900)  # the first test builds the images
GRAPH = "small"


@pytest.fixture(scope="module")
def stack(kafka_image: str, product_image: str) -> Iterator[Compose]:
    """The compose file under ports of its own; nothing of it outlives the tests."""
    broker, web = choose_port("127.0.0.1"), choose_port("127.0.0.1")
    variables = {"ADATKG_IMAGE": product_image, "ADATKG_KAFKA_IMAGE": kafka_image}
    variables |= {"ADATKG_BROKER_PORT": str(broker), "ADATKG_WEB_PORT": str(web)}
    compose = Compose(f"adatkg-test-{web}", variables)
    try:
        yield compose
        print(compose("logs", "--no-color", "--tail", "40"))  # shown when a test has failed
    finally:
        compose("down", "--volumes", "--timeout", "5")


def job(stack: Compose, service: str, *command: str) -> list[Any]:
    """The JSON lines that a command prints in a container of its own."""
    lines = stack("run", "--rm", "-T", service, *command, "--json").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def model(stack: Compose) -> str:
    """Version of a model for a small graph, in the stack's model store."""
    job(
        stack,
        "trainer",
        "datasets",
        "synth",
        "/data/small",
        "--entities",
        "80",
        "--times",
        "40",
        "--facts-per-time",
        "20",
    )
    place = ("--models", "/models", "--graph", GRAPH)
    trained = job(stack, "trainer", "train", "/data/small", "--config", "tiny", "--epochs", "1", *place)
    return str(trained[0]["version"])


@pytest.fixture(scope="module")
def worker(stack: Compose, model: str) -> str:
    """Address of the pages of a worker that takes events in."""
    stack("up", "-d", "worker")
    pages = f"http://127.0.0.1:{stack.env['ADATKG_WEB_PORT']}"
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"{pages}/ready", timeout=5).close()
            return pages
        except OSError as error:
            if time.monotonic() > deadline:
                pytest.fail(f"the worker is not ready after 120 s: {error}\n{stack('logs', '--no-color', 'worker')}")
            time.sleep(0.5)


def container(stack: Compose, service: str) -> str:
    return stack("ps", "-q", service).strip()


@pytest.fixture(scope="module")
def answers(stack: Compose, worker: str) -> list[Any]:
    """What the worker answered to a replay, read until nothing is missing."""
    bootstrap = ("--bootstrap", "broker:9092")
    sent = job(stack, "replay", "replay", "/data/small", "--graph", GRAPH, "--queries", "--split", "test", *bootstrap)
    queries = sent[0]["queries"]
    assert queries > 100
    return job(
        stack, "replay", "tail", GRAPH, "--from-beginning", "--count", str(queries), "--timeout", "60", *bootstrap
    )


def test_every_replayed_query_is_answered_once_by_the_trained_model(answers: list[Any], model: str) -> None:
    assert len({answer["query"]["id"] for answer in answers}) == len(answers)
    assert {answer["model"] for answer in answers} == {model}
    assert all(answer["ranks"] for answer in answers)


def test_this_machine_reaches_the_broker_and_the_metrics(stack: Compose, worker: str, answers: list[Any]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{stack.env['ADATKG_BROKER_PORT']}")
    assert Topics().predictions in admin.list_topics()
    admin.close()
    with urllib.request.urlopen(f"{worker}/metrics", timeout=5) as page:
        assert f'adatkg_predictions_total{{graph="{GRAPH}"}} {len(answers)}.0\n' in page.read().decode()


@pytest.mark.usefixtures("worker")
def test_the_worker_becomes_healthy(stack: Compose) -> None:
    deadline = time.monotonic() + 60
    status = ["docker", "inspect", "--format", "{{.State.Health.Status}}", container(stack, "worker")]
    while (health := run(*status).strip()) == "starting" and time.monotonic() < deadline:
        time.sleep(0.5)
    assert health == "healthy"


@pytest.mark.usefixtures("answers")
def test_a_stopped_worker_has_left_a_snapshot_and_ended_by_itself(stack: Compose) -> None:
    stopped = container(stack, "worker")
    stack("stop", "worker")
    assert run("docker", "inspect", "--format", "{{.State.ExitCode}}", stopped).strip() == "0"
    files = run(
        "docker",
        "run",
        "--rm",
        "--volumes-from",
        stopped,
        "--entrypoint",
        "find",
        stack.env["ADATKG_IMAGE"],
        "/snapshots",
    )
    assert any(Path(name).name == "manifest.json" for name in files.splitlines())
