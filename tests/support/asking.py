"""Questions to a running demonstration in every form that a user has: about the next time, a tick and an ISO time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import urllib.request
from typing import Any

import orjson

from adatkg import Client, SyncClient

GRAPH, SUBJECT, RELATION = "icews14", "Police (Kenya)", "Make statement"
TIMES: tuple[int | str, ...] = ("next", 500, "2015-05-15")  # tick 500 begins on that day
PATIENCE = 120  # seconds for an answer, on a machine that does other things too


def ask_in_every_form(bootstrap: str, dashboard: str) -> list[dict[str, Any]]:
    """The answers, as messages."""
    asked = {"relation": RELATION, "subject": SUBJECT, "timeout": PATIENCE}
    answers = [_by_command(bootstrap, time) for time in TIMES]
    with SyncClient(bootstrap) as client:
        answers += [client.ask(GRAPH, time=time, **asked).raw for time in TIMES]  # type: ignore[arg-type]

    async def by_client() -> list[dict[str, Any]]:
        async with Client(bootstrap) as client:
            return [(await client.ask(GRAPH, time=time, **asked)).raw for time in TIMES]  # type: ignore[arg-type]

    return [*answers, *asyncio.run(by_client()), *(_by_page(dashboard, time) for time in TIMES)]


def _by_command(bootstrap: str, time: int | str) -> dict[str, Any]:
    command = [sys.executable, "-m", "adatkg", "ask", GRAPH, SUBJECT, RELATION, "--time", str(time), "--json"]
    environment = os.environ | {"ADATKG_BOOTSTRAP": bootstrap}
    done = subprocess.run([*command, "--timeout", str(PATIENCE)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = orjson.loads(done.stdout)
    return answer


def _by_page(dashboard: str, time: int | str) -> dict[str, Any]:
    body = orjson.dumps({"subject": SUBJECT, "relation": RELATION, "time": time})
    address, headers = f"{dashboard}api/graphs/{GRAPH}/ask", {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=PATIENCE) as answer:
        found: dict[str, Any] = orjson.loads(answer.read())
    return found
