"""`make setup` takes the build of torch that suits the machine, says why, and has another where that cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.packaging import install as setup
from tests.packaging.build import ROOT

Capture = pytest.CaptureFixture[str]
CPU, ORDINARY = ["--torch-backend", "cpu"], list[str]()


class Installing:
    """Stands in for uv, which would fetch gigabytes: remembers what it was asked for and fails as told."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[list[str]] = []
        self.failures = failures

    def __call__(self, options: Sequence[str]) -> int:
        self.asked.append(list(options))
        return 1 if len(self.asked) <= self.failures else 0


class _Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on stderr, which the tests read."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An index of small builds that answers."""
    with HTTPServer(("127.0.0.1", 0), _Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(setup, "PYTORCH", f"http://127.0.0.1:{server.server_port}/")
        yield
        server.shutdown()


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "PYTORCH", "http://127.0.0.1:1/")  # nobody listens there


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where a driver would be."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(setup, "DRIVER", tmp_path / "driver")
    return tmp_path / "driver"


@pytest.mark.usefixtures("index", "no_driver")
def test_without_a_driver_the_small_build_is_taken_where_its_index_answers(capsys: Capture) -> None:
    uv = Installing()
    assert setup.install("auto", uv) == 0
    assert uv.asked == [CPU]
    assert "no NVIDIA driver" in capsys.readouterr().err


@pytest.mark.usefixtures("no_index", "no_driver")
def test_without_a_driver_and_without_that_index_it_is_the_ordinary_build(capsys: Capture) -> None:
    uv = Installing()
    assert setup.install("auto", uv) == 0
    assert uv.asked == [ORDINARY]
    assert "out of reach" in capsys.readouterr().err


@pytest.mark.usefixtures("index")
def test_with_a_driver_it_is_the_ordinary_build(no_driver: Path, capsys: Capture) -> None:
    no_driver.touch()
    uv = Installing()
    assert setup.install("auto", uv) == 0
    assert uv.asked == [ORDINARY]
    assert "there is an NVIDIA driver" in capsys.readouterr().err


@pytest.mark.usefixtures("index", "no_driver")
def test_who_asks_for_a_build_gets_it_whatever_the_machine(capsys: Capture) -> None:
    for asked, options in (("cpu", CPU), ("cuda", ORDINARY)):
        uv = Installing()
        assert setup.install(asked, uv) == 0
        assert uv.asked == [options]
        assert "as asked" in capsys.readouterr().err


def test_a_small_build_that_cannot_be_had_is_replaced_by_the_ordinary_one_with_a_line_that_says_so(
    capsys: Capture,
) -> None:
    uv = Installing(failures=1)
    assert setup.install("cpu", uv) == 0
    assert uv.asked == [CPU, ORDINARY]
    assert "taking the ordinary one" in capsys.readouterr().err
    assert setup.install("cpu", Installing(failures=2)) == 1


def test_setup_runs_before_anything_is_installed() -> None:
    # -S: no site-packages, so that only the standard library is there.
    command = [sys.executable, "-S", str(ROOT / "tests" / "packaging" / "install.py"), "--help"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    shown = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True)
    assert shown.returncode == 0 and "--torch" in shown.stdout, shown.stderr
