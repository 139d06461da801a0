"""One broker for all processes that share the tests: started when the first of them wants it, ended after the last."""

from __future__ import annotations

import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import pytest

from streams.embedded_broker import Broker
from tests.support.class_archive import make_archive_meanwhile, use_archive


@contextmanager
def embedded() -> Iterator[str]:
    """Kafka on this machine, with its data in a folder that goes with it."""
    use_archive()
    # The folder is removed last, and may still be written to by a broker that was killed just now.
    with tempfile.TemporaryDirectory(prefix="adatkg-test-broker-", ignore_cleanup_errors=True) as folder:
        broker = Broker(Path(folder) / "broker", port=0)
        broker.start(timeout=180)
        try:
            yield broker.bootstrap
        finally:
            broker.kill()  # nobody wants its records any more


@contextmanager
def container() -> Iterator[str]:
    """Kafka in a container."""
    from tests.support.docker_engine import build_kafka_image, kafka_container, require_engine

    require_engine()
    with tempfile.TemporaryDirectory() as folder, kafka_container(build_kafka_image(Path(folder))) as address:
        yield address


# What ADATKG_TEST_BROKER may say; each gives the address.
BROKERS: dict[str, Callable[[], AbstractContextManager[str]]] = {"embedded": embedded, "container": container}


def chosen_broker() -> AbstractContextManager[str]:
    """One of the kind that ADATKG_TEST_BROKER says."""
    kind = os.environ.get("ADATKG_TEST_BROKER", "embedded")
    if kind not in BROKERS:
        pytest.exit(f"ADATKG_TEST_BROKER is {kind!r}: use one of {', '.join(BROKERS)}", returncode=2)
    return BROKERS[kind]()


class BrokerDesk:
    """Where the processes ask for the broker; it belongs to the process that outlives them, and so does the broker."""

    def __init__(self, start: Callable[[], AbstractContextManager[str]]) -> None:
        self._start, self._running = start, ExitStack()
        self._listener = Listener()  # a socket in a folder that is ours alone
        self.place = self._listener.address
        # One thread serves them one after the other: whoever asks while the broker starts waits for it too.
        threading.Thread(target=self._serve, name="broker desk", daemon=True).start()

    def close(self) -> None:
        """End the broker if anybody wanted one."""
        self._listener.close()
        self._running.close()

    def _serve(self) -> None:
        reply: tuple[str, str] | None = None
        while True:
            try:
                asking = self._listener.accept()
            except OSError:
                return  # closed
            reply = reply or self._begin()
            try:
                asking.send(reply)
            except OSError:
                pass  # it ended before its turn came
            finally:
                asking.close()

    def _begin(self) -> tuple[str, str]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # here nobody gathers what a client's import says
                address = self._running.enter_context(self._start())
                make_archive_meanwhile()  # for the others: this one is up, and so the jars are there
                return "runs", address
        except pytest.skip.Exception as error:
            return "skip", str(error)
        except (Exception, pytest.fail.Exception) as error:
            return "fail", str(error)


def ask_for_broker(place: Any) -> str:
    """The address from the desk at `place`; a broker that could not be started is told as its starter would."""
    with Client(place) as desk:
        outcome, text = desk.recv()
    if outcome == "skip":
        pytest.skip(text)
    if outcome == "fail":
        pytest.fail(f"no broker: {text}", pytrace=False)
    return str(text)
