from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from adatkg_core.errors import AdatkgError, InputError
from streams.embedded_broker import Broker


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that runs before and after each test of this module."""
    # Nothing in the name of a folder may disturb settings or Java.
    broker = Broker(tmp_path_factory.mktemp("broker") / "räume, 1 = x", port=0)
    with ThreadPoolExecutor() as pool:
        pool.submit(broker.start).result()
    yield broker
    broker.stop()


def create_topic(broker: Broker, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    admin.close()


def records(broker: Broker, topic: str) -> list[int]:
    """Every record of the topic's only partition."""
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, enable_auto_commit=False)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    found: list[int] = []
    while consumer.position(partition) < end:
        for batch in consumer.poll(timeout_ms=1000).values():
            found += [int(record.value) for record in batch]
    consumer.close()
    return found


def test_kafka_outlives_the_thread_that_started_it(node: Broker) -> None:
    time.sleep(0.5)
    assert node.pid is not None


def test_records_are_there_after_a_stop_and_a_start(node: Broker) -> None:
    create_topic(node, "stopped")
    producer = KafkaProducer(bootstrap_servers=node.bootstrap, acks="all")
    for i in range(1000):
        producer.send("stopped", b"%d" % i)
    producer.flush()
    producer.close()
    address = node.bootstrap
    node.stop()
    assert node.pid is None
    node.start()
    assert node.bootstrap == address
    assert records(node, "stopped") == list(range(1000))


def test_every_acknowledged_record_is_there_after_a_kill(node: Broker) -> None:
    create_topic(node, "killed")
    acknowledged: list[int] = []
    enough = threading.Event()

    def produce() -> None:
        producer = KafkaProducer(
            bootstrap_servers=node.bootstrap, acks="all", request_timeout_ms=1000, delivery_timeout_ms=2000
        )
        with contextlib.suppress(KafkaError):
            for i in range(1_000_000):
                producer.send("killed", b"%d" % i).get(5)
                acknowledged.append(i)
                if i == 300:
                    enough.set()
        producer.close(0)

    thread = threading.Thread(target=produce)
    thread.start()
    assert enough.wait(30)
    node.kill()
    thread.join(30)
    assert not thread.is_alive()
    node.start()
    assert set(acknowledged) <= set(records(node, "killed"))


def test_a_topic_must_be_created_on_purpose(node: Broker) -> None:
    producer = KafkaProducer(bootstrap_servers=node.bootstrap, max_block_ms=1000)
    with pytest.raises(KafkaError):
        producer.send("misspelt", b"x").get(2)
    producer.close(0)


def test_a_running_broker_is_not_started_again(node: Broker) -> None:
    with pytest.raises(AdatkgError, match="runs already"):
        node.start()


def test_a_port_in_use_is_named(node: Broker, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"cannot listen on {re.escape(node.bootstrap)}: .*another port"):
        Broker(tmp_path, node.port).start()


def test_a_second_broker_on_the_same_folder_is_refused(node: Broker) -> None:
    with pytest.raises(InputError, match="in use by another broker"):
        Broker(node.data_dir, port=0).start()
    assert node.pid is not None


def test_a_folder_of_other_things_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("mine")
    with pytest.raises(InputError, match="holds other things"):
        Broker(tmp_path, port=0).start()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=f"{tmp_path}/file/broker: Not a directory"):
        Broker(tmp_path / "file" / "broker", port=0).start()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "no.such.host.invalid", "192.0.2.1"])
def test_a_host_that_clients_cannot_use_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(InputError, match="host"):
        Broker(tmp_path, port=0, host=host)


def test_a_failed_start_tells_kafkas_last_words(private_broker: Callable[[], Broker]) -> None:
    broker = private_broker()
    (broker.data_dir / "broker.lock").touch()
    (broker.data_dir / "data").mkdir()
    (broker.data_dir / "data" / "meta.properties").write_text("version=1\ncluster.id=elsewhere\nnode.id=7\n")
    with pytest.raises(AdatkgError, match=r"(?s)ended with code 1.*Stored node id 7.*The whole log is .*broker\.log"):
        broker.start()
    assert broker.pid is None


@contextlib.contextmanager
def command(folder: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`adatkg broker` in a process of its own, and what it printed when it was ready."""
    arguments = ["broker", "--json", "--port", "0", "--data-dir", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "adatkg", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)
    finally:
        process.kill()
        process.communicate()


def has_ended(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # Whoever adopted it may be slow to bury it.
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def commands_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands") / "broker"


def test_the_command_ends_cleanly_when_asked(commands_folder: Path) -> None:
    with command(commands_folder) as (process, printed):
        assert printed["data_dir"] == str(commands_folder)
        host, port = printed["bootstrap"].split(":")
        socket.create_connection((host, int(port))).close()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
        assert has_ended(printed["pid"], 0.1)
    assert (commands_folder / "data" / ".kafka_cleanshutdown").exists()


def test_the_command_fails_when_kafka_ends_by_itself(commands_folder: Path) -> None:
    with command(commands_folder) as (process, printed):
        os.kill(printed["pid"], signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "ended by itself with code -9" in errors
        assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_kafka_does_not_outlive_a_killed_parent(commands_folder: Path) -> None:
    with command(commands_folder) as (process, printed):
        assert not has_ended(printed["pid"], 0.2)
        process.kill()
        assert has_ended(printed["pid"])
