"""The worker's web page and the data behind it."""

from streams.dashboard.feed import Feed
from streams.dashboard.server import Dashboard

__all__ = [
    "Dashboard",
    "Feed",
]
