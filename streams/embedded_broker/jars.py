"""Kafka's jars: fetched once into the cache folder, and always exactly those that `kafka.lock` names."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import default_cache

Report = Callable[[str, int, int], None]

# What the lock is made from: the broker, and the bridge that carries its log to log4j.
SOURCES = ("org.apache.kafka:kafka_2.13:4.1.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3")
_ATTEMPTS = 3  # per jar, because connections break
_TIMEOUT = 30  # seconds without an answer before an attempt has failed


@dataclass(frozen=True)
class Jar:
    """One line of the lock: `group:artifact:version sha256`."""

    coordinate: str
    sha256: str

    @property
    def name(self) -> str:
        """The name of the file."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    def is_at(self, path: Path) -> bool:
        """Whether this very jar, undamaged, is there."""
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


def read_lock() -> list[Jar]:
    """The jars that this version of the package runs."""
    lines = resources.files("streams.embedded_broker").joinpath("jars.lock").read_text("ascii").splitlines()
    return [Jar(*line.split()) for line in lines]


def missing_jars() -> list[Jar]:
    """Those that are not there, or not as they should be."""
    return [jar for jar in read_lock() if not jar.is_at(_folder() / jar.name)]


def ensure_jars(report: Report | None = None) -> list[Path]:
    """Paths of all jars, each verified; what is missing or damaged is fetched, and without that no network is needed.

    `report` is told (stage, done, total) while jars are fetched.
    """
    folder = _folder()
    if missing := missing_jars():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # A stage of our own: another process may fetch the same jars, and whoever is last replaces like by like.
            with tempfile.TemporaryDirectory(prefix=".stage-", dir=folder) as stage:
                for done, jar in enumerate(missing):
                    if report:
                        report("Kafka, once", done, len(missing))
                    os.replace(_fetch(jar, Path(stage)), folder / jar.name)
                if report:
                    report("Kafka, once", len(missing), len(missing))
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror or error}; set ADATKG_CACHE to a folder with room") from error
    return [folder / jar.name for jar in read_lock()]


def _folder() -> Path:
    return default_cache() / "kafka"


def _fetch(jar: Jar, stage: Path) -> Path:
    """The jar in the stage, from the machine's Maven repository or from the network."""
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext
    from requests import RequestException

    settings = GlobalSettings.load()
    remote = {"central": MAVEN_CENTRAL_URL} | settings.repositories
    context = MavenContext(repo_cache=stage, remote_repos=remote, timeout=_TIMEOUT)
    artifact = context.create_dependency(jar.coordinate).artifact
    path = artifact.cached_path
    assert path is not None
    local = settings.repo_cache / path.relative_to(stage)
    if jar.is_at(local):
        return Path(shutil.copy(local, stage))
    problem = ""
    for _ in range(_ATTEMPTS):
        path.unlink(missing_ok=True)
        try:
            artifact.resolve()
        except (RequestException, RuntimeError) as error:
            problem = f"cannot fetch {jar.coordinate}: {error}; connect to a Maven repository, it is needed only once"
            continue
        if jar.is_at(path):
            return path
        problem = f"{jar.coordinate} was fetched, but its checksum is not {jar.sha256}, the one in kafka.lock"
        problem += "; check which repository the configuration of jgo names"
    raise AdatkgError(problem)


def make_lock() -> str:
    """Text of a new lock from what `SOURCES` need; trusts the network, so read the difference before committing."""
    import jgo

    lines: dict[str, str] = {}
    # One by one and the first wins: resolved together, the log's bridge would choose versions for Kafka too.
    for source in SOURCES:
        for jar in jgo.resolve(source):
            digest = hashlib.sha256(jar.resolve().read_bytes()).hexdigest()
            lines.setdefault(f"{jar.groupId}:{jar.artifactId}", f"{jar.version} {digest}")
    return "".join(f"{project}:{line}\n" for project, line in sorted(lines.items()))


if __name__ == "__main__":
    print(make_lock(), end="")
