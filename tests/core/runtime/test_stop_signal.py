from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from adatkg_core.runtime import Stop, stop_on_signals

EVERY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def hears_the_terminal() -> Iterator[None]:
    """Also where whoever started the tests, `nohup` or a script's `&` for example, has what it says ignored."""
    usual: dict[int, Any] = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", EVERY)
def test_a_signal_asks_for_the_end_and_a_patient_process_hears_it_as_often_as_it_comes(number: signal.Signals) -> None:
    with stop_on_signals(EVERY, patient=True) as stop:
        assert not stop.wait(0)
        for _ in range(3):
            os.kill(os.getpid(), number)
        assert stop.wait(60) and stop.asked


def test_the_second_signal_ends_what_is_not_patient() -> None:
    with pytest.raises(KeyboardInterrupt), stop_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop.wait(60), "the second signal was swallowed"


def test_what_a_terminal_says_when_it_closes_stays_ignored_where_it_was() -> None:
    usual = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals(EVERY, patient=True) as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.wait(0.1)
    finally:
        signal.signal(signal.SIGHUP, usual)


def test_asking_more_often_than_anyone_can_count_does_no_harm() -> None:
    stop = Stop()
    for _ in range(1 << 17):
        stop.ask()
    assert stop.wait(0)
    stop.close()
