"""Without a terminal, long work logs a line a minute: where it is, how much is done, and how long it will take."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from adatkg.console.logs import configure_logging
from adatkg.console.progress import ProgressLog, progress_bar
from adatkg_core.datasets import synthesize
from adatkg_core.text.encoder import HashEncoder
from tests.support.small_graph import small_config
from trainer import train

Capture = pytest.CaptureFixture[str]


class Clock:
    """Time that passes when the test says so, or by so much at every look."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 1_000.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture(autouse=True)
def logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ADATKG_LOG", "info")
    configure_logging()
    yield
    structlog.reset_defaults()


def lines(capsys: Capture) -> list[dict[str, Any]]:
    """What has been logged about progress since the last look."""
    logged = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in logged if line["event"] == "progress"]


def test_a_minute_of_work_is_one_line_and_less_is_none(capsys: Capture) -> None:
    clock = Clock()
    report = ProgressLog(clock)
    for second in range(1, 181):
        clock.now += 1
        report("evaluate test", 10 * second, 3_600)
        assert len(lines(capsys)) == (second % 60 == 0), second


def test_a_line_tells_the_share_that_is_done_and_the_time_left(capsys: Capture) -> None:
    clock = Clock()
    report = ProgressLog(clock)
    report("train", 0, 400)
    clock.now += 75
    report("train", 100, 400)
    (line,) = lines(capsys)
    assert (line["stage"], line["done"], line["total"]) == ("train", 100, 400)
    assert (line["share"], line["seconds_left"]) == (0.25, 225)


def test_a_stage_is_measured_from_its_own_beginning(capsys: Capture) -> None:
    clock = Clock()
    report = ProgressLog(clock)
    report("train", 100, 100)
    clock.now += 40
    report("validate", 0, 100)
    clock.now += 30
    report("validate", 50, 100)
    assert [(line["stage"], line["seconds_left"]) for line in lines(capsys)] == [("validate", 30)]
    report("validate", 100, 100)
    clock.now += 90
    report("validate", 0, 100)  # the same stage of the next epoch
    clock.now += 60
    report("validate", 10, 100)
    assert [line.get("seconds_left") for line in lines(capsys)] == [None, 540]


def test_of_what_nobody_knows_the_size_only_the_amount_is_told(capsys: Capture) -> None:
    report = ProgressLog(Clock(step=61))
    report("bytes fetched", 5_000, None)
    (line,) = lines(capsys)
    assert (line["done"], line["total"]) == (5_000, None) and not line.keys() & {"share", "seconds_left"}


def test_training_says_the_epoch_and_the_best_score_so_far(capsys: Capture, tmp_path: Path) -> None:
    config = small_config({"train.epochs": 2, "train.burn_in": 0.0})
    report = ProgressLog(Clock(step=61))
    run = train(synthesize(30, 4, 12, 8, seed=5), config, HashEncoder(24), tmp_path, report=report)
    told = lines(capsys)
    assert {(line["epoch"], line["epochs"], line["stage"]) for line in told} == {
        (epoch, 2, stage) for epoch in (1, 2) for stage in ("train", "validate")
    }
    curves = [json.loads(line) for line in (tmp_path / "curves.jsonl").read_text().splitlines()]
    assert run.epochs == 2 and all("best_score" not in line for line in told if line["epoch"] == 1)
    assert {line["best_score"] for line in told if line["epoch"] == 2} == {round(curves[0]["score"], 4)}


def test_where_there_is_no_terminal_commands_report_to_the_log() -> None:
    with progress_bar() as report:
        assert isinstance(report, ProgressLog)
