"""How a process that runs for long is asked to end: by a signal, at a moment of its own choice."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

USUAL = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether a signal asked for the end; waiting for one costs nothing and ends at once."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self.asked = False

    def ask(self) -> None:
        """Safe inside a signal handler, which may interrupt anything."""
        self.asked = True
        with suppress(BlockingIOError):  # the pipe is full of earlier ones
            os.write(self._write, b"x")

    def wait(self, seconds: float) -> bool:
        """Whether it was asked for before the time was up."""
        return self.asked or bool(select.select([self._read], [], [], max(0.0, seconds))[0])

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._read)
        os.close(self._write)


@contextmanager
def stop_on_signals(signals: Sequence[signal.Signals] = USUAL, *, patient: bool = False) -> Iterator[Stop]:
    """The first signal asks for a clean stop, the second one ends the process as usual; a patient one never does.

    A signal that whoever started the process wants ignored, as `nohup` does, stays ignored if it is none of the usual.
    """
    stop = Stop()
    before = {number: signal.getsignal(number) for number in signals}
    before = {number: handler for number, handler in before.items() if number in USUAL or handler != signal.SIG_IGN}

    def handle(number: int, frame: FrameType | None) -> None:
        if not patient:
            signal.signal(number, before[signal.Signals(number)])
        stop.ask()

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()
