from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from adatkg_core.errors import AdatkgError
from streams.embedded_broker import ensure_jars, read_lock
from streams.embedded_broker.jars import Jar


class Repository(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def place(repository: Path, jar: Jar) -> Path:
    group, artifact, version = jar.coordinate.split(":")
    return repository.joinpath(*group.split("."), artifact, version, jar.name)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Folder of the jars in a cache of its own, which links to the real one; no repository can be reached."""
    real = ensure_jars()
    folder = tmp_path / "cache" / "kafka"
    folder.mkdir(parents=True)
    for jar in real:
        (folder / jar.name).symlink_to(jar)
    monkeypatch.setenv("ADATKG_CACHE", str(folder.parent))
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    use_repository(monkeypatch, tmp_path, 1)
    return folder


def use_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int) -> None:
    config = tmp_path / "jgo.conf"
    config.write_text(f"[repositories]\ncentral = http://127.0.0.1:{port}\n")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(config))


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> Iterator[Path]:
    """Folder of a Maven repository that can be reached and has every jar."""
    folder = tmp_path / "repository"
    for jar in read_lock():
        path = place(folder, jar)
        path.parent.mkdir(parents=True)
        path.symlink_to((cache / jar.name).resolve())
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Repository, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        use_repository(monkeypatch, tmp_path, server.server_port)
        yield folder
        server.shutdown()


def damage(path: Path) -> None:
    path.unlink()  # a link to the real jar, which must stay as it is
    path.write_bytes(b"PK, and then nothing")


def test_jars_that_are_there_need_no_network(cache: Path) -> None:
    assert ensure_jars() == [cache / jar.name for jar in read_lock()]


def test_damaged_and_missing_jars_come_back_from_the_machines_maven_repository(tmp_path: Path, cache: Path) -> None:
    damaged, missing = read_lock()[:2]
    for jar in (damaged, missing):
        path = place(tmp_path / "m2", jar)
        path.parent.mkdir(parents=True)
        path.symlink_to((cache / jar.name).resolve())
    damage(cache / damaged.name)
    (cache / missing.name).unlink()
    ensure_jars()
    assert all(jar.is_at(cache / jar.name) for jar in read_lock())


def test_only_what_is_damaged_or_missing_is_fetched(cache: Path, repository: Path) -> None:
    damaged, missing = read_lock()[:2]
    damage(cache / damaged.name)
    (cache / missing.name).unlink()
    told: list[tuple[int, int]] = []
    ensure_jars(lambda _, done, total: told.append((done, total)))
    assert all(jar.is_at(cache / jar.name) for jar in read_lock())
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert sorted(path.name for path in cache.iterdir()) == sorted(jar.name for jar in read_lock())


def test_a_jar_that_does_not_match_the_lock_is_refused(cache: Path, repository: Path) -> None:
    jar = read_lock()[0]
    (cache / jar.name).unlink()
    damage(place(repository, jar))
    with pytest.raises(AdatkgError, match=f"{jar.coordinate} was fetched, but its checksum is not {jar.sha256}"):
        ensure_jars()
    assert not (cache / jar.name).exists()


def test_without_a_network_the_missing_jar_is_named(cache: Path) -> None:
    jar = read_lock()[0]
    (cache / jar.name).unlink()
    with pytest.raises(AdatkgError, match=f"cannot fetch {jar.coordinate}"):
        ensure_jars()


@pytest.mark.slow
def test_processes_that_fetch_at_once_do_not_disturb_each_other(cache: Path, repository: Path) -> None:
    for path in cache.iterdir():
        path.unlink()
    command = [sys.executable, "-c", "from streams.embedded_broker.jars import ensure_jars; ensure_jars()"]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    assert all(jar.is_at(cache / jar.name) for jar in read_lock())
