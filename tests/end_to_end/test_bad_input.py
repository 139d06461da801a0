"""Whatever comes, the stream goes on; what cannot be processed becomes a dead letter with its reason."""

from __future__ import annotations

import random

import orjson
import pytest
from kafka import KafkaProducer

from adatkg_core.messages import Unusable as Bad
from adatkg_core.messages import decode_event, encode_fact, encode_query, encode_tick
from tests.support.running_system import GRAPH, World, ids_of, stream_of, until

MUTATIONS = 10_000
RELATION = GRAPH.relations[0]
LAST = int(GRAPH.facts[-1, 3])


def fact(**changes: object) -> bytes:
    """A fact that is fine but for the changes; None takes a field away."""
    values = {"v": 1, "kind": "fact", "s": "a", "r": RELATION, "o": "b", "t": LAST} | changes
    return orjson.dumps({key: value for key, value in values.items() if value is not None})


BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not-json"),
    "not JSON": (b"{'v': 1}", "not-json"),
    "cut off": (fact()[:-9], "not-json"),
    "invalid UTF-8": (fact().replace(b'"a"', b'"\xff\xfe"'), "not-utf8"),
    "a lone surrogate": (fact().replace(b'"a"', b'"\\ud800"'), "not-json"),
    "no object": (b"[1, 2]", "wrong-type"),
    "deep nesting": (b'{"v":1,"kind":"fact","s":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not-json"),
    "nesting that Python cannot show": (b'{"v":1,"kind":"fact","s":' + b"[" * 1010 + b"]" * 1010 + b"}", "wrong-type"),
    "nesting that JSON allows": (b'{"v":1,"kind":"fact","s":' + b"[" * 500 + b"]" * 500 + b"}", "wrong-type"),
    "a version from the future": (fact(v=2), "unknown-version"),
    "a version that is a string": (fact(v="1"), "unknown-version"),
    "no version": (fact(v=None), "missing-field"),
    "an unknown kind": (fact(kind="rumour"), "unknown-kind"),
    "no kind": (fact(kind=None), "missing-field"),
    "no subject": (fact(s=None), "missing-field"),
    "no time": (fact(t=None), "missing-field"),
    "a subject that is a number": (fact(s=7), "wrong-type"),
    "an empty name": (fact(o=""), "bad-name"),
    "a blank name": (fact(o=" \u00a0 "), "bad-name"),
    "a name with control characters": (fact(s="a\x00b"), "bad-name"),
    "a name with a line break": (fact(s="a\nb"), "bad-name"),
    "an endless name": (fact(s="a" * 5_000), "bad-name"),
    "an unknown relation": (fact(r="Borrow a lawn mower"), "unknown-relation"),
    "a time that is none": (fact(t="yesterday"), "bad-time"),
    "the thirtieth of February": (fact(t="2014-02-30"), "bad-time"),
    "a fractional time": (fact(t=1.5), "wrong-type"),
    "a time that is true": (fact(t=True), "wrong-type"),
    "a time out of range": (fact(t=2**40), "bad-time"),
    "a time beyond all numbers": (fact().replace(f'"t":{LAST}'.encode(), b'"t":1' + b"0" * 400), "not-json"),
    "a fact of the far future": (fact(t=LAST + 1_001), "far-future"),
    "a tick of the far future": (encode_tick(LAST + 5_000), "far-future"),
    "a query for both sides": (encode_query("q", RELATION, 3, s="a", o="b"), "bad-value"),
    "a query for no side": (encode_query("q", RELATION, 3), "missing-field"),
    "a query for too many": (encode_query("q", RELATION, 3, s="a", k=10**6), "bad-value"),
    "a query for less than none": (encode_query("q", RELATION, 3, s="a", k=-1), "bad-value"),
    "a query about an unknown relation": (encode_query("q", "Borrow a lawn mower", 3, s="a"), "unknown-relation"),
    "a message of 5 MB": (fact(s="a" * (5 << 20)), "too-large"),
}


@pytest.fixture
def running(world: World) -> World:
    """A world whose graph has a past, with a worker in it."""
    world.add_model("g")
    world.start_worker()
    events = list(stream_of(GRAPH, "g"))
    world.publish(events)
    world.await_answers(ids_of(events))
    return world


def assert_goes_on(world: World) -> None:
    """A question that comes after all this is answered."""
    world.publish([("g", encode_query("still-there", RELATION, "next", s=GRAPH.entities[0]))])
    until(lambda: "still-there" in world.answers(), "the worker answers after all this")


def test_every_kind_of_bad_input_becomes_a_dead_letter_with_its_reason(running: World) -> None:
    running.publish([("g", value) for value, _ in BAD.values()])
    running.publish([("", fact()), ("\u0007", fact())])
    letters = running.await_dead_letters(len(BAD) + 2)
    found = {letter.value or b"": letter.header("reason") for letter in letters if letter.header("graph") == "g"}
    assert found == dict(BAD.values())
    assert [letter.header("reason") for letter in letters if letter.header("graph") == ""] == ["no-graph", "no-graph"]
    events = {(record.partition, record.offset): record.value for record in running.records(running.topics.events)}
    for letter in letters:
        source = int(letter.header("partition") or -1), int(letter.header("offset") or -1)
        assert (letter.value or b"") == (events[source] or b""), "the letter does not carry the bytes of its source"
        assert letter.header("topic") == running.topics.events
        assert letter.header("detail")
    assert_goes_on(running)


def test_a_question_to_a_graph_without_a_model_is_a_dead_letter_and_its_facts_wait(running: World) -> None:
    events = list(stream_of(GRAPH, "later"))
    asked = ids_of(events)
    running.publish(events)
    letters = running.await_dead_letters(len(asked))
    assert {letter.header("reason") for letter in letters} == {"no-model"}
    running.add_model("later")
    question = encode_query("now", RELATION, "next", s=GRAPH.entities[0], k=1_000)

    def answered() -> bool:
        running.publish([("later", question)])
        return "now" in running.answers()

    until(answered, "the model is found")
    answer = running.answers()["now"][0]
    assert answer["as_of"] == LAST + 1, "the facts that came before the model were not taken in"
    assert answer["interactions"] > 0


def mutated(message: bytes, chance: random.Random) -> bytes:
    """Valid bytes with a few of them changed, cut, doubled or moved."""
    data = bytearray(message)
    for _ in range(chance.randint(1, 4)):
        i, j = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        match chance.randrange(5):
            case 0 if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
            case 1:
                del data[i : min(j, i + 5)]
            case 2:
                data[i:i] = data[i : min(j, i + 9)]
            case 3:
                data[i:i] = chance.choice((b"\x00", b'"', b"\\", b"{}", b"[", b"null", b"-", b"9" * 30, b"\xf0\x9f"))
            case _:
                data = data[j:] + data[:j] if chance.random() < 0.1 else data
    return bytes(data)


def test_ten_thousand_mutations_of_valid_messages_do_not_stop_the_stream(running: World) -> None:
    chance = random.Random(7)
    valid = [value for _, value in stream_of(GRAPH, "m", slice(0, 50))] + [encode_tick(LAST)]
    messages = [mutated(chance.choice(valid), chance) for _ in range(MUTATIONS)]
    before = running.count(running.topics.predictions)
    producer = KafkaProducer(bootstrap_servers=running.bootstrap, linger_ms=5)
    for message in messages:
        producer.send(running.topics.events, message, key=b"g")
    producer.flush()
    producer.close()
    assert_goes_on(running)
    # Each is a fact or tick that was taken in, a query with an answer, or a dead letter; the codec says which at least.
    unusable = queries = 0
    for message in messages:
        try:
            queries += type(decode_event(message, None)).__name__ == "Question"
        except Bad:
            unusable += 1
    letters = running.records(running.topics.deadletter)
    answered = running.count(running.topics.predictions) - before - 1
    assert len(letters) >= unusable > MUTATIONS // 4
    refused = sum(letter.header("reason") in ("unknown-relation", "far-future") for letter in letters)
    assert len(letters) - refused == unusable
    assert queries - refused <= answered <= queries


def test_a_fact_that_is_refused_for_its_relation_does_not_move_the_watermark(running: World) -> None:
    running.publish([("g", fact(r="Borrow a lawn mower", t=LAST + 500))])
    running.await_dead_letters(1)
    running.publish([("g", encode_query("w", RELATION, "next", s="a"))])
    until(lambda: "w" in running.answers(), "the question is answered")
    assert running.answers()["w"][0]["as_of"] == LAST + 1


def test_a_late_fact_is_refused_where_the_policy_says_so(world: World) -> None:
    world.add_model("g")
    world.start_worker(late="refuse")
    subject = GRAPH.entities[0]
    world.publish([("g", encode_fact(subject, RELATION, "b", 5)), ("g", encode_fact(subject, RELATION, "c", 4))])
    world.publish([("g", encode_query("q", RELATION, 6, s=subject))])
    letters = world.await_dead_letters(1)
    assert [letter.header("reason") for letter in letters] == ["late"]
    until(lambda: "q" in world.answers(), "the question is answered")
    assert world.answers()["q"][0]["interactions"] == 1
