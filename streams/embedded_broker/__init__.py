"""A real Kafka on this machine, without Docker and without an installed Java."""

from streams.embedded_broker.broker import Broker
from streams.embedded_broker.config import check_port, choose_port
from streams.embedded_broker.jars import ensure_jars, missing_jars, read_lock
from streams.embedded_broker.java import find_java
from streams.embedded_broker.tied_process import tied

__all__ = [
    "Broker",
    "check_port",
    "choose_port",
    "ensure_jars",
    "find_java",
    "missing_jars",
    "read_lock",
    "tied",
]
