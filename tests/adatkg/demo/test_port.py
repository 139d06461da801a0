from __future__ import annotations

import socket
from pathlib import Path

import pytest

from adatkg.demo.port import Port
from tests.support.running_system import free_port

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADATKG_CACHE", str(tmp_path))


def test_demonstrations_that_begin_together_get_ports_of_their_own() -> None:
    wanted = free_port()
    first, second = Port(HOST, wanted), Port(HOST, wanted)
    assert first.number == wanted
    assert second.number not in (0, wanted)
    first.close()
    third = Port(HOST, wanted)
    assert third.number == wanted
    third.close()
    second.close()


def test_a_port_that_someone_listens_on_is_left_to_them() -> None:
    with socket.create_server((HOST, 0)) as server:
        taken = server.getsockname()[1]
        assert Port(HOST, taken).number not in (0, taken)


def test_any_port_will_do_where_none_is_wanted() -> None:
    assert Port(HOST, 0).number > 0
