from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from adatkg.main import main
from adatkg_core.messages import encode_fact
from streams.dead_letters import DeadLetters, dead_letter_headers, open_outbox
from streams.dead_letters.retry import MAY_PASS
from streams.kafka import Connection, Topics
from tests.support.fake_graph import dead_letter, fresh_topics, records, send

FACT = encode_fact("Barack Obama", "Envy", "Angela Merkel", "2014-03-02")


class Command:
    """`adatkg deadletters` on this test's topics."""

    def __init__(self, bootstrap: str, topics: Topics, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self.bootstrap, self.topics, self._patch, self._capsys = bootstrap, topics, monkeypatch, capsys
        self.error = ""

    def run(self, *arguments: str) -> tuple[int, str]:
        reach = ("--bootstrap", self.bootstrap, "--topic-prefix", self.topics.prefix)
        self._patch.setattr("sys.argv", ["adatkg", "deadletters", *arguments, *reach])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = self._capsys.readouterr()
        self.error = captured.err
        return int(exit_.value.code or 0), captured.out

    def json(self, *arguments: str) -> Any:
        code, out = self.run(*arguments, "--json")
        assert code == 0, self.error
        return json.loads(out)

    def refused(self, *arguments: str) -> str:
        code, out = self.run(*arguments)
        assert (code, out) == (2, ""), self.error
        return self.error

    def listed(self, *arguments: str) -> list[str]:
        return [letter["id"] for letter in self.json("list", *arguments)["deadletters"]]

    def events(self) -> list[Any]:
        return [orjson.loads(record.value or b"") for record in records(self.bootstrap, self.topics.events)]


@pytest.fixture
def command(bootstrap: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """With a letter that may pass later, one that is trash, one of another graph and one that is no text."""
    topics = fresh_topics(bootstrap)
    letters = [
        dead_letter(topics, 10, "unknown-relation", FACT),
        dead_letter(topics, 11, "not-json", b"{[red]\x1b[2J"),
        dead_letter(topics, 12, "unknown-relation", FACT, "h"),
        dead_letter(topics, 13, "not-utf8", b"\xff\xfe"),
    ]
    send(bootstrap, topics.deadletter, letters)
    return Command(bootstrap, topics, monkeypatch, capsys)


def test_list_shows_all_and_counts_by_reason(command: Command) -> None:
    found = command.json("list")
    assert [letter["id"] for letter in found["deadletters"]] == ["0-0", "0-1", "0-2", "0-3"]
    assert found["by_reason"] == {"unknown-relation": 2, "not-json": 1, "not-utf8": 1}
    first = found["deadletters"][0]
    assert first["source"] == {"topic": command.topics.events, "partition": 3, "offset": 10}
    assert (first["graph"], first["detail"], first["bytes"]) == ("g", "unknown-relation, says the worker", len(FACT))
    assert command.listed("--graph", "h") == ["0-2"]
    assert command.listed("--reason", "not-utf8") == ["0-3"]
    assert command.listed("--reason", "late") == []
    code, out = command.run("list")
    assert code == 0
    assert "4 dead letters: 2 unknown-relation" in out


def test_show_gives_the_whole_of_a_letter(command: Command) -> None:
    shown = command.json("show", "0-0")
    assert (shown["key"], shown["encoding"], json.loads(shown["value"])) == ("g", "utf-8", json.loads(FACT))
    assert shown["headers"]["reason"] == "unknown-relation"
    assert (command.json("show", "0-3")["encoding"], command.json("show", "0-3")["value"]) == ("base64", "//4=")
    code, out = command.run("show", "0-1")
    assert code == 0
    assert "{[red]" in out
    assert "Put back a whole value with `--value`." in out
    assert "\x1b[2J" not in out
    assert "0-99: there is none of this id" in command.refused("show", "0-99")


def test_a_retried_letter_is_an_event_again_and_is_listed_no_more(command: Command) -> None:
    assert command.json("retry", "0-0") == {"retried": ["0-0"], "left": {}}
    (event,) = records(command.bootstrap, command.topics.events)
    assert (event.key, event.value, event.header("retry-of")) == (b"g", FACT, "0-0")
    assert command.listed() == ["0-1", "0-2", "0-3"]
    assert command.listed("--all") == ["0-0", "0-1", "0-2", "0-3"]
    assert "0-0: it was retried already; --again" in command.refused("retry", "0-0")
    assert command.json("retry", "0-0", "--again")["retried"] == ["0-0"]
    assert len(command.events()) == 2
    assert command.json("show", "0-0")["retried"] == 2


def test_trash_goes_back_only_when_it_is_mended(command: Command, tmp_path: Any) -> None:
    assert "0-1: the message is not JSON" in command.refused("retry", "0-1")
    assert "0-1: not a JSON object" in command.refused("retry", "0-1", "--set", "r=Consult")
    assert "0-1: o is missing" in command.refused(
        "retry", "0-1", "--value", '{"v":1,"kind":"fact","s":"a","r":"b","t":1}'
    )
    assert "neither a whole tick nor an ISO time" in command.refused(
        "retry", "0-1", "--value", encode_fact("a", "b", "c", "soon").decode()
    )
    assert "0-0: o is 5: it must be a string" in command.refused("retry", "0-0", "--set", "o=5")
    assert "exactly one ID" in command.refused("retry", "0-0", "0-1", "--value", "{}")
    assert "one of --value" in command.refused("retry", "0-0", "--value", "{}", "--set", "r=b")
    assert "field=value" in command.refused("retry", "0-0", "--set", "r")
    assert "cannot be read" in command.refused("retry", "0-0", "--value-file", str(tmp_path / "nothing"))
    assert command.events() == []
    (tmp_path / "mended.json").write_bytes(encode_fact("a", "b", "c", 1))
    assert command.json("retry", "0-1", "--value-file", str(tmp_path / "mended.json"))["retried"] == ["0-1"]
    assert command.json("retry", "0-0", "--set", "r=Consult", "--set", "t=7", "--set", 'o="5"')["retried"] == ["0-0"]
    assert command.events() == [
        {"v": 1, "kind": "fact", "s": "a", "r": "b", "o": "c", "t": 1},
        {"v": 1, "kind": "fact", "s": "Barack Obama", "r": "Consult", "o": "5", "t": 7},
    ]


def test_with_ids_all_go_back_or_none_and_with_a_filter_the_rest_is_left(command: Command) -> None:
    assert "0-1: the message is not JSON" in command.refused("retry", "0-0", "0-1")
    assert command.events() == []
    assert "say which" in command.refused("retry")
    assert "say which" in command.refused("retry", "0-0", "--graph", "g")
    result = command.json("retry", "--graph", "g")
    assert result["retried"] == ["0-0"]
    assert sorted(result["left"]) == ["0-1", "0-3"]
    assert command.json("retry", "--reason", "unknown-relation", "--set", "r=Consult")["retried"] == ["0-2"]
    assert command.json("retry", "--reason", "unknown-relation") == {"retried": [], "left": {}}
    assert {record.key for record in records(command.bootstrap, command.topics.events)} == {b"g", b"h"}
    assert command.listed() == ["0-1", "0-3"]


def test_a_kill_between_event_and_mark_loses_nothing(command: Command) -> None:
    connection = Connection(command.bootstrap)
    box = DeadLetters(connection, command.topics)
    with open_outbox(connection, command.topics) as outbox:
        letter = next(box.with_values(box.read()[:1]))
        outbox.put_back([(letter, FACT)])
    assert "0-0" in command.listed()
    assert command.json("retry", "0-0")["retried"] == ["0-0"]
    assert len(command.events()) == 2
    assert "0-0" not in command.listed()


def test_letters_without_a_graph_or_without_headers_are_listed_and_not_retried(command: Command) -> None:
    send(
        command.bootstrap,
        command.topics.deadletter,
        [
            (None, FACT, dead_letter_headers("no-graph", "no key", command.topics.events, 0, 0, "")),
            (b"g", FACT, [("reason", b"\xff"), ("partition", b"x")]),
            (b"g", None, ()),
        ],
    )
    *_, keyless, odd, bare = command.json("list")["deadletters"]
    assert (keyless["reason"], odd["reason"], odd["source"], bare["reason"]) == ("no-graph", "\ufffd", None, "unknown")
    assert "0-4: the message has no key" in command.refused("retry", "0-4")
    assert "0-6: the message is empty" in command.refused("retry", "0-6")
    assert command.json("show", "0-6")["value"] == ""


def test_what_may_pass_later_is_put_back_as_it_came(command: Command) -> None:
    letters = [dead_letter(command.topics, 20, reason, FACT) for reason in sorted(MAY_PASS)]
    send(command.bootstrap, command.topics.deadletter, letters)
    ids = [f"0-{4 + i}" for i in range(len(letters))]
    assert command.json("retry", *ids)["retried"] == ids


def test_headers_never_fail_whatever_a_detail_quotes() -> None:
    headers = dict(dead_letter_headers("bad-name", "s is '\ud800'", "adatkg.events", 0, 1, "g"))
    assert headers["detail"].decode() == "s is '?'"
