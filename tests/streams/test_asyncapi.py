from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adatkg.main import main
from adatkg_core.clock import parse_iso
from adatkg_core.messages import (
    EVENTS,
    MAX_BYTES,
    MAX_K,
    MAX_NAME,
    NEXT,
    Announcement,
    Unusable,
    Verdict,
    check_event,
    decode_announcement,
    decode_prediction,
    encode_announcement,
    message_schemas,
    require_name,
)
from streams.asyncapi import asyncapi, documents
from streams.dead_letters import dead_letter_headers
from streams.kafka import Topics

COMMITTED = Path(__file__).parents[2] / "docs" / "schemas"
VALIDATORS = {name: Draft202012Validator(schema) for name, schema in message_schemas().items()}
REMEDY = "run `adatkg schemas --out docs/schemas`"

# -- messages, right and wrong --------------------------------------------------------------------------------

names = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["Barack Obama", "Consult", "", " ", "\u3000", "a\n", "\x85", "x" * MAX_NAME, "x" * (MAX_NAME + 1)]
    ),
)
good_names = st.sampled_from(["Barack Obama", "Consult", "Ärzte ohne Grenzen", "\u200b", "x" * MAX_NAME])
times = st.one_of(
    st.integers(-(2**31) - 1, 2**31),
    st.sampled_from(["2014-03-02", "2014-03-02T10:15Z", NEXT, "soon", "", "0001-01-01"]),
)
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(), st.sampled_from([0, 1, 1.0, MAX_K, MAX_K + 1]))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, names, times),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
facts = st.fixed_dictionaries(
    {"v": st.just(1), "kind": st.just("fact"), "s": good_names, "r": good_names, "o": good_names, "t": times}
)
sides = st.one_of(
    st.fixed_dictionaries({"s": good_names}, optional={"o": st.none()}),
    st.fixed_dictionaries({"o": good_names}, optional={"s": st.none()}),
)
asked = st.fixed_dictionaries(
    {"v": st.just(1), "kind": st.just("query"), "id": good_names, "r": good_names, "t": times},
    optional={
        "k": st.integers(0, MAX_K) | st.none(),
        "rank_of": st.lists(good_names, max_size=2) | st.none(),
        "exclude": st.lists(names, max_size=2),
    },
)
queries = st.builds(lambda one, other: one | other, asked, sides)
ticks = st.fixed_dictionaries({"v": st.just(1), "kind": st.just("tick"), "t": times})
models = st.fixed_dictionaries(
    {"v": st.just(1), "kind": st.just("model"), "version": names}, optional={"after": names | st.none()}
)
predictions = st.fixed_dictionaries(
    {
        "v": st.just(1),
        "id": st.just("3-7"),
        "graph": good_names,
        "query": st.fixed_dictionaries({"id": good_names, "r": good_names, "t": times}),
        "top": st.lists(
            st.fixed_dictionaries({"entity": good_names, "score": numbers, "probability": numbers}), max_size=2
        ),
        "ranks": st.dictionaries(good_names, numbers, max_size=2),
        "as_of": st.integers(-(2**31), 2**31),
        "late": st.booleans(),
        "model": good_names,
        "cold_start": st.booleans(),
        "gate": numbers,
        "interactions": st.integers(0, 9),
        "source": st.fixed_dictionaries({"partition": st.just(3), "offset": st.just(7)}),
    },
    optional={
        "tick": st.integers(-(2**31), 2**31),
        "time": names | st.none(),
        "as_of_time": names | st.none(),
    },
)
announcements = st.fixed_dictionaries(
    {
        "v": st.just(1),
        "graph": good_names,
        "version": good_names,
        "status": st.sampled_from(["present", "candidate", "past"]),
        "reason": names,
        "forced": st.booleans(),
        "scores": st.none()
        | st.fixed_dictionaries({"slice": names, "margin": numbers, "candidate": numbers, "present": numbers}),
    }
)


@st.composite
def mutated(draw: st.DrawFn, base: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    message = dict(draw(base))
    for _ in range(draw(st.integers(0, 2))):
        key = draw(st.sampled_from([*message, "unheard-of", "s", "o"]))
        if draw(st.booleans()):
            message.pop(key, None)
        else:
            message[key] = draw(anything)
    return message


def said(message: Any) -> Any:
    """The message as it is after a journey."""
    return orjson.loads(orjson.dumps(message))


def codec_takes(message: Any) -> bool:
    data = orjson.dumps(message)
    try:
        check_event(data)
    except Unusable:
        return False
    return True


def schema_takes(message: Any, kinds: tuple[str, ...] = tuple(EVENTS)) -> bool:
    return any(VALIDATORS[kind].is_valid(message) for kind in kinds)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


def excused(message: dict[str, Any]) -> bool:
    """Refused by the codec for what a schema cannot say."""
    time = message.get("t")
    if isinstance(time, str) and not (message["kind"] == "query" and time == NEXT):
        try:
            parse_iso(time)
        except ValueError:
            return True
    return whole_with_a_fraction(message) or len(orjson.dumps(message)) > MAX_BYTES


def whole_with_a_fraction(message: Any) -> bool:
    return any(isinstance(leaf, float) and leaf.is_integer() for leaf in leaves(message))


# -- tests ----------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(mutated(facts | queries | ticks | models))
@example({"v": True, "kind": "tick", "t": 1})
@example({"v": 1, "kind": "query", "id": "1", "r": "r", "t": 1, "s": "a", "o": None})
@example({"v": 1, "kind": "query", "id": "1", "r": "r", "t": 1, "s": None, "o": None})
@example({"v": 1, "kind": "query", "id": "1", "r": "r", "t": 1, "s": "a", "o": "b"})
@example({"v": 1, "kind": "fact", "s": "a\n", "r": "r", "o": "b", "t": 1})
def test_the_schema_takes_an_event_exactly_when_the_codec_does(message: dict[str, Any]) -> None:
    message = said(message)
    if codec_takes(message):
        assert schema_takes(message)
    elif schema_takes(message):
        assert excused(message)


@settings(max_examples=200, deadline=None)
@given(mutated(predictions))
@example({"v": 1})
def test_the_schema_takes_a_prediction_exactly_when_the_codec_does(message: dict[str, Any]) -> None:
    message = said(message)
    try:
        decode_prediction(orjson.dumps(message))
    except Unusable:
        assert not schema_takes(message, ("prediction",)) or whole_with_a_fraction(message)
    else:
        assert schema_takes(message, ("prediction",))


@settings(max_examples=200, deadline=None)
@given(mutated(announcements))
@example({"v": 1})
@example({"v": 1, "graph": "g", "version": "1", "status": [], "reason": "", "forced": False, "scores": None})
def test_the_schema_takes_an_announcement_exactly_when_the_codec_does(message: dict[str, Any]) -> None:
    message = said(message)
    try:
        decode_announcement(orjson.dumps(message))
    except Unusable:
        assert not schema_takes(message, ("announcement",)) or whole_with_a_fraction(message)
    else:
        assert schema_takes(message, ("announcement",))


@pytest.mark.parametrize("verdict", [None, Verdict("all", 0.01, 0.25, None), Verdict("unknown", 0.0, 0.25, 0.5)])
def test_an_announcement_survives_its_journey_and_fits_its_schema(verdict: Verdict | None) -> None:
    announcement = Announcement("g", "1", "candidate", "worse", forced=True, verdict=verdict)
    assert decode_announcement(encode_announcement(announcement)) == announcement
    assert schema_takes(orjson.loads(encode_announcement(announcement)), ("announcement",))


def test_the_generated_messages_are_of_both_sorts() -> None:
    """Else the two tests above would say nothing."""
    seen: set[tuple[str, bool]] = set()

    @settings(max_examples=300, deadline=None, derandomize=True)  # the same messages in every run
    @given(mutated(facts | queries | ticks | models))
    def look(message: dict[str, Any]) -> None:
        seen.add((str(message.get("kind")), codec_takes(said(message))))

    look()
    assert {(kind, taken) for kind in EVENTS for taken in (True, False)} <= seen


def test_schema_and_codec_agree_on_every_character() -> None:
    schema = message_schemas()["fact"]["properties"]["s"]
    blank_free, control = re.compile(schema["pattern"]), re.compile(schema["not"]["pattern"])
    for code in (*range(0x20000), *range(0x20000, sys.maxunicode, 1_001)):
        character = chr(code)
        try:
            require_name("s", character)
            taken = True
        except Unusable:
            taken = False
        assert taken == bool(blank_free.search(character) and not control.search(character)), hex(code)


def test_the_committed_schemas_are_those_of_the_code() -> None:
    made = documents(Topics())
    assert sorted(made) == sorted(file.name for file in COMMITTED.iterdir()), REMEDY
    for name, document in made.items():
        assert json.loads((COMMITTED / name).read_bytes()) == document, REMEDY


@pytest.mark.parametrize("name", VALIDATORS)
def test_every_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(message_schemas()[name])


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi(Topics("other"))

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    found = set(references(document))
    assert found
    for reference in found:
        target: Any = document
        assert reference.startswith("#/")
        for step in reference[2:].split("/"):
            target = target[step]


def test_the_asyncapi_document_names_the_topics_and_the_headers_in_use() -> None:
    document, topics = asyncapi(Topics("other")), Topics("other")
    addresses = {channel["address"] for channel in document["channels"].values()}
    assert addresses == {topics.events, topics.predictions, topics.deadletter, topics.models}
    written = [name for name, _ in dead_letter_headers("late", "too late", topics.events, 0, 1, "g")]
    assert document["components"]["schemas"]["deadletterHeaders"]["required"] == written


def test_the_command_writes_what_it_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["adatkg", "schemas", "--out", str(tmp_path / "new"), "--json"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert not exit_.value.code
    printed = json.loads(capsys.readouterr().out)
    assert {file.name: json.loads(file.read_bytes()) for file in (tmp_path / "new").iterdir()} == printed
