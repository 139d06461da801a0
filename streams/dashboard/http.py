"""What every route uses: answers in JSON, problems with a remedy, and what a request says."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from aiohttp import web

BODY_WITHIN = 10.0  # seconds for a few lines of JSON; who sends slower holds a connection for nothing


class Problem(Exception):
    """What a request gets instead of an answer; the text names the thing, the place and the remedy."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def as_json(values: Any, status: int = 200) -> web.Response:
    """An answer that no cache keeps."""
    kept = {"Cache-Control": "no-store", "Content-Type": "application/json; charset=utf-8"}
    return web.Response(body=orjson.dumps(values), status=status, headers=kept)


async def body_of(request: web.Request) -> dict[str, Any]:
    """The JSON object that was sent."""
    try:
        async with asyncio.timeout(BODY_WITHIN):
            data = await request.read()
        values = orjson.loads(data)
    except TimeoutError as error:
        raise Problem(
            408, f"{request.path}: the body did not come within {BODY_WITHIN:g} s; send it at once"
        ) from error
    except orjson.JSONDecodeError as error:
        raise Problem(400, f"the body is not JSON ({error}): send a JSON object") from error
    if not isinstance(values, dict):
        raise Problem(400, "the body must be a JSON object")
    return values


def number_of(request: web.Request, name: str, default: int, most: int) -> int:
    """A parameter that must be from 1 to `most`."""
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise Problem(400, f"{name} is {text[:20]!r}: it must be a whole number from 1 to {most}")
    return int(text)


def not_here(graph: str) -> Problem:
    """Said of a graph that this worker does not answer for."""
    return Problem(
        404,
        f"graph {graph[:100]!r} is not on this worker: publish an event of it, or ask the worker that answers for it",
    )
