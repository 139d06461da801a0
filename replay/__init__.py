"""Publishes a data set to Kafka in chronological order."""
