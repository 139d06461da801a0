"""Reading predictions, asking and publishing from programs."""

from streams.client.client import Client, NoAnswer
from streams.client.predictions import Prediction, Seen, decode_forecast
from streams.client.sync_client import SyncClient

__all__ = [
    "Client",
    "NoAnswer",
    "Prediction",
    "Seen",
    "SyncClient",
    "decode_forecast",
]
