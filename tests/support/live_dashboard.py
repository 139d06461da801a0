"""A whole running system for the dashboard: broker, worker with a token, two models, a replay that goes on and on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from adatkg_core.datasets import synthesize, write_dataset
from adatkg_core.messages import Verdict, encode_fact, encode_query
from adatkg_core.storage import Bundle, ModelStore
from tests.support.running_system import GRAPH, VERSION, Event, Worker, World, small_bundle, until
from tests.support.small_graph import small_config, small_model

TOKEN = "a-token-for-tests"
SECOND = "small-2"
WORSE = "small-3"  # by its own verdict
ENOUGH = 20  # entities, so that lists and rankings are full
TIMES = 3_000  # of the replay: at two a second far more than any run of the tests lasts

# Everything in this graph tries to be more than a text.
ODD = 'it\'s <b>odd</b> & "quoted" 🧭'
ODD_NAMES = (
    "<img src=x onerror=\"document.title='injected'\">",
    "</script><script>document.title='injected'</script>",
    'O\'Neil "the quote" & <b>sons</b> 🦉',
    "مرحبا بالعالم",
)
ODD_RELATIONS = ("meets <i>loudly</i>", "writes \"to\" & 'from'", "<svg onload=alert(1)>", "waves 👋", "is <!-- like")
UNKNOWN = "Something <b>new</b>"  # a relation that no model knows
NOT_JSON = b"{\"kind\": <script>document.title='injected'</script>"


@dataclass
class Live:
    """What the tests of this folder share; whoever changes something puts it back."""

    world: World
    worker: Worker

    @property
    def address(self) -> str:
        """Of the dashboard."""
        return f"http://127.0.0.1:{self.worker.port}"

    def restart_worker(self) -> None:
        """Kill the worker and start another one in its place."""
        port = self.worker.port
        self.worker.kill()
        self.worker = self.world.start_worker(web_port=port, web_token=TOKEN)


@contextmanager
def running_system(bootstrap: str, folder: Path) -> Iterator[Live]:
    """Start everything and wait until predictions come."""
    world = World(bootstrap, folder)
    world.add_model("g")
    store = ModelStore(str(world.models))
    for version in (SECOND, WORSE):
        store.put("g", Bundle(small_model(small_config(), seed=9), GRAPH.relations, (), version), None)
    store.add_note("g", WORSE, scores=asdict(Verdict("all", 0.0, 0.1, 0.2)), reason="worse than the present one")
    store.put(ODD, replace(small_bundle(), relations=ODD_RELATIONS), None)
    store.make_present(ODD, VERSION)
    write_dataset(synthesize(60, len(GRAPH.relations), TIMES, 4, seed=3), folder / "data")
    worker = world.start_worker(web_token=TOKEN)
    world.publish(odd_events())
    world.publish([("g", NOT_JSON), ("g", encode_fact("Ann", UNKNOWN, "Bob", 0))])
    replay = _start_replay(world, folder / "data")
    try:
        until(worker.has_answered, "the worker answers")
        until(lambda: _entities_of(worker, "g") >= ENOUGH, "the replay has named some entities")
        yield Live(world, worker)
    finally:
        replay.send_signal(signal.SIGINT)
        replay.wait()
        world.close()


def odd_events() -> Iterator[Event]:
    """Facts and queries of the odd graph; the last query is about a newcomer."""
    for t in range(3):
        for i, subject in enumerate(ODD_NAMES):
            other, relation = ODD_NAMES[i - 1], ODD_RELATIONS[i]
            yield ODD, encode_query(f"odd-{t}-{i}", relation, t, s=subject, k=5)
            yield ODD, encode_fact(subject, relation, other, t)
    yield ODD, encode_query("odd-new", ODD_RELATIONS[0], 3, s="<u>new</u>", k=5)


def _entities_of(worker: Worker, graph: str) -> int:
    """How many the worker has seen in a graph."""
    graphs = orjson.loads(worker.page("/api/overview")[1])["graphs"]
    return sum(one["entities"] for one in graphs if one["graph"] == graph)


def _start_replay(world: World, data: Path) -> subprocess.Popen[bytes]:
    place = ["--bootstrap", world.bootstrap, "--topic-prefix", world.prefix]
    command = [
        sys.executable,
        "-m",
        "adatkg",
        "replay",
        str(data),
        "--graph",
        "g",
        "--queries",
        "--speed",
        "2",
    ]
    with (world.folder / "replay.log").open("wb") as out:
        return subprocess.Popen([*command, *place], stdout=out, stderr=out, env=os.environ | {"OMP_NUM_THREADS": "1"})
