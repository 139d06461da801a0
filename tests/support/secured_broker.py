"""A real Kafka that wants TLS, users or both, with certificates that are made for it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streams.embedded_broker import Broker, choose_port
from streams.kafka import Connection, connection_from

HOST = "127.0.0.1"
USER, PASSWORD = "alice", "correct horse"
# Each has a port of its own: what it is called, and what it speaks.
LISTENERS = {"TLS": "SSL", "MUTUAL": "SSL", "USERS": "SASL_SSL", "BARE": "SASL_PLAINTEXT"}
_USER = {"username": USER, "password": PASSWORD}
# The ways in: a listener, and what it wants to have given besides. Files are those that were made.
WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "TLS": ("TLS", {"cafile": ""}),
    "a certificate": ("MUTUAL", {"cafile": "", "certfile": "", "keyfile": ""}),
    "PLAIN over TLS": ("USERS", {"cafile": "", **_USER}),
    "SCRAM over TLS": ("USERS", {"cafile": "", "mechanism": "scram-sha-512", **_USER}),
    "PLAIN": ("BARE", _USER),
}
_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Certificates:
    """An authority, what it signed for broker and client, and an authority that signed nothing; PEM files."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Whom clients should trust."""
        return self.folder / "authority.pem"

    @property
    def stranger(self) -> Path:
        """An authority that has nothing to do with the broker."""
        return self.folder / "stranger.pem"

    def key(self, name: str) -> Path:
        """The private key of one of them."""
        return self.folder / f"{name}.key"

    def certificate(self, name: str) -> Path:
        """The certificate of one of them."""
        return self.folder / f"{name}.pem"


def make_certificates(folder: Path) -> Certificates:
    """Keys of their own for an authority, a broker and a client; skips where there is no openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on the path")
    made = Certificates(folder)
    for name in ("authority", "stranger"):
        _openssl(made, name, "-x509", "-subj", f"/CN={name}", "-days", "2")
    for name in ("broker", "client"):
        signed = ("-x509", "-CA", str(made.authority), "-CAkey", str(made.key("authority")), "-days", "2")
        _openssl(made, name, *signed, "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{HOST},DNS:localhost")
    chain = made.key("broker").read_text() + made.certificate("broker").read_text()
    (folder / "keystore.pem").write_text(chain)
    return made


def _openssl(made: Certificates, name: str, *more: str) -> None:
    fresh = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    files = ("-keyout", str(made.key(name)), "-out", str(made.certificate(name)))
    subprocess.run(["openssl", "req", *fresh, *files, *more], check=True, capture_output=True)


@dataclass(frozen=True)
class Secured:
    """The running broker and how to get in."""

    ports: dict[str, int]
    certificates: Certificates

    def way(self, name: str, **changes: str | Path) -> dict[str, str]:
        """The ADATKG_ variables of one of WAYS; changes are ADATKG_KAFKA_ ones."""
        listener, given = WAYS[name]
        files = {
            "cafile": self.certificates.authority,
            "certfile": self.certificates.certificate("client"),
            "keyfile": self.certificates.key("client"),
        }
        wanted = {"security": LISTENERS[listener]} | {key: files.get(key, value) for key, value in given.items()}
        named = {f"ADATKG_KAFKA_{key}".upper(): str(value) for key, value in (wanted | changes).items()}
        return named | {"ADATKG_BOOTSTRAP": f"{HOST}:{self.ports[listener]}"}


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """Run it; the user is known by PLAIN and by SCRAM-SHA-512."""
    (folder / "certificates").mkdir(parents=True)
    certificates = make_certificates(folder / "certificates")
    ports = {name: choose_port(HOST) for name in LISTENERS}
    keys = folder / "certificates" / "keystore.pem"
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"} | LISTENERS
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    }
    for name in ("users", "bare"):
        plain = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = plain
        settings[f"listener.name.{name}.scram-sha-512.sasl.jaas.config"] = (
            f"{_MODULES}.scram.ScramLoginModule required;"
        )
    with Broker(folder / "broker", port=0, settings=settings) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(USER, ScramMechanism.SCRAM_SHA_512, PASSWORD, iterations=4096)]
        )
        admin.close()
        yield Secured(ports, certificates)


@dataclass(frozen=True)
class Guarded:
    """A broker that gives each user what it was allowed, and nothing else; at `bootstrap` one may do everything."""

    bootstrap: str
    address: str
    passwords: dict[str, str]

    def way(self, user: str) -> dict[str, str]:
        """The ADATKG_ variables by which a user comes in."""
        given = {"security": "SASL_PLAINTEXT", "username": user, "password": self.passwords[user]}
        named = {f"ADATKG_KAFKA_{key}".upper(): value for key, value in given.items()}
        return named | {"ADATKG_BOOTSTRAP": self.address}

    def connection(self, user: str) -> Connection:
        """A user's way in."""
        return connection_from(self.way(user))

    def allow(self, user: str, operation: str, name: str, *, group: bool = False) -> None:
        """Give a user a right on a topic or a group."""
        kind = ResourceType.GROUP if group else ResourceType.TOPIC
        pattern = ResourcePattern(kind, name)
        right = ACL(f"User:{user}", "*", ACLOperation[operation], ACLPermissionType.ALLOW, pattern)
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap)) as admin:
            admin.create_acls([right])

    def forbid(self, user: str, operation: str, topic: str) -> None:
        """Take a right on a topic back."""
        pattern = ResourcePattern(ResourceType.TOPIC, topic)
        right = ACLFilter(f"User:{user}", "*", ACLOperation[operation], ACLPermissionType.ALLOW, pattern)
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap)) as admin:
            admin.delete_acls([right])


@contextmanager
def guarded_broker(folder: Path, users: Sequence[str]) -> Iterator[Guarded]:
    """Run a broker with users known by PLAIN, none of whom has any right yet."""
    port = choose_port(HOST)
    passwords = {user: f"password of {user}" for user in users}
    known = " ".join(f'user_{user}="{password}"' for user, password in passwords.items())
    settings = {
        "listeners": f"BARE://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,BARE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.bare.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {known};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # whoever comes in by the broker's own listener
    }
    with Broker(folder / "broker", port=0, settings=settings) as broker:
        yield Guarded(broker.bootstrap, f"{HOST}:{port}", passwords)
