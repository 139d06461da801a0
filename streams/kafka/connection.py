"""How to reach the brokers: one description for every client library in use."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from adatkg_core.errors import InputError
from adatkg_core.settings import config_files, read_file, setting, settings_of

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_PREFIX = "adatkg"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# Codecs, each with the modules that our client libraries need for it and the packages that bring them. Clients of all
# languages read what is not compressed, and gzip; the others want a library that a reader may not have.
CODECS: dict[str, dict[str, str]] = {
    "none": {},
    "gzip": {},
    "snappy": {"cramjam": "cramjam", "snappy": "python-snappy"},
    "lz4": {"cramjam": "cramjam", "lz4": "lz4"},
    "zstd": {"cramjam": "cramjam", "zstandard": "zstandard"},
}


@dataclass(frozen=True)
class Connection:
    """Addresses of the brokers, TLS and a user where they want it, and how what we send is compressed."""

    bootstrap: str = DEFAULT_BOOTSTRAP
    security: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    compression: str = "none"

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
        _check_codec(self.compression)
        if self.keyfile is not None and self.certfile is None:
            raise InputError(f"keyfile {self.keyfile}: is of no use without certfile (ADATKG_KAFKA_CERTFILE)")
        if self.security.startswith("SASL") and not (self.username and self.password):
            raise InputError(
                "SASL needs a user: set ADATKG_KAFKA_USERNAME and ADATKG_KAFKA_PASSWORD, or username and password_file "
                "in [kafka] of a configuration file"
            )

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

    def producer(self) -> dict[str, Any]:
        """The same for producers: with how to compress."""
        return self.client() | {"compression_type": None if self.compression == "none" else self.compression}

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


@dataclass(frozen=True)
class KafkaSettings:
    """The [kafka] section: where the brokers are, how to get in, what the topics are called, how messages are packed.

    A password is not among them, because such files are shared: `password_file` names a file that holds nothing else.
    """

    bootstrap: str = setting(DEFAULT_BOOTSTRAP, "`host:port` of the brokers, several separated by commas.")
    topic_prefix: str = setting(DEFAULT_PREFIX, "Prefix of the topics; several systems can share a cluster by it.")
    security: str = setting("PLAINTEXT", "`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.")
    mechanism: str = setting("PLAIN", "`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.")
    username: str = setting("", "User for SASL.")
    password_file: str = setting("", "A file with the password for SASL and nothing else.")
    cafile: str = setting("", "PEM file with the certificates that brokers are checked against; else the system's.")
    certfile: str = setting("", "PEM file with our own certificate, where brokers want one.")
    keyfile: str = setting("", "PEM file with its key, without a password; it may stand in `certfile` too.")
    compression: str = setting(
        "none",
        "How all that we send is compressed: `none` or `gzip`, which every client can read, or `snappy`, "
        "`lz4` or `zstd`, for which readers need a library.",
    )


def kafka_settings(config: Path | None = None, environ: Mapping[str, str] = os.environ) -> KafkaSettings:
    """Settings from the [kafka] sections, then from variables; an empty variable is none."""
    for path in config_files(config, environ):
        if "password" in read_file(path).get("kafka", {}):
            raise InputError(
                f"config {path}: [kafka] password: is not read from here, because such files are shared; put it into a "
                "file of its own and name that as password_file, or set ADATKG_KAFKA_PASSWORD"
            )
    values = settings_of(KafkaSettings, "kafka", config, environ)
    for key in (one.name for one in fields(KafkaSettings)):
        place = "" if key in ("bootstrap", "topic_prefix") else "KAFKA_"
        if given := environ.get(f"ADATKG_{place}{key}".upper()):
            values[key] = given
    return KafkaSettings(**values)


def connection_from(
    environ: Mapping[str, str] = os.environ, bootstrap: str | None = None, config: Path | None = None
) -> Connection:
    """The connection that the [kafka] sections and the ADATKG_* variables describe; a flag comes on top."""
    found = kafka_settings(config, environ)
    return Connection(
        bootstrap=bootstrap or found.bootstrap,
        security=found.security.upper(),
        mechanism=found.mechanism.upper(),
        username=found.username or None,
        password=environ.get("ADATKG_KAFKA_PASSWORD") or _password(found.password_file),
        cafile=found.cafile or None,
        certfile=found.certfile or None,
        keyfile=found.keyfile or None,
        compression=found.compression.lower(),
    )


def _check_codec(name: str) -> None:
    if name not in CODECS:
        raise InputError(f"compression {name}: must be one of {', '.join(CODECS)}")
    if missing := [package for module, package in CODECS[name].items() if find_spec(module) is None]:
        raise InputError(
            f"compression {name}: its library is missing; `pip install {' '.join(missing)}`, or set "
            "ADATKG_KAFKA_COMPRESSION=none"
        )


def _password(file: str) -> str | None:
    if not file:
        return None
    try:
        return Path(file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"password_file {file}: cannot be read ({error}); give a text file") from error
