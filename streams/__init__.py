"""The live side: topics and the log, the embedded broker, the Faust worker, dead letters and the client.

The public names are imported when first used; only the worker needs Faust.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streams.broker import Broker
    from streams.client import Client
    from streams.connection import Connection
    from streams.forecast import Forecast
    from streams.settings import StreamSettings
    from streams.sync_client import SyncClient
    from streams.topics import Topics, ensure_topics
    from streams.worker import create_app

_HOME = {
    "broker": ("Broker",),
    "client": ("Client",),
    "connection": ("Connection",),
    "forecast": ("Forecast",),
    "settings": ("StreamSettings",),
    "sync_client": ("SyncClient",),
    "topics": ("Topics", "ensure_topics"),
    "worker": ("create_app",),
}

__all__ = [
    "Broker",
    "Client",
    "Connection",
    "Forecast",
    "StreamSettings",
    "SyncClient",
    "Topics",
    "create_app",
    "ensure_topics",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"streams.{module}"), name)
    raise AttributeError(f"module 'streams' has no attribute {name!r}")
