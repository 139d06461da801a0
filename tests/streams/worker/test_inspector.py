"""What pages and metrics see of the graphs that are here, and of those that are not."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from streams.worker import DeviceThread, Inspector
from tests.support.fake_worker import GRAPH, RELATION, SUBJECT, fact, host_of, query, settings_with_model


def test_a_graph_shows_its_status_names_and_entities_and_one_that_is_elsewhere_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        device, host = DeviceThread(), host_of(settings_with_model(tmp_path))
        inspector = Inspector(host, device)
        assert await inspector.status() == {}
        await device.run(host.process, [fact(0), fact(1), query(2)])
        status, seconds = await inspector.timed_status()
        assert status.keys() == {"g"} and 0 < seconds < 10
        seen = status["g"]
        assert (seen.version, seen.watermark, seen.entities) == ("v1", 1, 3)
        assert (seen.relations, seen.unsettled) == (len(GRAPH.relations), 0) and seen.size > 0
        names = await inspector.names("g")
        assert names is not None and names[0][0] == SUBJECT and RELATION in names[1]
        known = await inspector.entity("g", SUBJECT)
        assert known is not None and known[0].known and known[0].interactions == 2
        unseen = await inspector.entity("g", "nobody")
        assert unseen is not None and not unseen[0].known
        assert await inspector.names("elsewhere") is None and await inspector.entity("elsewhere", SUBJECT) is None
        device.close()

    asyncio.run(scenario())


def test_everything_on_the_device_happens_on_one_thread_and_an_error_comes_back() -> None:
    async def scenario() -> None:
        device = DeviceThread()
        threads = await asyncio.gather(*(device.run(threading.get_ident) for _ in range(20)))
        assert set(threads) != {threading.get_ident()} and len(set(threads)) == 1
        with pytest.raises(ValueError, match="nine"):
            await device.run(int, "nine")
        assert await device.run(int, "11", base=2) == 3
        device.close()

    asyncio.run(scenario())
