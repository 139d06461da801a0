"""The Docker engine of container tests: whether there is one, and what is built and run on it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import ExecWaitStrategy

from streams.embedded_broker import choose_port, ensure_jars

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "docker"
KAFKA_IMAGE = "adatkg-kafka:test"
PRODUCT_IMAGE = "adatkg-streams:test"
_HOST = "127.0.0.1"
_HOST_LISTENER = 19092  # the container's port of the listener for clients outside, as in compose.yaml


def require_engine() -> None:
    """Skip without a Docker engine, or fail where ADATKG_REQUIRE_DOCKER says that there must be one."""
    problem = "docker is not on the path"
    if shutil.which("docker"):
        version = ["docker", "version", "--format", "{{.Server.Version}}"]
        asked = subprocess.run(version, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return
        problem = asked.stderr.strip()
    if os.environ.get("ADATKG_REQUIRE_DOCKER") == "1":
        pytest.fail(f"no Docker engine: {problem}; start one, or see docker/engine.sh", pytrace=False)
    pytest.skip(f"no Docker engine: {problem}")


def run(*command: str | Path, env: Mapping[str, str] | None = None, timeout: float = 600.0) -> str:
    """The command's standard output; a failure is told with the end of what the command said."""
    environment = os.environ | (env or {})
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout, check=False)
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        pytest.fail(f"{' '.join(map(str, command))} ended with code {done.returncode}:\n{said}", pytrace=False)
    return done.stdout


def build_kafka_image(context: Path) -> str:
    """Kafka from the embedded broker's jars; `context` is an empty folder."""
    run(FOLDER / "base-image.sh")
    shutil.copytree(FOLDER / "kafka", context, dirs_exist_ok=True)
    (context / "jars").mkdir()
    for jar in ensure_jars():
        shutil.copy(jar, context / "jars")
    run("docker", "build", "--tag", KAFKA_IMAGE, context)
    return KAFKA_IMAGE


def build_product_image() -> str:
    """The image of all roles, from the repository as it is now."""
    run(FOLDER / "base-image.sh")
    run("docker", "build", "--file", FOLDER / "Dockerfile", "--tag", PRODUCT_IMAGE, REPOSITORY, timeout=900.0)
    return PRODUCT_IMAGE


@contextmanager
def kafka_container(image: str) -> Iterator[str]:
    """A broker with the settings of compose.yaml; the address at which this machine reaches it."""
    broker = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))["services"]["broker"]
    address = f"{_HOST}:{choose_port(_HOST)}"
    container = DockerContainer(image, env=dict(broker["environment"]))
    container.with_env("KAFKA_ADVERTISED_LISTENERS", f"INTERNAL://localhost:9092,HOST://{address}")
    # Its own method for this knows no address to bind to.
    cast(dict[str, Any], container.ports)[str(_HOST_LISTENER)] = tuple(address.split(":"))
    check = broker["healthcheck"]["test"][1:]
    container.waiting_for(ExecWaitStrategy(check).with_startup_timeout(60).with_poll_interval(0.5))
    with container:
        yield address


@dataclass(frozen=True)
class Compose:
    """One run of compose.yaml, with names and ports of its own."""

    project: str
    env: Mapping[str, str]

    def __call__(self, *arguments: str, timeout: float = 300.0) -> str:
        """Standard output of a command of Docker Compose, version 2 or the one before."""
        return run(
            *_compose(), "-p", self.project, "-f", FOLDER / "compose.yaml", *arguments, env=self.env, timeout=timeout
        )


def _compose() -> list[str]:
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if plugin.returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose") is None:
        pytest.fail("neither `docker compose` nor docker-compose is there: install one of them", pytrace=False)
    return ["docker-compose"]
