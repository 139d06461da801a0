"""What the folder of an embedded broker holds besides its records: settings, its log, its identity, its ports."""

from __future__ import annotations

import base64
import random
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path

from adatkg_core.errors import InputError

SETTINGS = "server.properties"
LOG_SETTINGS = "log4j2.properties"
RECORDS = "data"
LOGS = "logs"
LOG = "logs/broker.log"
CONSOLE = "logs/console.log"  # what Java itself says, for example that it has no memory

_LOCAL = "127.0.0.1"
# Below the ports that systems lend to outgoing connections: one of these could take the port while the broker is
# down, and a client that retries on its own port would be connected with itself.
_PORTS = range(20_000, 32_768)
_MESSAGE = 16 << 20  # bytes of the largest message

# Paths are relative to the folder, where the process runs: it may be moved and may have any name.
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": RECORDS,
    "num.partitions": "1",
    # A misspelt topic must not come into being.
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(_MESSAGE),
    "replica.fetch.max.bytes": str(_MESSAGE),
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # The usual 50 spread work over many nodes; on one they cost time at every start.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # After a kill a node waits until the session of its former self has ended; the usual 9 s are for networks.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": str(32 << 20),  # the usual 128 MiB are a quarter of the heap
}

_LOG_SETTINGS = f"""\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {LOG}
appender.file.filePattern = {LOG}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %m (%c)%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.lifecycle.name = kafka.server.KafkaRaftServer
logger.lifecycle.level = info
"""


def write_config(folder: Path, host: str, port: int, more: Mapping[str, str]) -> None:
    """Write all settings, `more` last; the controller keeps its port as long as nobody else has taken it."""
    voter = f"1@{_LOCAL}:"
    controller = int(_read(folder / SETTINGS).get("controller.quorum.voters", voter).removeprefix(voter) or 0)
    if controller in (0, port) or not _is_free(_LOCAL, controller):
        controller = choose_port(_LOCAL)
    listeners = [f"PLAINTEXT://{address(host, port)}", f"CONTROLLER://{_LOCAL}:{controller}"]
    settings = {**_SETTINGS, "controller.quorum.voters": f"{voter}{controller}", **more}
    settings["listeners"] = ",".join([*listeners, *filter(None, [more.get("listeners")])])
    (folder / SETTINGS).write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "ascii")
    (folder / LOG_SETTINGS).write_text(_LOG_SETTINGS, "ascii")
    (folder / LOGS).mkdir(exist_ok=True)


def cluster_id(folder: Path) -> str | None:
    """The identity that formatting gave the folder; None before, because Kafka writes it last."""
    return _read(folder / RECORDS / "meta.properties").get("cluster.id")


def new_cluster_id() -> str:
    """A random identity in Kafka's spelling; one that began with a dash would be taken for an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


def address(host: str, port: int) -> str:
    """`host:port`, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def choose_port(host: str) -> int:
    """A port on which nobody listens now."""
    check_port(host, 0)  # a wrong host is reported as such
    return next(port for port in random.sample(_PORTS, len(_PORTS)) if _is_free(host, port))


def check_port(host: str, port: int) -> None:
    """Refuse an address on which the broker could not listen."""
    if host in ("", "0.0.0.0", "::"):
        raise InputError(f"host {host!r} is no address to connect to: give the name that clients know this machine by")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"cannot listen on {address(host, port)}: {getattr(error, 'strerror', None) or error}; end what uses it, "
            "or choose another port (0 picks a free one) or host"
        ) from error


def _is_free(host: str, port: int) -> bool:
    try:
        check_port(host, port)
    except InputError:
        return False
    return True


def _read(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("ascii").splitlines()
    except FileNotFoundError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
