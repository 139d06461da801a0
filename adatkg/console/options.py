"""Options that every command about the stream has."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adatkg_core.errors import InputError

if TYPE_CHECKING:
    from streams.kafka import Connection, Topics

BootstrapOption = Annotated[
    str | None,
    typer.Option("--bootstrap", help="host:port of the brokers. [default: 127.0.0.1:9092] [env: ADATKG_BOOTSTRAP]"),
]
PrefixOption = Annotated[
    str | None,
    typer.Option("--topic-prefix", help="Prefix of the topics. [default: adatkg] [env: ADATKG_TOPIC_PREFIX]"),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file with [kafka] and [stream], on top of that of ADATKG_CONFIG."),
]


def connection_of(bootstrap: str | None, prefix: str | None, config: Path | None) -> tuple[Connection, Topics]:
    """Where the brokers are and what the topics are called."""
    from streams.kafka import connection_from, topics_from

    return connection_from(bootstrap=bootstrap, config=config), topics_from(prefix, config)


def connect(bootstrap: str | None, prefix: str | None, config: Path | None) -> tuple[Connection, Topics]:
    """The same, and topics that are missing are made."""
    from streams.kafka import ensure_topics

    connection, topics = connection_of(bootstrap, prefix, config)
    ensure_topics(connection, topics)
    return connection, topics


def pace_of(speed: str) -> float | None:
    """Ticks a second, None for as many as there can be."""
    if speed == "max":
        return None
    try:
        pace = float(speed)
    except ValueError:
        pace = math.nan
    if not 0 < pace < math.inf:
        raise InputError(f"--speed {speed}: give ticks a second, a number above 0, or max")
    return pace


def quiet_kafka_logs() -> None:
    """Keep the Kafka library's own log off stderr; what a user must know comes as an error of ours."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
