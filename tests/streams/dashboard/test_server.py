"""Every route of the page, at a worker that really runs; all tests here share it."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from adatkg_core.clock import Clock, span_of
from adatkg_core.engine import profile_entity
from adatkg_core.events import Fact
from adatkg_core.messages import encode_fact, encode_query, encode_tick
from adatkg_core.storage import Bundle, ModelStore
from adatkg_core.text import load_encoder
from tests.support.running_system import GRAPH, VERSION, Worker, World, ids_of, small_bundle, stream_of, until
from tests.support.small_graph import named, small_config, small_model

TOKEN = "open-sesame"
CLOCK = Clock("2020-01-01")
RELATION = GRAPH.relations[0]
LAST = int(GRAPH.facts[-1, 3])
ODD = "Say \"no\" & <b>go</b> 'now' 😀 \u2028 é / ? # %41 \\"
OTHER = Bundle(small_model(small_config(), seed=9), GRAPH.relations, (), "small-2", clock=CLOCK)
Values = dict[str, Any]


@dataclass
class Page:
    """The worker as a browser sees it."""

    world: World
    worker: Worker

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Values]:
        headers = {} if body is None else {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.worker.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else orjson.dumps(body), headers)
            answer = connection.getresponse()
            values: Values = orjson.loads(answer.read())
            return answer.status, values
        finally:
            connection.close()

    def get(self, path: str, **parameters: Any) -> Values:
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items())
        status, values = self.ask("GET", f"{path}?{query}")
        assert status == 200, values
        return values

    def change(self, path: str, body: Any) -> Values:
        status, values = self.ask("POST", path, body, TOKEN)
        assert status == 200, values
        return values

    def settle(self) -> None:
        """Wait until the worker has looked at its graphs again."""
        before = len(self.get("/api/overview")["history"])
        until(lambda: len(self.get("/api/overview")["history"]) >= min(600, before + 3), "samples are taken")


@pytest.fixture(scope="module")
def page(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A worker that has answered the whole small graph as `g`, and a few facts as one with an awkward name."""
    world = World(bootstrap, tmp_path_factory.mktemp("dashboard"))
    store = ModelStore(str(world.models))
    for graph in ("g", "a/b %41é"):
        store.put(graph, replace(small_bundle(), clock=CLOCK), None)
        store.make_present(graph, VERSION)
    store.put("g", OTHER, None)
    try:
        worker = world.start_worker(web_token=TOKEN)
        events = [*stream_of(GRAPH, "g"), *stream_of(GRAPH, "a/b %41é", slice(0, 30))]
        world.publish(events)
        world.await_answers(ids_of(events))
        made = Page(world, worker)
        made.settle()
        yield made
    finally:
        world.close()


def listen(page: Page, work: Callable[[], None], wanted: Callable[[str, Values], bool]) -> list[tuple[str, Values]]:
    """What the stream of events says from before `work` until something wanted comes."""
    connection = http.client.HTTPConnection("127.0.0.1", page.worker.port, timeout=60)
    connection.request("GET", "/api/stream")
    answer = connection.getresponse()
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/event-stream")
    heard: list[tuple[str, Values]] = []
    try:
        work()
        event, deadline = "", time.monotonic() + 60
        while time.monotonic() < deadline:
            line = answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line.startswith("data: "):
                heard.append((event, orjson.loads(line.removeprefix("data: "))))
                if wanted(*heard[-1]):
                    return heard
        raise AssertionError(f"not among {[event for event, _ in heard]}")
    finally:
        connection.close()


# -- what is shown ------------------------------------------------------------------------------------------------


def test_the_overview_says_who_answers_and_how_well(page: Page) -> None:
    found = page.get("/api/overview")
    worker = found["worker"]
    assert (worker["replica"], worker["replicas"], worker["ready"], worker["changes"]) == (1, 1, True, True)
    assert worker["group"] == f"{page.world.prefix}-workers" and abs(worker["started"] - time.time()) < 3_600
    graphs = {graph["graph"]: graph for graph in found["graphs"]}
    assert graphs.keys() == {"g", "a/b %41é"}
    g = graphs["g"]
    assert g["watermark_iso"] == CLOCK.iso(g["watermark"]) and g["relations"] == len(GRAPH.relations)
    assert g["entities"] >= len(GRAPH.entities) and g["state_bytes"] > 0
    for scores in (g["scores"], g["heuristic"]):
        assert scores.keys() == {"all", "cold_start", "warm"}
        for slice in scores.values():
            assert slice.keys() == {"mrr", "hits@1", "hits@3", "hits@10", "count"} and 0 <= slice["mrr"] <= 1
    assert g["heuristic"]["all"]["count"] == g["scores"]["all"]["count"] > 100
    assert g["heuristic"]["all"]["mrr"] != g["scores"]["all"]["mrr"]
    sample = found["history"][-1]
    assert sample["lag"] == 0 and sample["graphs"]["g"]["mrr"]["all"] == pytest.approx(
        g["scores"]["all"]["mrr"], abs=1e-5
    )
    heuristic = sample["graphs"]["g"]["heuristic_hits@10"]["warm"]
    assert heuristic == pytest.approx(g["heuristic"]["warm"]["hits@10"], abs=1e-5)


def test_the_score_of_the_heuristic_is_on_the_pages_for_machines_too(page: Page) -> None:
    scores = orjson.loads(page.worker.page("/scores")[1])["g"]
    assert scores["heuristic"]["all"]["count"] == scores["scores"]["all"]["count"] and scores["size"] > 0
    until(lambda: page.worker.metric('adatkg_heuristic_score{graph="g",measure="mrr",slice="all"}') > 0, "a metric")


def test_the_latest_predictions_are_those_on_the_topic_with_the_ranks_of_their_truths(page: Page) -> None:
    rows = page.get(f"/api/graphs/{quote('a/b %41é', safe='')}/predictions")["predictions"]
    answers = {one["id"]: one for made in page.world.answers().values() for one in made}
    offsets = [int(row["id"].split("-")[1]) for row in rows]
    assert len(rows) == 50 and offsets == sorted(set(offsets))[::-1]
    judged = 0
    for row in rows:
        answer = answers[row["id"]]
        asked = answer["query"]
        assert row["graph"] == answer["graph"] and (row["s"], row["r"], row["o"]) == (
            asked.get("s"),
            asked["r"],
            asked.get("o"),
        )
        assert row["t_iso"] == CLOCK.iso(row["t"]) and row["t"] == asked["t"] and row["model"] == VERSION
        assert row["top"] == [{"entity": one["entity"], "probability": one["probability"]} for one in answer["top"][:5]]
        assert (row["gate"], row["interactions"], row["late"], row["cold_start"]) == tuple(
            answer[key] for key in ("gate", "interactions", "late", "cold_start")
        )
        for truth in row["truths"]:
            if truth["entity"] in answer["ranks"]:
                judged += 1
                assert truth["rank"] == answer["ranks"][truth["entity"]] and truth["heuristic_rank"] > 0
    assert judged > 10


def test_an_entity_is_shown_as_the_log_has_it(page: Page) -> None:
    engine = small_bundle().engine(load_encoder("hash:24"))
    engine.observe(named(GRAPH.facts.tolist()))
    for name in GRAPH.entities[1:6]:
        wanted, found = profile_entity(engine, name), page.get("/api/graphs/g/entity", name=name)
        assert found["known"] and found["name"] == name
        shown = [Fact(one["s"], one["r"], one["o"], one["t"]) for one in found["facts"]]
        assert (
            shown == list(wanted.facts)[: len(shown)]
        )  # where a read took pending facts in, they overwrote older ones
        assert len(shown) >= min(len(wanted.facts), engine.model.config.model.chain_capacity)
        assert all(one["t_iso"] == CLOCK.iso(one["t"]) for one in found["facts"])
        assert found["interactions"] == wanted.interactions
        assert found["cluster"] == wanted.cluster and 0 < len(found["cluster_members"]) <= 12
        assert found["cluster_size"] >= wanted.cluster_size
        trace = found["trace"]
        assert 0 < len(trace) <= 200 and [point["t"] for point in trace] == sorted(point["t"] for point in trace)
        assert trace[-1]["interactions"] <= found["interactions"] and trace[0]["t_iso"] == CLOCK.iso(trace[0]["t"])
        assert any(point["reciprocal_rank"] is not None for point in trace)
        assert any(point["gate"] > 0 and point["memory_norm"] > 0 for point in trace)


def test_names_are_found_by_a_few_letters(page: Page) -> None:
    name = GRAPH.entities[0]
    assert name in page.get("/api/graphs/g/names", kind="entity", q=name[:4].upper(), limit=50)["names"]
    assert page.get("/api/graphs/g/names", kind="relation", q=RELATION[1:5].lower())["names"] == [RELATION]
    assert len(page.get("/api/graphs/g/names", q="")["names"]) == 10


def test_a_name_is_known_or_the_nearest_are_offered(page: Page) -> None:
    assert page.get("/api/graphs/g/nearest", kind="relation", q=RELATION) == {"known": True, "names": []}
    found = page.get("/api/graphs/g/nearest", kind="relation", q=RELATION[:-1])
    assert found["known"] is False and found["names"][0] == RELATION
    assert page.get("/api/graphs/g/nearest", q="Zzyzx Qwertz") == {"known": False, "names": []}


def test_names_with_anything_in_them_come_back_as_they_are(page: Page) -> None:
    now = LAST + 1
    page.world.publish([("g", encode_fact(ODD, RELATION, GRAPH.entities[0], now))])
    until(lambda: page.get("/api/graphs/g/entity", name=ODD)["known"], "the odd name is known")
    found = page.get("/api/graphs/g/entity", name=ODD)
    assert found["name"] == ODD and found["facts"][0]["s"] == ODD
    assert page.get("/api/graphs/g/names", q='say "no')["names"] == [ODD]
    answer = page.ask("POST", "/api/graphs/g/ask", {"subject": ODD, "relation": RELATION, "k": 3})[1]
    assert answer["query"]["s"] == ODD and len(answer["top"]) == 3
    until(
        lambda: page.get("/api/graphs/g/predictions")["predictions"][0]["s"] == ODD, "the odd name is among the latest"
    )
    for name in ("bell \x07 and \x00", "\x85\x7f", "\ud7ff\uffff"):
        stranger = page.get("/api/graphs/g/entity", name=name)
        assert stranger["name"] == name and not stranger["known"]


def test_a_stranger_has_a_cluster_and_no_past(page: Page) -> None:
    found = page.get("/api/graphs/g/entity", name="Nobody ever")
    assert not found["known"] and found["facts"] == found["trace"] == []
    assert found["interactions"] == found["gate"] == found["updates"] == found["memory_norm"] == 0
    assert found["cluster"] is not None and found["cluster_size"] > 0


# -- asking -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [None, LAST + 3, CLOCK.iso(LAST + 3), "next"])
def test_a_question_of_the_page_is_answered_as_on_the_topic(page: Page, when: int | str | None) -> None:
    body = {"object": GRAPH.entities[2], "relation": RELATION, "k": 50} | ({} if when is None else {"time": when})
    status, answer = page.ask("POST", "/api/graphs/g/ask", body)
    assert status == 200 and answer["query"]["o"] == GRAPH.entities[2] and 10 < len(answer["top"]) <= 50
    assert page.world.answers()[answer["query"]["id"]] == [answer]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"relation": RELATION}, "subject or object"),
        ({"relation": RELATION, "subject": "a", "object": "b"}, "subject or object"),
        ({"subject": "a"}, "relation is missing"),
        ({"subject": "a", "relation": "No such thing"}, "unknown-relation"),
        ({"subject": 5, "relation": RELATION}, "must be a string"),
        ({"subject": "  ", "relation": RELATION}, "give a name"),
        ({"subject": "bell \x07", "relation": RELATION}, "control characters"),
        ({"subject": "x" * 1_001, "relation": RELATION}, "at most 1000"),
        ({"subject": "a", "relation": RELATION, "time": "yesterday"}, "ISO time"),
        ({"subject": "a", "relation": RELATION, "time": 1.5}, "tick"),
        ({"subject": "a", "relation": RELATION, "time": 1 << 40}, "32 bits"),
        ({"subject": "a", "relation": RELATION, "k": 51}, "1 to 50"),
        ({"subject": "a", "relation": RELATION, "k": True}, "1 to 50"),
        ({"subject": "a", "relation": RELATION, "k": "5"}, "1 to 50"),
        ([], "JSON object"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_the_remedy(page: Page, body: Any, says: str) -> None:
    status, answer = page.ask("POST", "/api/graphs/g/ask", body)
    assert status == 400 and says in answer["error"]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/graphs/g/entity", 400, "give an entity's name"),
        ("/api/graphs/g/entity?name=%20", 400, "give an entity's name"),
        (f"/api/graphs/g/entity?name={'x' * 1_001}", 400, "at most 1000"),
        ("/api/graphs/g/names?kind=thing", 400, "entity or relation"),
        ("/api/graphs/g/nearest?kind=thing", 400, "entity or relation"),
        ("/api/graphs/nowhere/nearest?q=x", 404, "not on this worker"),
        ("/api/graphs/g/names?limit=0", 400, "from 1 to 50"),
        ("/api/graphs/g/names?limit=51", 400, "from 1 to 50"),
        ("/api/graphs/g/names?limit=%D9%A3", 400, "from 1 to 50"),
        ("/api/deadletters?limit=-1", 400, "from 1 to 200"),
        ("/api/deadletters?limit=99999999999", 400, "from 1 to 200"),
        ("/api/graphs/nowhere/entity?name=x", 404, "not on this worker"),
        ("/api/graphs/nowhere/names", 404, "not on this worker"),
        ("/api/graphs/nowhere/predictions", 404, "not on this worker"),
        ("/api/graphs/nowhere/models", 404, "no models"),
        ("/api/graphs/..%2F..%2Fetc/models", 404, "no models"),
        ("/api/nowhere", 404, "Not Found"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_the_remedy(
    page: Page, path: str, status: int, says: str
) -> None:
    found, answer = page.ask("GET", path)
    assert found == status and says in answer["error"]


def test_a_graph_that_nobody_has_cannot_be_asked(page: Page) -> None:
    status, answer = page.ask("POST", "/api/graphs/nowhere/ask", {"subject": "a", "relation": RELATION})
    assert status == 404 and "not on this worker" in answer["error"]


# -- what moves ---------------------------------------------------------------------------------------------------


def test_the_stream_tells_of_samples_predictions_truths_and_dead_letters(page: Page) -> None:
    now, subject, truth = LAST + 5, GRAPH.entities[3], GRAPH.entities[4]
    question = encode_query("live-1", RELATION, now, s=subject, rank_of=[truth])

    def work() -> None:
        page.world.publish([("g", question), ("g", b"rubbish")])
        until(lambda: "live-1" in page.world.answers(), "the query is answered")
        page.world.publish([("g", encode_fact(subject, RELATION, truth, now))])

    wanted = {"prediction", "truth"}  # in either order: predictions are told a few times a second, truths at once

    def is_last(event: str, values: dict[str, Any]) -> bool:
        if (event == "truth" and values["entity"] == truth) or (event == "prediction" and values["t"] == now):
            wanted.discard(event)
        return not wanted

    heard = listen(page, work, is_last)
    answer = page.world.answers()["live-1"][0]
    (last,) = (values for event, values in heard if event == "truth" and values["entity"] == truth)
    assert last["id"] == answer["id"] and last["graph"] == "g" and last["rank"] == answer["ranks"][truth]
    assert last["heuristic_rank"] >= 1
    rows = [values for event, values in heard if event == "prediction"]
    assert answer["id"] in [row["id"] for row in rows]
    letters = [values for event, values in heard if event == "deadletter"]
    assert [letter["reason"] for letter in letters] == ["not-json"] and letters[0]["graph"] == "g"
    samples = listen(page, lambda: None, lambda event, _: event == "sample")
    assert samples[-1][1]["graphs"]["g"]["version"] and samples[-1][1]["t"] == pytest.approx(time.time(), abs=60)


# -- models -------------------------------------------------------------------------------------------------------


def test_a_promotion_really_swaps_and_a_rollback_brings_the_one_before_back(page: Page) -> None:
    models = page.get("/api/graphs/g/models")
    assert models["present"] == VERSION
    status = {model["version"]: model["status"] for model in models["models"]}
    assert status == {VERSION: "present", OTHER.version: "candidate"}
    for path, body, version, before in (
        ("promote", {"version": OTHER.version}, OTHER.version, VERSION),
        ("rollback", {}, VERSION, OTHER.version),
    ):
        heard = listen(
            page,
            lambda path=path, body=body, version=version: _changed(page, path, body, version),  # type: ignore[misc]
            lambda event, values: event == "models",
        )
        assert heard[-1][1] == {"graph": "g", "version": version}
        assert page.get("/api/graphs/g/models")["present"] == version
        answer = page.ask("POST", "/api/graphs/g/ask", {"subject": GRAPH.entities[0], "relation": RELATION})[1]
        assert answer["model"] == version
        former = [model for model in page.get("/api/graphs/g/models")["models"] if model["version"] == before]
        assert former[0]["status"] == ("former" if path == "promote" else "candidate")
    assert page.get("/api/overview")["graphs"]


def _changed(page: Page, path: str, body: Values, version: str) -> None:
    assert page.change(f"/api/graphs/g/{path}", body) == {"graph": "g", "version": version}


def test_a_promotion_or_rollback_that_cannot_be_is_refused_with_the_remedy(page: Page) -> None:
    awkward = quote("a/b %41é", safe="")
    for path, body, wanted, says in (
        ("/api/graphs/g/promote", {"version": "no-such"}, 400, "no bundle no-such"),
        ("/api/graphs/g/promote", {}, 400, "version is missing"),
        ("/api/graphs/g/promote", {"version": 7}, 400, "version is missing"),
        ("/api/graphs/g/promote", {"version": OTHER.version, "force": "yes"}, 400, "force must be"),
        ("/api/graphs/nowhere/promote", {"version": "x"}, 404, "no models"),
        ("/api/graphs/nowhere/rollback", {}, 404, "no models"),
        (f"/api/graphs/{awkward}/rollback", {}, 400, "no bundle before"),
    ):
        status, answer = page.ask("POST", path, body, TOKEN)
        assert status == wanted and says in answer["error"], path


@pytest.mark.parametrize("path", ["/api/graphs/g/promote", "/api/graphs/g/rollback", "/api/deadletters/retry"])
def test_nothing_is_changed_without_the_token(page: Page, path: str) -> None:
    present = page.get("/api/graphs/g/models")["present"]
    for token in (None, "", "open-sesam", TOKEN.upper()):
        status, answer = page.ask("POST", path, {"version": OTHER.version, "partition": 0, "offset": 0}, token)
        assert status == 401 and "token" in answer["error"] and TOKEN not in answer["error"]
    assert page.get("/api/graphs/g/models")["present"] == present
    assert TOKEN not in page.worker.logfile.read_text()


def test_a_foreign_name_is_refused_and_machines_are_not(page: Page) -> None:
    for path, wanted in (("/api/overview", 403), ("/", 403), ("/health", 200), ("/metrics", 200), ("/scores", 403)):
        connection = http.client.HTTPConnection("127.0.0.1", page.worker.port, timeout=60)
        connection.request("GET", path, headers={"Host": "evil.example"})
        assert connection.getresponse().status == wanted, path
        connection.close()


# -- dead letters -------------------------------------------------------------------------------------------------


def test_a_dead_letter_is_listed_put_back_once_and_gone(page: Page) -> None:
    strange = encode_fact(ODD, "No such thing", GRAPH.entities[0], LAST + 5)
    page.world.publish([("g", strange), ("g", b'{"half": \xff' + b"x" * 5_000)])

    def listed() -> Sequence[Values]:
        letters: Sequence[Values] = page.get("/api/deadletters", limit=50)["letters"]
        return letters

    until(lambda: {"unknown-relation", "not-utf8"} <= {letter["reason"] for letter in listed()}, "both are listed")
    offsets = [letter["offset"] for letter in listed()]
    assert offsets == sorted(offsets)[::-1], "the newest comes first"
    letter = next(one for one in listed() if one["text"].encode() == strange)
    assert letter["graph"] == "g" and "No such thing" in letter["detail"] and letter["at_iso"].startswith("20")
    shown = page.world.command("deadletters", "show", f"{letter['partition']}-{letter['offset']}")
    assert shown["value"].encode() == strange
    place = {"partition": letter["partition"], "offset": letter["offset"]}
    assert page.change("/api/deadletters/retry", place) == {"retried": 1}
    until(lambda: all(one["offset"] != letter["offset"] for one in listed()), "it is no longer listed")
    until(lambda: any(one["text"].encode() == strange for one in listed()), "the worker refuses it again")
    status, answer = page.ask("POST", "/api/deadletters/retry", place, TOKEN)
    assert status == 400 and "retried already" in answer["error"]
    broken = next(one for one in listed() if one["reason"] == "not-utf8")
    assert len(broken["text"]) == 2_000
    for body, says in (
        ({"partition": broken["partition"], "offset": broken["offset"]}, "mend it"),
        ({"partition": 0, "offset": 10_000_000}, "none of this id"),
        ({"partition": 77, "offset": 0}, "none of this id"),
        ({"partition": "0", "offset": 0}, "give partition and offset"),
        ({"partition": 0, "offset": True}, "give partition and offset"),
        ({}, "give partition and offset"),
    ):
        status, answer = page.ask("POST", "/api/deadletters/retry", body, TOKEN)
        assert status == 400 and says in answer["error"]
    assert len(page.get("/api/deadletters", limit=1)["letters"]) == 1


# -- the end ------------------------------------------------------------------------------------------------------


def test_a_worker_ends_in_peace_while_pages_are_open(page: Page) -> None:
    worker = page.world.start_worker(group=f"{page.world.prefix}-another")
    open_ones = [socket.create_connection(("127.0.0.1", worker.port)) for _ in range(3)]
    for one in open_ones:
        one.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one.recv(15) == b"HTTP/1.1 200 OK"
    worker.stop()
    assert not worker.said("left_without_goodbye") and not worker.said("watching_failed")
    assert worker.said("stopped")
    for one in open_ones:
        one.settimeout(10)
        while one.recv(65_536):
            pass
        one.close()


def test_nothing_went_wrong_while_watching(page: Page) -> None:
    assert not page.worker.said("watching_failed") and not page.worker.said("web_failed")


# -- what does not come -------------------------------------------------------------------------------------------


def test_the_stream_tells_that_nothing_came_to_a_question_about_next(page: Page) -> None:
    """The last of this file, because the graph's time moves far ahead."""
    scores = orjson.loads(page.worker.page("/scores")[1])["g"]
    watermark, horizon = scores["watermark"], scores["horizon"]

    def work() -> None:
        page.world.publish([("g", encode_query("live-2", RELATION, "next", s="Nobody ever heard of"))])
        until(lambda: "live-2" in page.world.answers(), "the query is answered")
        page.world.publish([("g", encode_tick(watermark + horizon)), ("g", encode_tick(watermark + horizon + 1))])

    def id() -> str:
        return str(page.world.answers()["live-2"][0]["id"])

    heard = listen(page, work, lambda event, values: event == "ended" and values["id"] == id())
    assert heard[-1][1] == {"graph": "g", "id": id(), "within": span_of(CLOCK, horizon)}
    rows = {row["id"]: row for row in page.get("/api/graphs/g/predictions")["predictions"]}
    row = rows[id()]
    assert row["asked_next"] and row["ended"] and row["truths"] == []
    assert (row["until"], row["until_iso"]) == (watermark + horizon, CLOCK.iso(watermark + horizon))
    after = orjson.loads(page.worker.page("/scores")[1])["g"]
    assert after["unsettled"] > scores["unsettled"] and after["scores"] == scores["scores"]
    assert page.worker.metric('adatkg_unsettled_queries_total{graph="g"}') == after["unsettled"]
