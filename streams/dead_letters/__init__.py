"""What could not be processed: read, shown, mended and put back."""

from streams.dead_letters.letters import (
    HEADERS,
    RETRIED,
    RETRY_OF,
    UNCHANGED,
    DeadLetter,
    DeadLetters,
    choose,
    dead_letter_headers,
    open_outbox,
)
from streams.dead_letters.retry import changes_from, mended, ready

__all__ = [
    "HEADERS",
    "RETRIED",
    "RETRY_OF",
    "UNCHANGED",
    "DeadLetter",
    "DeadLetters",
    "changes_from",
    "choose",
    "dead_letter_headers",
    "mended",
    "open_outbox",
    "ready",
]
