"""A wire that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from adatkg.chaos.proxy import Proxy
from streams.embedded_broker import choose_port

HOST = "127.0.0.1"


@pytest.fixture
def wire() -> Iterator[Proxy]:
    """A proxy before a server that says everything again."""
    server = socket.create_server((HOST, 0))

    def echo(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(1000):
                connection.sendall(data)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    proxy = Proxy(choose_port(HOST), server.getsockname()[1])
    yield proxy
    proxy.close()
    server.close()


def _connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection((HOST, proxy.port), timeout=30)


def test_bytes_come_through(wire: Proxy) -> None:
    with _connect(wire) as connection:
        connection.sendall(b"hello")
        assert connection.recv(100) == b"hello"


def test_a_cut_breaks_what_is_there_and_what_is_new_until_it_is_mended(wire: Proxy) -> None:
    with _connect(wire) as before:
        before.sendall(b"hello")
        assert before.recv(100) == b"hello"
        wire.cut()
        with suppress(ConnectionError):
            assert before.recv(100) == b""
    with _connect(wire) as new, suppress(ConnectionError):
        assert new.recv(100) == b""
    wire.mend()
    test_bytes_come_through(wire)


def test_a_hushed_wire_keeps_what_was_sent_until_it_is_mended(wire: Proxy) -> None:
    with _connect(wire) as connection:
        connection.sendall(b"one")
        assert connection.recv(100) == b"one"
        wire.hush()
        connection.sendall(b"two")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(100)
        wire.mend()
        connection.settimeout(30)
        assert connection.recv(100) == b"two"
