"""Secrets that a worker is given show in no log, no page, no list of processes and no error."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from aiohttp.test_utils import TestServer

from adatkg.console.logs import configure_logging
from adatkg_core.errors import InputError, without_credentials
from streams.app import create_app
from streams.kafka import Connection, Topics
from streams.settings import StreamSettings

PASSWORD, TOKEN, STORE = "sasl-Secret-4711", "token-Secret-4712", "store-Secret-4713"
URL = f"memory://keeper:{STORE}@models"
SECRETS = (PASSWORD, TOKEN, STORE)


def assert_secret(text: str, where: str) -> None:
    for secret in SECRETS:
        assert secret not in text, f"{where} shows {secret}"


def test_a_worker_shows_its_secrets_neither_in_its_log_nor_in_the_list_of_processes(tmp_path: Path) -> None:
    environ = os.environ | {
        "ADATKG_KAFKA_BOOTSTRAP": "127.0.0.1:1",
        "ADATKG_KAFKA_SECURITY": "SASL_PLAINTEXT",
        "ADATKG_KAFKA_USERNAME": "worker",
        "ADATKG_KAFKA_PASSWORD": PASSWORD,
        "ADATKG_STREAM_WEB_TOKEN": TOKEN,
        "ADATKG_STREAM_MODELS": URL,
        "ADATKG_STREAM_SNAPSHOTS": str(tmp_path / "snapshots"),
        "ADATKG_LOG": "debug",
    }
    with (tmp_path / "log").open("wb") as log:
        command = [sys.executable, "-m", "adatkg", "worker"]
        worker = subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=log, stderr=log)
        try:
            end = time.monotonic() + 60
            while worker.poll() is None and time.monotonic() < end and not (tmp_path / "log").stat().st_size:
                time.sleep(0.2)
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    assert_secret(process.read_bytes().decode(errors="replace"), f"{process}")
                except OSError:
                    continue
        finally:
            worker.terminate()
            try:
                worker.wait(60)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
    text = (tmp_path / "log").read_text(errors="replace")
    assert text.strip(), "nothing was said, so nothing was tried"
    assert_secret(text, "the log")


def test_no_page_shows_a_secret() -> None:
    async def run() -> None:
        connection = Connection("127.0.0.1:1", "SASL_PLAINTEXT", username="worker", password=PASSWORD)
        made: Any = create_app(StreamSettings(models=URL, web_token=TOKEN), connection, Topics())
        async with TestServer(made.web.web_app) as server, aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{server.port}"
            for path in (
                "/",
                "/api/overview",
                "/api/graphs/g/models",
                "/api/graphs/g/predictions",
                "/metrics",
                "/nowhere",
            ):
                async with session.get(f"{url}{path}") as answer:
                    assert_secret(await answer.text() + str(answer.headers), path)
            for path in ("/api/graphs/g/promote", "/api/graphs/g/rollback"):
                headers = {"Authorization": f"Bearer {TOKEN}"}
                async with session.post(f"{url}{path}", json={"version": "x"}, headers=headers) as answer:
                    text = await answer.text()
                    assert answer.status == 404 and "keeper" in text
                    assert_secret(text, path)

    asyncio.run(run())


def test_errors_and_logs_leave_passwords_in_urls_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert without_credentials(f"see {URL}/x and s3://a:b@c") == "see memory://keeper:***@models/x and s3://a:***@c"
    assert without_credentials("127.0.0.1:9092 and http://host:80/a@b") == "127.0.0.1:9092 and http://host:80/a@b"
    assert_secret(str(InputError(f"{URL}: nothing is there")), "an error")
    try:
        configure_logging()
        structlog.get_logger().warning("unusable", url=URL, problem=f"no {URL}")
    finally:
        structlog.reset_defaults()
    said = capsys.readouterr().err
    assert "keeper" in said
    assert_secret(said, "the log")


def test_what_holds_a_secret_does_not_show_it_when_it_is_shown() -> None:
    connection = Connection("127.0.0.1:1", "SASL_PLAINTEXT", username="worker", password=PASSWORD)
    assert_secret(f"{connection!r} {StreamSettings(web_token=TOKEN)!r}", "repr")
