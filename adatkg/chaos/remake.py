"""Topics that are deleted and made anew under running workers, as an operator would, once nothing waits in them."""

from __future__ import annotations

import time
from contextlib import closing

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from adatkg.chaos.eras import Era, write_era
from adatkg.chaos.schedule import Fault
from adatkg.chaos.system import GROUP, System
from adatkg.chaos.topics import read_topic
from adatkg.chaos.watch import Watch
from adatkg_core.errors import AdatkgError
from streams.kafka import EventLog, ensure_topics, find_topics

_WITHIN = 60.0  # seconds for everything in the log to be answered and committed, whatever else goes wrong meanwhile
_LOOK = 1.0  # seconds


def remake_events(system: System, fault: Fault) -> str | None:
    """The events' topic: what stands in it is gone by an operator's will, so all of it is answered first."""
    deadline = time.monotonic() + _WITHIN
    with system.stream.held(_WITHIN) as rests:
        if not rests or not _is_drained(system, deadline):
            return f"given up: not everything was answered and committed within {_WITHIN:.0f} s"
        old = find_topics(system.connection, system.topics.events)[system.topics.events]
        era = Era(old, read_topic(system.broker.bootstrap, system.topics.events))
        write_era(system.journal.folder, era)
        new = _remake(system, system.topics.events, old)
    return f"{len(era.events)} events of {old.id} are gone; the log is {new.id if new else 'not made anew yet'}"


def remake_models(system: System, fault: Fault) -> str | None:
    """The announcements' topic, at any moment: which version should answer is in the store."""
    topic = system.topics.models
    new = _remake(system, topic, find_topics(system.connection, topic)[topic])
    return new.id if new else None


def _is_drained(system: System, deadline: float) -> bool:
    """Wait until each event that was sent has its answer or dead letter, and all of the log is committed."""
    wanted = system.stream.asked | system.stream.garbage
    with closing(Watch(system.broker.bootstrap, system.topics)) as watch:
        while watch.missing(wanted) or not _is_committed(system):
            if time.monotonic() > deadline or system.ends.wait(_LOOK):
                return False
    return True


def _is_committed(system: System) -> bool:
    topic = system.topics.events
    with closing(KafkaConsumer(**system.connection.client(), group_id=GROUP, enable_auto_commit=False)) as consumer:
        places = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]
        ends = consumer.end_offsets(places)
        return all((consumer.committed(place) or 0) >= ends[place] for place in places)


def _remake(system: System, topic: str, old: EventLog) -> EventLog | None:
    """Delete a topic and make it anew, however often the broker goes away meanwhile; None where the run ends first."""
    while not system.ends.is_set():
        try:
            with closing(KafkaAdminClient(**system.connection.client())) as admin:
                if find_topics(system.connection, topic).get(topic) == old:
                    admin.delete_topics([topic])
            ensure_topics(system.connection, system.topics, system.partitions)
            found = find_topics(system.connection, topic).get(topic)
            if found is not None and found != old:
                return found
        except UnknownTopicOrPartitionError:
            continue
        except (AdatkgError, KafkaError) as error:
            system.journal.fault("remaking_failed", topic=topic, problem=repr(error))
        system.ends.wait(_LOOK)
    return None
