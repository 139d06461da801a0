"""Where logs go: to stderr, so that stdout holds only results."""

from __future__ import annotations

import logging
import os
import sys

import structlog

from adatkg_core.errors import InputError, without_credentials

_LEVELS = ("debug", "info", "warning", "error")


def configure_logging() -> None:
    """Readable lines on a terminal, JSON lines elsewhere; `ADATKG_LOG` sets the level (info)."""
    level = os.environ.get("ADATKG_LOG", "info").lower()
    if level not in _LEVELS:
        raise InputError(f"ADATKG_LOG is {level!r}: use one of {', '.join(_LEVELS)}")
    render: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _without_credentials,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        # Looked up at each message, because a stream may be replaced (and the old one closed) meanwhile.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def silence_logs() -> None:
    """From here on only errors are told: for those of several processes that do the same as the first."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def _without_credentials(_: object, __: str, values: structlog.types.EventDict) -> structlog.types.EventDict:
    """A store's URL may hold a password; logs go to places where more people read."""
    return {name: without_credentials(one) if isinstance(one, str) else one for name, one in values.items()}
