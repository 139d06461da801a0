"""Prints the values of a topic's first messages, each on a line; run where only confluent-kafka is installed."""

import sys

from confluent_kafka import Consumer, KafkaException

bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"stock-{topic}", "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
for _ in range(count):
    message = consumer.poll(60)
    if message is None:
        break
    if message.error():
        raise KafkaException(message.error())
    print((message.value() or b"").decode())
consumer.close()
