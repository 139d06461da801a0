"""The live side: topics and the log, the embedded broker, the Faust worker, dead letters and the client.

The public names are imported when first used; only the worker needs Faust.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adatkg_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from streams.app import create_app
    from streams.client import Client, Prediction, SyncClient
    from streams.embedded_broker import Broker
    from streams.kafka import Connection, Topics, ensure_topics
    from streams.settings import StreamSettings

_HOME = {
    "streams.app": ("create_app",),
    "streams.client": ("Client", "Prediction", "SyncClient"),
    "streams.embedded_broker": ("Broker",),
    "streams.kafka": ("Connection", "Topics", "ensure_topics"),
    "streams.settings": ("StreamSettings",),
}

__all__ = [
    "Broker",
    "Client",
    "Connection",
    "Prediction",
    "StreamSettings",
    "SyncClient",
    "Topics",
    "create_app",
    "ensure_topics",
]

__getattr__ = lazy_names(__name__, _HOME)
