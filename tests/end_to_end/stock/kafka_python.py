"""Prints the values of a topic's first messages, each on a line; run where only kafka-python is installed."""

import sys

from kafka import KafkaConsumer

bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = KafkaConsumer(
    topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=60_000
)
for _, message in zip(range(count), consumer, strict=False):
    print(message.value.decode())
consumer.close()
