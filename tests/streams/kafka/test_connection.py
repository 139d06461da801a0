"""How the brokers are reached: files, then variables, then flags, and what is said of a mistake."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import orjson
import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from adatkg_core.errors import InputError
from adatkg_core.messages import Announcement
from streams.client import Client
from streams.kafka import Connection, announce, connection_from, topics_from
from streams.kafka.connection import CODECS
from tests.support.fake_graph import fresh_topics, prediction, question, records


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("correct horse\n")
    made = tmp_path / "mine.toml"
    made.write_text(
        f"""
        [kafka]
        bootstrap = "file:1"
        security = "sasl_plaintext"
        mechanism = "scram-sha-512"
        username = "alice"
        password_file = "{tmp_path / "secret"}"
        topic_prefix = "mine"
        """
    )
    return made


def test_a_file_describes_the_whole_connection(file: Path) -> None:
    wanted = Connection("file:1", "SASL_PLAINTEXT", "SCRAM-SHA-512", "alice", "correct horse")
    assert connection_from({}, config=file) == wanted
    assert connection_from({"ADATKG_CONFIG": str(file)}) == wanted


def test_variables_win_over_the_file_and_flags_over_variables(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"ADATKG_BOOTSTRAP": "variable:2", "ADATKG_KAFKA_PASSWORD": "other", "ADATKG_KAFKA_MECHANISM": "plain"}
    found = connection_from(variables, config=file)
    assert (found.bootstrap, found.password, found.mechanism) == ("variable:2", "other", "PLAIN")
    assert (found.username, found.security) == ("alice", "SASL_PLAINTEXT")
    assert connection_from(variables, "flag:3", file).bootstrap == "flag:3"
    assert topics_from(None, file).events == "mine.events"
    monkeypatch.setenv("ADATKG_TOPIC_PREFIX", "theirs")
    assert topics_from(None, file).events == "theirs.events"
    assert topics_from("given", file).events == "given.events"


def test_without_files_and_variables_it_is_a_plain_broker_on_this_machine() -> None:
    assert connection_from({"ADATKG_KAFKA_SECURITY": "", "ADATKG_BOOTSTRAP": ""}) == Connection()


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("password = 'x'", r"\[kafka\] password: is not read from here.*password_file.*ADATKG_KAFKA_PASSWORD"),
        ("pasword_file = 'x'", r"\[kafka\] unknown key `pasword_file`"),
        ("bootstrap = 9092", r"\[kafka\] bootstrap = 9092: must be a str"),
        ("bootstrap = 'broker'", "bootstrap broker: give host:port"),
        ("security = 'tls'", "security TLS: must be one of PLAINTEXT, SSL"),
        ("security = 'sasl_ssl'", "SASL needs a user.*ADATKG_KAFKA_USERNAME.*password_file"),
        ("mechanism = 'GSSAPI'", "SASL mechanism GSSAPI: must be one of PLAIN"),
        ("password_file = 'nowhere'", "password_file nowhere: cannot be read"),
        ("compression = 'brotli'", "compression brotli: must be one of none, gzip, snappy, lz4, zstd"),
        ("keyfile = 'k.pem'", "keyfile k.pem: is of no use without certfile"),
    ],
)
def test_a_mistake_is_named_with_the_remedy(tmp_path: Path, lines: str, says: str) -> None:
    (tmp_path / "mine.toml").write_text(f"[kafka]\n{lines}\n")
    with pytest.raises(InputError, match=says):
        connection_from({}, config=tmp_path / "mine.toml")


def test_what_we_send_is_packed_as_the_setting_says_and_else_not_at_all() -> None:
    assert connection_from({}).producer()["compression_type"] is None
    assert connection_from({"ADATKG_KAFKA_COMPRESSION": "GZIP"}).producer()["compression_type"] == "gzip"
    assert "compression_type" not in connection_from({"ADATKG_KAFKA_COMPRESSION": "zstd"}).client()


def test_a_codec_whose_library_is_missing_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match="compression zstd: its library is missing; `pip install zstandard`"):
        connection_from({"ADATKG_KAFKA_COMPRESSION": "zstd"})


@pytest.mark.parametrize("codec", CODECS)
def test_our_own_readers_take_every_codec(bootstrap: str, codec: str) -> None:
    topics = fresh_topics(bootstrap)
    connection = Connection(bootstrap, compression=codec)
    announce(connection, topics, Announcement("g", "1", "present", "first", forced=False, verdict=None))
    body = prediction(question(), "g", 3, 0)
    producer = KafkaProducer(**connection.producer())
    producer.send(topics.predictions, key=b"g", value=body).get(30)
    producer.close()

    async def scene() -> bytes:
        async with asyncio.timeout(60), Client(connection, topics) as client:
            await client.publish_facts("g", [("a", "r", "b", number) for number in range(20_000)])
            forecast = await anext(client.predictions("g", from_beginning=True))
            return orjson.dumps(forecast.raw)

    assert asyncio.run(scene()) == body
    assert [orjson.loads(one.value or b"")["t"] for one in records(bootstrap, topics.events)] == list(range(20_000))
    assert len(records(bootstrap, topics.models)) == 1


def test_brokers_keep_messages_as_they_were_sent(bootstrap: str) -> None:
    topics = fresh_topics(bootstrap)
    names = (topics.events, topics.predictions, topics.deadletter, topics.models)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    finally:
        admin.close()
    assert {name: found["topic"][name]["compression.type"]["value"] for name in names} == dict.fromkeys(
        names, "producer"
    )


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    empty = str(tmp_path / "empty.pem")
    with pytest.raises(InputError, match=r"cafile .*empty\.pem: cannot be read"):
        Connection(security="SSL", cafile=empty).client()
    with pytest.raises(InputError, match=r"certfile .*empty\.pem, keyfile the same: cannot be used"):
        Connection(security="SSL", certfile=empty).client()


def test_a_password_is_not_shown() -> None:
    assert "horse" not in repr(Connection(username="alice", password="correct horse"))
