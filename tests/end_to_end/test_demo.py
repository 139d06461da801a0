"""The demonstration as a user starts it, from nothing; small, but every part of it is the real one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from adatkg.demo.conductor import conduct
from adatkg.demo.observer import Watch
from adatkg.demo.plan import Plan
from adatkg.demo.system import System
from adatkg_core.datasets import load_dataset
from adatkg_core.runtime import Stop
from streams.embedded_broker import Broker
from streams.kafka import Connection, Topics, open_log
from tests.support.asking import ask_in_every_form
from tests.support.preloaded import Preloaded

PATIENCE = 280.0  # seconds for a run, on a machine that does other things too
FIRST, LAST = 8, 15
# Two passes of small steps leave a first model that more facts improve for certain.
SMALL = ("--from", str(FIRST), "--to", str(LAST), "--config", "tiny", "--port", "0")


@dataclass
class Demo:
    """A demonstration that runs, known by a variable that all its processes inherit."""

    process: subprocess.Popen[bytes]
    mark: str
    log: Path

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = self.log.read_bytes().splitlines()
        found = [orjson.loads(line) for line in lines if line.startswith(b"{")]
        return [line for line in found if line["event"] == event]

    def outcome(self) -> dict[str, Any]:
        """What it printed, once it has ended as it should."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, self.log.read_text()[-3000:]
        assert out.count(b"\n") == 1
        printed: dict[str, Any] = orjson.loads(out)
        assert printed.keys() == {"predictions", "seconds_to_first_prediction", "swaps", "mrr"}
        return printed

    def assert_nothing_is_left(self, *addresses: str) -> None:
        """No process and no open port: those it told in its log, and these."""
        assert processes_with(self.mark) == []
        told = [begun[name] for begun in self.said("demo_begins") for name in ("bootstrap", "dashboard")]
        for address in (*addresses, *told):
            host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
            with socket.socket() as probe:
                assert probe.connect_ex((host, int(port))) != 0, f"{address} is still open"


def start(folder: Path, *arguments: str, terminal: int | None = None) -> Demo:
    """Headless, or with its display on a terminal."""
    mark, log = uuid.uuid4().hex, folder / "demo.log"
    (folder / "tmp").mkdir(exist_ok=True)
    environment = os.environ | {"DEMO_MARK": mark, "TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-m", "adatkg", "demo", "--json", *arguments]
    command += ["--headless"] if terminal is None else []
    with log.open("wb") as file:
        errors = file if terminal is None else terminal
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, preexec_fn=_hear_hangups
        )
    return Demo(process, mark, log)


def _hear_hangups() -> None:
    """Also where the tests were started by nohup, whose ears are inherited."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def processes_with(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended meanwhile, or is not ours
    return found


def until(demo: Demo, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert demo.process.poll() is None, demo.log.read_text()[-3000:]
        assert time.monotonic() < deadline, demo.log.read_text()[-3000:]
        time.sleep(0.1)


def questions(first: int, last: int) -> int:
    times = load_dataset("icews14").facts[:, 3]
    return 2 * int(((times >= first) & (times <= last)).sum())


def assert_timed(answers: list[dict[str, Any]]) -> None:
    """Each says the tick that it is about, whatever was asked, and the time in the calendar."""
    clock = load_dataset("icews14").clock
    assert clock is not None
    for answer in answers:
        asked = answer["query"]["t"]
        assert answer["tick"] == (answer["as_of"] if asked == "next" else 500)
        assert (answer["time"], answer["as_of_time"]) == (clock.iso(answer["tick"]), clock.iso(answer["as_of"]))


def test_questions_are_shown_on_a_terminal_and_after_ctrl_c_it_goes_on_from_its_folder_to_its_end_and_swaps_a_model_in(
    tmp_path: Path,
) -> None:
    """From nothing; also what others ask meanwhile is answered, and in the end all is."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    arguments = (*SMALL, "--folder", str(tmp_path / "kept"))
    demo = start(tmp_path, *arguments, "--speed", "0.05", "--no-browser", terminal=theirs)
    os.close(theirs)
    screen = Screen(ours, demo.log)
    until(demo, lambda: "latest" in screen.text())
    said = screen.text()
    bootstrap, dashboard = (
        re.search(words, said) for words in (r"export ADATKG_BOOTSTRAP=(\S+)", r"Dashboard\s+(http://\S+)")
    )
    assert bootstrap is not None and dashboard is not None
    answers = ask_in_every_form(bootstrap[1], dashboard[1])
    assert_timed(answers)
    until(demo, lambda: "2015-05-15: Police (Kenya) | Make statement | ?" in screen.text())
    demo.process.send_signal(signal.SIGINT)
    assert len(answers) <= demo.outcome()["predictions"] < questions(FIRST, LAST)
    assert "mishap" not in screen.text()
    demo.assert_nothing_is_left(bootstrap[1], dashboard[1])

    again = start(tmp_path, *arguments, "--speed", "0.2", "--every", "500")
    outcome = again.outcome()
    (begun,) = again.said("demo_begins")
    assert begun["second_terminal"] == f"export ADATKG_BOOTSTRAP={begun['bootstrap']}"
    assert again.said("demo_mishap") == []
    assert outcome["predictions"] > 0 and outcome["seconds_to_first_prediction"] > 0
    assert outcome["swaps"] >= 1
    assert 0 < outcome["mrr"] <= 1
    again.assert_nothing_is_left()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert len(ids(tmp_path / "kept" / "broker")) == questions(FIRST, LAST) + len(answers)


def ids(broker: Path) -> set[str]:
    """Of the queries with an answer in the log."""
    with (
        Broker(broker, port=0) as kafka,
        open_log(Connection(kafka.bootstrap), Topics().predictions) as log,
    ):
        records = [record for number in log.partitions() for record in log.read(number, *log.bounds(number))]
    return {orjson.loads(record.value or b"")["query"]["id"] for record in records}


class Screen:
    """All that a program writes to a terminal, gathered in a file."""

    def __init__(self, terminal: int, file: Path) -> None:
        self._file = file
        self._thread = threading.Thread(target=self._gather, args=(terminal,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was written so far, without what steers the terminal."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._file.read_text(errors="replace"))

    def _gather(self, terminal: int) -> None:
        with (
            self._file.open("ab", buffering=0) as file,
            contextlib.suppress(OSError),
        ):  # at the end, the other side is gone
            while data := os.read(terminal, 65_536):
                file.write(data)
        os.close(terminal)


class Absent:
    """An audience to which nothing can be shown."""

    level = "warning"

    def __init__(self, stop: Stop) -> None:
        self._stop, self.shown = stop, 0

    def begin(self, system: System) -> None:
        raise OSError("no terminal")

    def welcome(self, system: System) -> None:
        raise OSError("no terminal")

    def show(self, system: System, watch: Watch) -> None:
        self.shown += 1
        if watch.predictions:
            self._stop.ask()
        raise TypeError("no picture")

    def farewell(self) -> None:
        raise OSError("no terminal")


def test_an_audience_to_which_nothing_can_be_shown_does_not_end_it(tmp_path: Path) -> None:
    stop = Stop()
    audience = Absent(stop)
    plan = Plan(tmp_path / "demo", FIRST, LAST, 0.5, 10_000, "tiny", 0, PATIENCE, True)
    with capture_logs() as logs:
        outcome = conduct(plan, load_dataset("icews14"), stop, audience)
    assert outcome.predictions > 0 and audience.shown > 1
    told = [line["doing"] for line in logs if line["event"] == "demo_mishap"]
    assert told == ["begin", "welcome", "show", "farewell"]


def test_a_terminal_that_closes_while_the_first_model_learns_ends_everything(tmp_path: Path) -> None:
    demo = start(tmp_path, *SMALL)
    until(demo, lambda: len(processes_with(demo.mark)) > 1)
    demo.process.send_signal(signal.SIGHUP)
    assert demo.outcome() == {"predictions": 0, "seconds_to_first_prediction": None, "swaps": 0, "mrr": None}
    demo.assert_nothing_is_left()
    assert list((tmp_path / "tmp").iterdir()) == []


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "a folder that cannot be": (("--folder", "{}/file/demo"), "give a --folder that can be written to"),
    "a folder of others": (("--folder", "{}"), "holds other things"),
    "a folder of another demonstration": (("--folder", "{}/other"), "--from 3, --to 5"),
    "no past": (("--from", "2014-01-01"), "nothing to publish"),
    "an end before the beginning": (("--from", "40", "--to", "30"), "--from 2014-02-09 is after --to 2014-01-30"),
    "a pace of words": (("--speed", "fast"), "--speed fast"),
    "no such configuration": (("--config", "nowhere.toml"), "nowhere.toml"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_input_is_exit_code_2_with_the_remedy_and_nothing_runs_on(tmp_path: Path, mistake: str) -> None:
    arguments, remedy = WRONG[mistake]
    (tmp_path / "file").write_text("important")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "demo.json").write_text('{"from": 3, "to": 5, "config": "demo"}')
    mark, out, log = uuid.uuid4().hex, tmp_path / "out", tmp_path / "log"
    words = ("demo", "--json", "--headless", *(argument.format(tmp_path) for argument in arguments))
    process = Preloaded(*words, env=os.environ | {"DEMO_MARK": mark}, output=out, errors=log)
    assert (process.wait(PATIENCE), out.read_bytes()) == (2, b"")
    assert remedy in log.read_text() and "Traceback" not in log.read_text()
    assert processes_with(mark) == []
    assert (tmp_path / "file").read_text() == "important"


def test_too_little_time_is_a_failure_that_says_so(tmp_path: Path) -> None:
    demo = start(tmp_path, *SMALL, "--seconds", "1")
    out, _ = demo.process.communicate(timeout=PATIENCE)
    assert (demo.process.returncode, out) == (1, b"")
    assert "nothing was predicted within 1 s" in demo.log.read_text()
    demo.assert_nothing_is_left()
