"""Reading predictions, asking and publishing from programs."""

from adatkg_core.messages import Prediction
from streams.client.client import Client, NoAnswer
from streams.client.predictions import Seen
from streams.client.sync_client import SyncClient

__all__ = [
    "Client",
    "NoAnswer",
    "Prediction",
    "Seen",
    "SyncClient",
]
