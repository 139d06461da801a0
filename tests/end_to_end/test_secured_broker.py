"""A broker that wants TLS, a user or a certificate: all runs as on a plain one, and a refusal comes with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adatkg_core.datasets import write_dataset
from adatkg_core.errors import AdatkgError
from streams.kafka import Topics, connection_from, ensure_topics
from tests.support.running_system import GRAPH, VERSION, World, until
from tests.support.secured_broker import WAYS, Secured, secured_broker

RELATION, SUBJECT = GRAPH.relations[0], GRAPH.entities[0]
QUICK = {"model.dim": 16, "model.heads": 2, "model.encoder": "hash:24", "train.burn_in": 0.0}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("secured") / "kafka") as running:
        yield running


@pytest.fixture
def world(secured: Secured, tmp_path: Path) -> Iterator[World]:
    """A graph with a model, and its data set in a folder; commands and workers come in by SCRAM."""
    variables = secured.way("SCRAM over TLS")
    made = World(variables["ADATKG_BOOTSTRAP"], tmp_path, variables=variables)
    made.add_model("g")
    write_dataset(GRAPH, tmp_path / "data")
    yield made
    made.close()


def enter(world: World, secured: Secured, way: str) -> None:
    """Let what comes from here on come in another way."""
    world.variables = secured.way(way)
    world.bootstrap = world.variables["ADATKG_BOOTSTRAP"]


@pytest.mark.timeout(600)
def test_every_command_reaches_a_broker_that_wants_tls_and_a_user(world: World) -> None:
    worker = world.start_worker()
    sent = world.command("replay", str(world.folder / "data"), "--graph", "g", "--queries")
    world.await_count(sent["queries"])
    assert world.ask("g", SUBJECT, RELATION, "--k", "3")["model"] == VERSION
    assert world.command("tail", "g", "--from-beginning", "--count", "1")["graph"] == "g"
    world.publish([("g", b"rubbish")])
    world.await_dead_letters(1)
    (letter,) = world.command("deadletters", "list")["deadletters"]
    assert world.command("deadletters", "show", letter["id"])["value"] == "rubbish"
    mended = ("--value", '{"v":1,"kind":"tick","t":40}')
    assert world.command("deadletters", "retry", letter["id"], *mended)["retried"] == [letter["id"]]
    settings = [word for key, value in QUICK.items() for word in ("--set", f"{key}={value}")]
    place = ("--models", str(world.models), "--archive", str(world.folder / "archive"))
    trained = world.command("retrain", "g", "--config", "tiny", "--epochs", "1", *settings, *place)
    world.command("models", "promote", "g", trained["version"], "--force", "--models", str(world.models))
    until(lambda: bool(worker.said("swapped")), "the worker has heard of the new bundle")
    assert world.ask("g", SUBJECT, RELATION)["model"] == trained["version"]
    worker.stop()
    assert world.newest_snapshot("g", trained["version"]).offset == world.end_of("g")


def test_a_worker_comes_in_every_way(world: World, secured: Secured) -> None:
    world.command("replay", str(world.folder / "data"), "--graph", "g", "--to", "3")
    for way in ("a certificate", "PLAIN over TLS", "PLAIN"):
        enter(world, secured, way)
        worker = world.start_worker()
        assert len(world.ask("g", SUBJECT, RELATION)["top"]) == 10, way
        worker.stop()


@pytest.mark.parametrize("way", WAYS)
def test_a_client_comes_in_every_way(secured: Secured, way: str) -> None:
    ensure_topics(connection_from(secured.way(way)), Topics("entered"))


# The way, what is changed (None leaves it out), and what is then said.
REFUSED: dict[str, tuple[str, dict[str, str | None], str]] = {
    "a wrong password": ("PLAIN over TLS", {"password": "wrong"}, "user alice is refused by PLAIN"),
    "a wrong password by SCRAM": ("SCRAM over TLS", {"password": "wrong"}, "user alice is refused by SCRAM-SHA-512"),
    "another mechanism": ("PLAIN over TLS", {"mechanism": "scram-sha-256"}, "does not take SCRAM-SHA-256"),
    "an unknown authority": ("TLS", {"cafile": "stranger.pem"}, "stranger.pem does not trust its certificate"),
    "no certificate": ("a certificate", {"certfile": None, "keyfile": None}, "wants a certificate of ours"),
    "a certificate of a stranger": (
        "a certificate",
        {"certfile": "stranger.pem", "keyfile": "stranger.key"},
        "stranger.pem",
    ),
    "no TLS": ("TLS", {"security": "plaintext"}, "hangs up on PLAINTEXT, .* SSL, SASL_PLAINTEXT, SASL_SSL"),
    "no user": ("PLAIN over TLS", {"security": "ssl"}, "hangs up on SSL, .* SASL_SSL"),
    "TLS where there is none": ("PLAIN", {"security": "sasl_ssl"}, "hangs up on SASL_SSL, .* SASL_PLAINTEXT"),
    "a user where there are none": (
        "TLS",
        {"security": "sasl_ssl", "username": "alice", "password": "any"},
        r"asks for no user; .* to SSL",
    ),
}


def refused(secured: Secured, case: str) -> dict[str, str]:
    """The variables of a case of REFUSED."""
    way, changes, _ = REFUSED[case]
    folder = secured.certificates.folder
    given = {
        key: str(folder / value) if value.startswith("stranger") else value for key, value in changes.items() if value
    }
    left_out = {f"ADATKG_KAFKA_{key}".upper() for key, value in changes.items() if value is None}
    return {name: value for name, value in secured.way(way, **given).items() if name not in left_out}


@pytest.mark.parametrize("case", REFUSED)
def test_whoever_is_not_let_in_is_told_why_and_what_to_set(secured: Secured, case: str) -> None:
    with pytest.raises(AdatkgError, match=REFUSED[case][2]) as problem:
        ensure_topics(connection_from(refused(secured, case)), Topics())
    assert "ADATKG_KAFKA_" in str(problem.value)


@pytest.mark.parametrize(
    ("command", "case", "code"),
    [
        (("tail", "g"), "a wrong password", 2),
        (("worker",), "an unknown authority", 2),
        (("deadletters", "list"), "no TLS", 1),
    ],
)
def test_a_command_that_is_not_let_in_ends_with_one_line(
    secured: Secured, command: tuple[str, ...], case: str, code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "adatkg", *command],
        env=os.environ | refused(secured, case),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: 127.0.0.1:") and done.stderr.count("\n") == 1, done.stderr
