from __future__ import annotations

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError

pytestmark = pytest.mark.timeout(600)  # the first test builds the image


def test_records_go_into_a_container_and_come_out_in_order(kafka: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    admin.create_topics([NewTopic("numbers", num_partitions=1, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=kafka, acks="all", compression_type="lz4")
    for i in range(1000):
        producer.send("numbers", b"%d" % i)
    producer.close()
    consumer = KafkaConsumer(
        "numbers", bootstrap_servers=kafka, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    found = [int(next(consumer).value) for _ in range(1000)]
    consumer.close()
    assert found == list(range(1000))


def test_a_misspelt_topic_does_not_come_into_being(kafka: str) -> None:
    producer = KafkaProducer(bootstrap_servers=kafka, max_block_ms=3000)
    with pytest.raises(KafkaError):
        producer.send("nunbers", b"1").get(5)
    producer.close()
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    assert "nunbers" not in admin.list_topics()
    admin.close()
