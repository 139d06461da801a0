"""How to reach the brokers: one description for every client library in use."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adatkg_core.errors import InputError

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Connection:
    """Addresses of the brokers and, where they want it, TLS and a user."""

    bootstrap: str = DEFAULT_BOOTSTRAP
    security: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None

    def __post_init__(self) -> None:
        if not self.servers:
            raise InputError("bootstrap is empty: give host:port of a Kafka broker")
        for server in self.servers:
            host, _, port = server.rpartition(":")
            if not host or not port.isdigit():
                raise InputError(f"bootstrap {server}: give host:port, for example {DEFAULT_BOOTSTRAP}")
        if self.security not in PROTOCOLS:
            raise InputError(f"security {self.security}: must be one of {', '.join(PROTOCOLS)}")
        if self.mechanism not in _MECHANISMS:
            raise InputError(f"SASL mechanism {self.mechanism}: must be one of {', '.join(_MECHANISMS)}")
        if self.keyfile is not None and self.certfile is None:
            raise InputError(f"keyfile {self.keyfile}: is of no use without certfile (ADATKG_KAFKA_CERTFILE)")
        if self.security.startswith("SASL") and not (self.username and self.password):
            raise InputError("SASL needs a user: set ADATKG_KAFKA_USERNAME and ADATKG_KAFKA_PASSWORD")

    @property
    def servers(self) -> list[str]:
        """Each broker's host:port."""
        return [server.strip() for server in self.bootstrap.split(",") if server.strip()]

    def client(self) -> dict[str, Any]:
        """Keyword arguments that kafka-python and aiokafka both understand."""
        options: dict[str, Any] = {"bootstrap_servers": self.servers, "security_protocol": self.security}
        if self.security.startswith("SASL"):
            options |= {"sasl_mechanism": self.mechanism, "sasl_plain_username": self.username}
            options["sasl_plain_password"] = self.password
        if self.security.endswith("SSL"):
            options["ssl_context"] = self.ssl_context()
        return options

    def ssl_context(self) -> ssl.SSLContext:
        """Certificates are checked against `cafile`, or against those the system trusts; `certfile` is our own."""
        try:
            context = ssl.create_default_context(cafile=self.cafile)
        except OSError as error:
            raise InputError(f"cafile {self.cafile}: cannot be read ({error}); give a PEM file") from error
        if self.certfile is not None:
            try:
                # An empty password, because one that is asked for would stop a program that nobody watches.
                context.load_cert_chain(self.certfile, self.keyfile, password="")
            except OSError as error:
                raise InputError(
                    f"certfile {self.certfile}, keyfile {self.keyfile or 'the same'}: cannot be used ({error}); give "
                    "PEM files of a certificate and its key, the key without a password"
                ) from error
        return context


def connection_from(environ: Mapping[str, str] = os.environ, bootstrap: str | None = None) -> Connection:
    """The connection that ADATKG_BOOTSTRAP and the ADATKG_KAFKA_* variables describe; a flag comes on top."""
    return Connection(
        bootstrap=bootstrap or environ.get("ADATKG_BOOTSTRAP") or DEFAULT_BOOTSTRAP,
        security=environ.get("ADATKG_KAFKA_SECURITY", "PLAINTEXT").upper(),
        mechanism=environ.get("ADATKG_KAFKA_MECHANISM", "PLAIN").upper(),
        username=environ.get("ADATKG_KAFKA_USERNAME"),
        password=environ.get("ADATKG_KAFKA_PASSWORD"),
        cafile=environ.get("ADATKG_KAFKA_CAFILE"),
        certfile=environ.get("ADATKG_KAFKA_CERTFILE"),
        keyfile=environ.get("ADATKG_KAFKA_KEYFILE"),
    )
