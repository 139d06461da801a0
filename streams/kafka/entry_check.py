"""Why the brokers do not let us in: one attempt at each address, and what its end means.

The client libraries try again until their time is up and then say only that it is; a wrong password stays wrong.
"""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aiokafka.conn import create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from adatkg_core.errors import AdatkgError, InputError
from streams.kafka.connection import PROTOCOLS, Connection

_WITHIN_MS = 5_000
_AGAIN = 1.0  # seconds until a connection that was closed is tried once more: the broker may just have been going


@dataclass(frozen=True)
class Entry:
    """The broker that let us in, or what keeps us out, with the remedy; neither if none answers."""

    server: str | None = None
    problem: AdatkgError | None = None


def check_entry(connection: Connection) -> str | None:
    """Raise if the brokers answer but will not let us in; returns the one that did, and None if none answers."""
    with ThreadPoolExecutor(1, "entry") as pool:  # this thread may have an event loop of its own
        entry = pool.submit(lambda: asyncio.run(try_entry(connection))).result()
    if entry.problem is not None:
        raise entry.problem
    return entry.server


async def try_entry(connection: Connection) -> Entry:
    """Try each broker in turn, and once more after a moment if one hung up."""
    for pause in (_AGAIN, None):
        problems = []
        for server in connection.servers:
            try:
                await _enter(connection, server)
                return Entry(server)
            except (OSError, KafkaError, TimeoutError) as error:
                problems.append(_meaning(connection, server, error))
        found = next(filter(None, problems), None)
        if found is None or isinstance(found, InputError) or pause is None:
            break
        await asyncio.sleep(pause)
    return Entry(problem=found)


async def _enter(connection: Connection, server: str) -> None:
    """Connect, say who we are, and ask something that a broker answers only to those whom it let in."""
    options = connection.client()
    del options["bootstrap_servers"]
    host, _, port = server.rpartition(":")
    opened = await create_conn(host.strip("[]"), int(port), request_timeout_ms=_WITHIN_MS, **options)
    try:
        await opened.send(MetadataRequest([]))
    finally:
        opened.close()


def _meaning(connection: Connection, server: str, error: Exception) -> AdatkgError | None:
    """An InputError is certain; a connection that was closed may also be due to a broker that goes."""
    cause = error.__cause__ or error
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = "give the PEM file of the authority that signed it as cafile (ADATKG_KAFKA_CAFILE)"
        if "mismatch" in error.verify_message:
            remedy = "connect by a name that stands in it"
        trust = connection.cafile or "this system"
        return InputError(f"{server}: {trust} does not trust its certificate, {error.verify_message}; {remedy}")
    if isinstance(error, SaslAuthenticationFailed):
        return InputError(
            f"{server}: user {connection.username} is refused by {connection.mechanism} ({error.args[0]}); check "
            "username and password (ADATKG_KAFKA_USERNAME, ADATKG_KAFKA_PASSWORD)"
        )
    if isinstance(error, UnsupportedSaslMechanismError):
        return InputError(
            f"{server}: does not take {connection.mechanism}; set another mechanism (ADATKG_KAFKA_MECHANISM)"
        )
    if isinstance(error, IllegalSaslStateError):
        plain = connection.security.removeprefix("SASL_")
        return InputError(f"{server}: asks for no user; set security (ADATKG_KAFKA_SECURITY) to {plain}")
    if isinstance(cause, ssl.SSLError) and "ALERT" in (cause.reason or ""):
        what = f"refuses {connection.certfile}" if connection.certfile else "wants a certificate of ours"
        return InputError(
            f"{server}: {what} ({cause.reason}); give one that it trusts as certfile and keyfile "
            "(ADATKG_KAFKA_CERTFILE, ADATKG_KAFKA_KEYFILE)"
        )
    if isinstance(cause, (ConnectionResetError, asyncio.IncompleteReadError, ssl.SSLError)):
        others = ", ".join(protocol for protocol in PROTOCOLS if protocol != connection.security)
        return AdatkgError(
            f"{server}: hangs up on {connection.security}, so it may want another protocol; set security "
            f"(ADATKG_KAFKA_SECURITY) to one of {others}"
        )
    return None
