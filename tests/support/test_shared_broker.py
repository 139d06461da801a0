"""The broker that test processes share is started once, when one of them asks, and ended with them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager

import pytest

from tests.support.shared_broker import BrokerDesk, ask_for_broker


def test_all_who_ask_get_one_broker_that_lives_until_the_desk_is_closed() -> None:
    steps: list[str] = []

    @contextmanager
    def start() -> Iterator[str]:
        steps.append("started")
        yield "127.0.0.1:9"
        steps.append("ended")

    desk = BrokerDesk(start)
    assert steps == [], "a run without tests of brokers starts none"
    with ThreadPoolExecutor(4) as processes:
        assert set(processes.map(ask_for_broker, [desk.place] * 12)) == {"127.0.0.1:9"}
    assert steps == ["started"]
    desk.close()
    assert steps == ["started", "ended"]


@pytest.mark.parametrize("outcome", [pytest.skip.Exception, pytest.fail.Exception, OSError])
def test_why_there_is_no_broker_is_told_to_each(outcome: type[BaseException]) -> None:
    def start() -> AbstractContextManager[str]:
        raise outcome("no Docker engine")

    wanted = pytest.skip.Exception if outcome is pytest.skip.Exception else pytest.fail.Exception
    with closing(BrokerDesk(start)) as desk:
        for _ in range(2):
            with pytest.raises(wanted, match="no Docker engine"):
                ask_for_broker(desk.place)
