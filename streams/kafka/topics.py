"""The one place that knows the topics: their names, how they are kept, and how they come to be.

kafka-python, which takes long to import, is imported where topics are made: who only needs names shall start at once.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import wait_until
from streams.kafka.connection import DEFAULT_PREFIX, Connection, kafka_settings
from streams.kafka.entry_check import check_entry

if TYPE_CHECKING:
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic

DEFAULT_PARTITIONS = 8  # a graph lives in one, so this is how many workers can share the graphs
LARGEST_MESSAGE = 8 << 20  # accepted into the log even where it is no event, so that it can be dead-lettered
_DAY_MS = 86_400_000
BOOTSTRAP_MS = 10_000  # until a broker that does not answer is reported as away
_VISIBLE = 30.0  # seconds until every broker of a busy cluster has heard of a new topic


@dataclass(frozen=True)
class Topics:
    """The names of a system's topics; several systems can share a cluster by their prefixes."""

    prefix: str = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", self.prefix):
            raise InputError(f"topic prefix {self.prefix!r}: use letters, digits, dots, dashes and underscores")

    @property
    def events(self) -> str:
        """Facts, queries, ticks and which model answers, keyed by graph: the log that everything follows from."""
        return f"{self.prefix}.events"

    @property
    def predictions(self) -> str:
        """Answers, keyed by graph."""
        return f"{self.prefix}.predictions"

    @property
    def deadletter(self) -> str:
        """What could not be processed, as it came, with the reason."""
        return f"{self.prefix}.deadletter"

    @property
    def models(self) -> str:
        """Announcements of bundles; the latest of each graph is kept."""
        return f"{self.prefix}.models"


def topics_from(prefix: str | None = None, config: Path | None = None) -> Topics:
    """The topics under this prefix, else under ADATKG_TOPIC_PREFIX, else as the [kafka] sections say."""
    return Topics(prefix or kafka_settings(config).topic_prefix)


def ensure_topics(connection: Connection, topics: Topics, partitions: int = DEFAULT_PARTITIONS) -> None:
    """Create what is missing and leave alone what is there; whoever comes first may call it, and all may at once.

    A topic that a user may not even see is none that this user needs.
    """
    from kafka.errors import KafkaError, TopicAlreadyExistsError

    admin = _admin(connection)
    try:
        missing = set(_wanted(topics, partitions)) - set(admin.list_topics())
        missing -= _out_of_sight(admin, missing)
        for name in sorted(missing):
            with contextlib.suppress(TopicAlreadyExistsError):
                admin.create_topics([_wanted(topics, partitions)[name]])
        if missing:
            _await_visible(admin, missing)
    except KafkaError as error:
        raise AdatkgError(
            f"{connection.bootstrap}: the topics {topics.prefix}.* could not be made ({error})"
        ) from error
    finally:
        admin.close()


@dataclass(frozen=True)
class EventLog:
    """A topic as it is, above all that of the events: the id that it got when it was made, and its partitions."""

    id: str
    partitions: int

    def log_id(self, partition: int) -> str:
        """What tells one partition of one log from every other, also from one made later under the same name."""
        return f"{self.id}-{partition}"


def event_log(connection: Connection, topics: Topics) -> EventLog:
    """Look up the events' topic; raises where it is not there."""
    found = find_topics(connection, topics.events)
    if topics.events not in found:
        raise AdatkgError(f"{topics.events} at {connection.bootstrap}: there is no such topic now; start a worker")
    return found[topics.events]


def find_topics(connection: Connection, *names: str) -> dict[str, EventLog]:
    """Look up topics; those that are not there, or not wholly, are left out."""
    from kafka.errors import KafkaError

    admin = _admin(connection)
    try:
        found = admin.describe_topics(list(names))
        return {
            str(one["name"]): EventLog(str(one["topic_id"]), len(one["partitions"]))
            for one in found
            if one["error_code"] == 0 and one["partitions"]
        }
    except (KafkaError, KeyError, ValueError) as error:
        raise AdatkgError(f"{', '.join(names)} at {connection.bootstrap}: cannot be described ({error})") from error
    finally:
        admin.close()


def unreachable(connection: Connection, error: BaseException) -> AdatkgError:
    """What a user is told when no broker answers."""
    return AdatkgError(
        f"no Kafka broker answers at {connection.bootstrap} ({type(error).__name__}); start one, for example with "
        "`adatkg broker`, or set --bootstrap"
    )


def _admin(connection: Connection) -> KafkaAdminClient:
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    check_entry(connection)
    try:
        return KafkaAdminClient(**connection.client(), bootstrap_timeout_ms=BOOTSTRAP_MS, client_id="adatkg")
    except KafkaError as error:
        raise unreachable(connection, error) from error


def _wanted(topics: Topics, partitions: int) -> dict[str, NewTopic]:
    from kafka.admin import NewTopic

    forever, large = {"retention.ms": "-1"}, {"max.message.bytes": str(LARGEST_MESSAGE)}
    kept = {
        topics.events: (partitions, forever | large),
        topics.predictions: (partitions, {"retention.ms": str(7 * _DAY_MS)} | large),
        # Headers come on top of the bytes that could not be processed.
        topics.deadletter: (1, {"retention.ms": str(90 * _DAY_MS), "max.message.bytes": str(LARGEST_MESSAGE + 65_536)}),
        topics.models: (1, {"cleanup.policy": "compact"}),
    }
    # Whatever the cluster's own setting: the brokers must not pack anew into a codec that a reader may lack.
    as_sent = {"compression.type": "producer"}
    return {name: NewTopic(name, count, -1, topic_configs=config | as_sent) for name, (count, config) in kept.items()}


def _out_of_sight(admin: KafkaAdminClient, names: set[str]) -> set[str]:
    """Those of these topics that the brokers do not let us see, whether they are there or not."""
    from kafka.errors import TopicAuthorizationFailedError

    described = admin.describe_topics(sorted(names)) if names else []
    return {str(one["name"]) for one in described if one["error_code"] == TopicAuthorizationFailedError.errno}


def _await_visible(admin: KafkaAdminClient, names: set[str]) -> None:
    if not wait_until(lambda: names <= set(admin.list_topics()), within=_VISIBLE, every=0.05):
        raise AdatkgError(f"topics {', '.join(sorted(names))} were made but do not show up; look at the broker's log")
