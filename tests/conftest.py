"""What tests of every package share."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before torch is imported by any test; see adatkg. Tests run beside each other, so each has one thread.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from streams.embedded_broker import Broker
from tests.support.class_archive import use_archive
from tests.support.shared_broker import BrokerDesk, ask_for_broker, chosen_broker
from tests.support.slow_tests import mark_slow

DESK = pytest.StashKey[BrokerDesk]()
# An example may be the first that calls compiled code, and the machine does other things too.
settings.register_profile("patient", parent=settings(), deadline=None)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """What `make test-fast` leaves out has a mark."""
    config.addinivalue_line("markers", "slow: wants a broker, a container or a browser, or takes long; given by itself")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where several processes share the tests."""
    from tests.support.scheduling import Sharing

    config.option.loadscopereorder = False
    return Sharing(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """They share one broker too."""
    config = node.config
    if DESK not in config.stash:
        config.stash[DESK] = BrokerDesk(chosen_broker)
        config.add_cleanup(config.stash[DESK].close)
    node.workerinput["broker_desk"] = config.stash[DESK].place


@pytest.hookimpl(tryfirst=True)  # before those are left out that `-m` does not name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long ones come first where several processes share them, and can be left out."""
    mark_slow(items)
    if hasattr(config, "workerinput"):
        from tests.support.scheduling import by_duration

        items[:] = by_duration(items)


def pytest_collection_finish() -> None:
    """What is imported and collected stays until the end, so the garbage collector need not look through it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before fixtures that start a broker
def pytest_runtest_setup() -> None:
    """Kafka's classes may have been written by now."""
    use_archive()


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the published benchmark files, for those who have them."""
    folder = os.environ.get("ADATKG_DATA")
    if not folder:
        pytest.skip("ADATKG_DATA is not set to a folder with the benchmark files")
    return Path(folder)


@pytest.fixture(scope="session")
def bootstrap(pytestconfig: pytest.Config) -> Iterator[str]:
    """Address of a broker for all tests: that of `ADATKG_BOOTSTRAP`, or one that lives as long as they run."""
    if given := os.environ.get("ADATKG_BOOTSTRAP"):
        yield given
    elif hasattr(pytestconfig, "workerinput"):
        yield ask_for_broker(pytestconfig.workerinput["broker_desk"])
    else:
        with chosen_broker() as address:
            yield address


@pytest.fixture
def private_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Broker]]:
    """Makes brokers that a test has for itself, not yet started; it may kill them, and none outlives it."""
    made: list[Broker] = []

    def make() -> Broker:
        made.append(Broker(tmp_path_factory.mktemp("private-broker"), port=0))
        return made[-1]

    yield make
    for broker in made:
        broker.kill()
