"""The errors that a user may meet; each message names the thing, the place and the remedy."""

from __future__ import annotations


class AdatkgError(Exception):
    """A failure that is not the caller's fault; the command exits with `exit_code`."""

    exit_code = 1


class InputError(AdatkgError):
    """Wrong input: a bad file, an unknown key, a damaged bundle."""

    exit_code = 2
