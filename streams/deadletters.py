"""Dead letters: what could not be processed, as it came, with the reason in its headers."""

from __future__ import annotations


def dead_letter_headers(
    reason: str, detail: str, topic: str, partition: int, offset: int, graph: str
) -> list[tuple[str, bytes]]:
    """The headers of a dead letter: why it is one, and where in the log the event stands."""
    texts = {
        "reason": reason,
        "detail": detail,
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
        "graph": graph,
    }
    # A detail may quote what is no text at all; a dead letter must never be the next thing that fails.
    return [(name, text.encode(errors="replace")) for name, text in texts.items()]
