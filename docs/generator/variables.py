"""What every variable means that belongs to no setting. The generator insists that the list is complete."""

from __future__ import annotations

VARIABLES = {
    "ADATKG_CHROMIUM": "The Chromium that the tests of the dashboard use, instead of the one on the path.",
    "ADATKG_CONFIG": "A TOML file that holds for every command; `--config` comes on top of it.",
    "ADATKG_BOOTSTRAP": "`host:port` of the brokers, several separated by commas; 127.0.0.1:9092 if not set.",
    "ADATKG_CACHE": "Folder for what can be had again: vectors of names, Kafka's jars, archives, unfinished training.",
    "ADATKG_JAVA": "The Java that `adatkg broker` runs, instead of the one it finds.",
    "ADATKG_KAFKA_PASSWORD": "Password for SASL, if no `password_file` is given.",
    "ADATKG_LOG": "How much is logged: `debug`, `info`, `warning` or `error`; `info` if not set.",
    "ADATKG_TOPIC_PREFIX": "Prefix of the topics; `adatkg` if not set.",
}
INTERNAL = {"ADATKG_STARTED_AGAIN", "ADATKG_SECTION_KEY"}  # no variable that a user sets
