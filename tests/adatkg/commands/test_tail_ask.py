from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adatkg.main import main
from streams.kafka import Topics
from tests.support.fake_graph import answering, fresh_topics, prediction, question, send

Capture = pytest.CaptureFixture[str]
ADATKG = (sys.executable, "-m", "adatkg")


@pytest.fixture
def topics(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Those of the commands of this test, by the environment."""
    topics = fresh_topics(bootstrap)
    monkeypatch.setenv("ADATKG_BOOTSTRAP", bootstrap)
    monkeypatch.setenv("ADATKG_TOPIC_PREFIX", topics.prefix)
    return topics


@pytest.fixture
def predicted(bootstrap: str, topics: Topics) -> Topics:
    """With five predictions, one of them late and one of them twice."""
    bodies = [prediction(question(), "g", 3, offset, late=offset == 1) for offset in (0, 1, 1, 2, 3, 4)]
    send(bootstrap, topics.predictions, [(b"g", body, ()) for body in bodies])
    return topics


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["adatkg", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def test_tail_stops_after_count_and_prints_each_message_once(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, predicted: Topics
) -> None:
    assert run(monkeypatch, "tail", "g", "--from-beginning", "--count", "4", "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["3-0", "3-1", "3-2", "3-3"]
    assert json.loads(lines[0]) == json.loads(prediction(question(), "g", 3, 0))


def test_tail_shows_what_was_asked_the_best_three_rank_and_flags(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, predicted: Topics
) -> None:
    assert run(monkeypatch, "tail", "g", "--from-beginning", "--count", "2") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        "2014-01-08  Barack Obama | Consult | ?  →  Angela Merkel 50.0%, China 25.0%, [red]Iran 16.7%"
        "  ·  rank of Angela Merkel: 1  ·  cold start"
    )
    assert second.endswith("·  late  ·  cold start")
    assert run(monkeypatch, "tail", "g", "--from-beginning", "--count", "1", "--ticks") == 0
    assert capsys.readouterr().out.startswith("7  Barack Obama")


def test_tail_shows_what_a_prediction_without_a_calendar_or_from_before_it_said_its_times_has(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, bootstrap: str, topics: Topics
) -> None:
    old = json.loads(prediction(question(), "g", 3, 1))
    for key in ("tick", "time", "as_of_time"):
        del old[key]
    bodies = [prediction(question(), "g", 3, 0, clock=None), json.dumps(old).encode()]
    send(bootstrap, topics.predictions, [(b"g", body, ()) for body in bodies])
    assert run(monkeypatch, "tail", "g", "--from-beginning", "--count", "2") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["7", "next"]


def test_tail_fails_when_nothing_more_comes(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, predicted: Topics
) -> None:
    assert run(monkeypatch, "tail", "g", "--from-beginning", "--count", "9", "--timeout", "1", "--json") == 1
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 5
    assert "g: no prediction came for 1 s" in captured.err


def test_tail_ends_quietly_by_ctrl_c(predicted: Topics) -> None:
    process = subprocess.Popen(
        [*ADATKG, "tail", "g", "--from-beginning", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert json.loads(process.stdout.readline())["id"] == "3-0"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, b"")


def test_tail_ends_quietly_when_its_reader_has_enough(bootstrap: str, predicted: Topics) -> None:
    process = subprocess.Popen(
        [*ADATKG, "tail", "g", "--from-beginning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()
    send(bootstrap, predicted.predictions, [(b"g", prediction(question(), "g", 3, 9), ())])
    assert process.wait(120) == 0
    assert process.stderr.read() == b""


def test_ask_prints_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, bootstrap: str, topics: Topics
) -> None:
    with answering(bootstrap, topics):
        assert run(monkeypatch, "ask", "g", "Barack Obama", "Consult") == 0
        out = capsys.readouterr().out
        assert [line.split()[:2] for line in out.splitlines()[2:5]] == [
            ["1", "Angela"],
            ["2", "China"],
            ["3", "[red]Iran"],
        ]
        assert "2014-01-08: Barack Obama | Consult | ?" in out
        assert "as of 2014-01-08, model model-1, gate 0.250, 3 interactions, cold start" in out
        assert run(monkeypatch, "ask", "g", "Barack Obama", "Consult", "--ticks") == 0
        out = capsys.readouterr().out
        assert "8: Barack Obama" in out and "as of 8, model" in out
        assert run(monkeypatch, "ask", "g", "?", "Praise", "China", "--time", "2014-03-02", "--k", "3", "--json") == 0
        asked = json.loads(capsys.readouterr().out)["query"]
        assert {key: asked[key] for key in asked if key != "id"} == {
            "r": "Praise",
            "o": "China",
            "t": "2014-03-02",
            "k": 3,
        }
        assert run(monkeypatch, "ask", "g", "Barack Obama", "Consult", "--time", "12", "--json") == 0
        assert json.loads(capsys.readouterr().out)["query"]["t"] == 12
        assert run(monkeypatch, "ask", "g", "Barack Obama", "consutl") == 2
        assert "did you mean 'Consult'?" in capsys.readouterr().err


def test_ask_says_when_no_worker_answers(monkeypatch: pytest.MonkeyPatch, capsys: Capture, topics: Topics) -> None:
    assert run(monkeypatch, "ask", "g", "Barack Obama", "Consult", "--timeout", "0.5") == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: g: no answer within 0.5 s; is a worker running?")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("words", [("?", "Consult"), ("?", "Consult", "?"), ("Barack Obama", "Consult", "China")])
def test_ask_asks_for_exactly_one(monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: tuple[str, ...]) -> None:
    assert run(monkeypatch, "ask", "g", *words) == 2
    assert "ask for one" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("tail", "g"), ("ask", "g", "a", "b")])
def test_without_a_broker_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: tuple[str, ...]
) -> None:
    assert run(monkeypatch, *command, "--bootstrap", "127.0.0.1:1") == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: no Kafka broker answers at 127.0.0.1:1")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "command", [("tail",), ("ask",), ("schemas",), *(("deadletters", c) for c in ("list", "show", "retry"))]
)
def test_every_help_has_an_example(monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: tuple[str, ...]) -> None:
    assert run(monkeypatch, *command, "--help") == 0
    assert f"Example: adatkg {' '.join(command)}" in capsys.readouterr().out


def test_ask_imports_nothing_that_only_workers_and_trainers_need(bootstrap: str, topics: Topics) -> None:
    heavy = ("torch", "faust", "numpy", "transformers", "kafka", "fsspec", "prometheus_client")
    program = (
        "import atexit, sys; from adatkg.main import main;"
        f"atexit.register(lambda: print([m for m in {heavy} if m in sys.modules], file=sys.stderr));"
        "sys.argv = ['adatkg', 'ask', 'g', 'Barack Obama', 'Consult', '--json']; main()"
    )
    with answering(bootstrap, topics):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["top"][0]["entity"] == "Angela Merkel"
    assert done.stderr.strip() == "[]"


def test_help_does_not_import_what_commands_need(tmp_path: Path) -> None:
    heavy = ("aiokafka", "kafka", "torch", "faust", "numpy")
    seen = f"import sys, adatkg.main; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", seen], env=os.environ, text=True).strip() == "[]"
