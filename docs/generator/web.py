"""The page of HTTP routes; which there are is asked of a worker's own web application."""

from __future__ import annotations

import asyncio
from typing import Any

from docs.generator.markdown import code, described, document, table
from streams.dashboard.security import OPEN, Access, access_of
from streams.kafka import Connection, Topics
from streams.settings import StreamSettings

INTRODUCTION = """
A worker serves these on `web_host` and `web_port`, by default `http://127.0.0.1:6066`. There is no TLS and no user: on
another address than this machine's own put a proxy in front that has both.
"""
RULES = """
## Who may ask for what

- The pages for machines answer under any name. All others answer to `localhost`, `127.0.0.1`, `[::1]`, the setting
  `web_host`, the machine's own name and those of `web_names`, and refuse requests that another site's page makes (403).
  Where `web_host` is a wildcard such as `0.0.0.0` and `web_names` is empty, any address is taken too, no other name.
- The body of a POST is JSON with `Content-Type: application/json`, of at most 1 MiB (400), all of it within 10 s (408).
- What changes something wants the header `Authorization: Bearer TOKEN` with the setting `web_token`. While that is
  empty, nobody may change anything (403); a wrong token gets 401.
- An error is `{"error": "…"}` that names the thing, the place and the remedy: 400 for wrong input, 404 where the graph
  is not on this worker, 502 and 504 where brokers or device did not answer, 503 where too many ask at once.
"""
ROW = """
## A prediction as it is shown

In `/api/graphs/{graph}/predictions` and in the event `prediction`: `id`, `graph`, the query (`s` or `o`, `r`, `t`,
`t_iso`), the likeliest answers (`top`), `model`, `cold_start`, `gate`, `interactions` and `late`, as in the
[prediction](messages.md#prediction), and how it is scored:

| field | is |
|---|---|
| `asked_next` | Whether it was asked about `next` and waits for the next fact of its kind. |
| `until`, `until_iso` | The last tick at which a truth may come: that of an explicit time, else the horizon's end. |
| `within` | How long that is, in words: `3 hours`, `14 days`; `5 ticks` without a calendar. |
| `truths` | Those that came: `entity`, `rank` (`null`: beyond the remembered fifty) and `heuristic_rank`. |
| `ended` | `true` once no truth can come any more, whether one has come or not. |

The event `truth` has `graph`, `id` and the fields of a truth; `ended` has `graph`, `id` and `within`, and comes where
nothing came.
"""
# What it is, and whether it wants the token.
ABOUT = {
    "GET /health": (
        "200 while the worker lives, 503 when it stalls; it then starts itself anew. `incidents` lists what is wrong: "
        "`graph`, `kind`, `detail`, `since`, `next_try` (`null`: nothing is left to be tried). An incident of a graph "
        "does not make the worker unhealthy."
    ),
    "GET /ready": "200 when it takes events in, else 503.",
    "GET /metrics": "[Metrics](metrics.md) for Prometheus.",
    "GET /scores": (
        "For each graph on this worker: version, watermark, entities, MRR and hits of the last answers, the `horizon` "
        "of queries about `next`, in ticks, and how many queries ended `unsettled`, without a truth "
        "([definition](../explanation/measuring.md#in-the-stream))."
    ),
    "GET /": "[The dashboard](../dashboard.md).",
    "GET /static/{name}": "Its files.",
    "GET /static/plotly.min.js": "The library that draws its charts.",
    "GET /api/overview": (
        "The worker, its graphs, the `incidents` as on `/health`, and samples of the last ten minutes, one a second."
    ),
    "GET /api/stream": (
        "Server-sent events: `sample` every second, `prediction` (a fair choice, at most 20 a second), `truth` when a "
        "shown prediction's answer has come, `ended` when none has and none can come any more, `models` when another "
        "version answers, `deadletter`, `incidents` when they change. At most 32 readers; one that does not "
        "keep up is dropped."
    ),
    "GET /api/graphs/{graph}/predictions": (
        "The latest [predictions as they are shown](#a-prediction-as-it-is-shown), newest first, with the truths that "
        "came since."
    ),
    "GET /api/graphs/{graph}/names": "Names that match `q`: `kind=entity` or `relation`, `limit` up to 50.",
    "GET /api/graphs/{graph}/nearest": (
        "Whether the graph knows the name `q` (`known`), and if not, the names that may have been meant: "
        "`kind=entity` or `relation`."
    ),
    "GET /api/graphs/{graph}/entity": (
        "All that is known of the entity `name`: interactions, gate, cluster, latest facts and how both have moved. An "
        "unknown name is fine."
    ),
    "POST /api/graphs/{graph}/ask": (
        "Ask: `subject` or `object`, `relation`, and if wanted `time` and `k` (up to 50). The answer is the "
        "[prediction](messages.md#prediction)."
    ),
    "GET /api/graphs/{graph}/models": "The bundles in the store: status, figures and reasons.",
    "POST /api/graphs/{graph}/promote": "With token. Make `version` the present one; `force` even if it did worse.",
    "POST /api/graphs/{graph}/rollback": "With token. Bring the one before back.",
    "GET /api/deadletters": "The latest dead letters, newest first, `limit` up to 200.",
    "POST /api/deadletters/retry": "With token. Put the dead letter at `partition` and `offset` back as it came.",
}


def page() -> str:
    """Every route, those for machines first."""
    access = asyncio.run(_routes())
    described("routes", list(access), ABOUT)
    machines = [name for name in ABOUT if name.split(" ")[1] in OPEN]
    people = [name for name in ABOUT if name not in machines]
    return document(
        "HTTP pages",
        INTRODUCTION,
        "## For machines",
        table(("route", "is"), ((code(name), ABOUT[name]) for name in machines)),
        "## The dashboard and its data",
        table(("route", "is"), ((code(name), ABOUT[name]) for name in people)),
        ROW,
        RULES,
        "### By route",
        table(("route", "who may call it"), ((code(name), access[name].value) for name in ABOUT)),
    )


async def _routes() -> dict[str, Access]:
    """Every route of a worker, with who may call it by its declaration."""
    from streams.app import create_app

    app: Any = create_app(StreamSettings(), Connection(), Topics())
    routes = app.web.web_app.router.routes()
    return {
        f"{route.method} {route.resource.canonical}": access_of(route.handler, route.resource.canonical)
        for route in routes
        if route.method != "HEAD"
    }
