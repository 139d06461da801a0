"""A text encoder in a process of its own: loading a language model holds the interpreter's lock for seconds."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import weakref
from collections.abc import Sequence
from threading import Lock, Thread
from typing import Protocol

import numpy as np
import structlog
import torch

from adatkg_core.errors import InputError
from adatkg_core.text.encoder_protocol import TextEncoder

PROGRAM = "adatkg_core.text.encoder_program"
_log = structlog.get_logger(__name__)


class LanguageModel(TextEncoder, Protocol):
    """An encoder that another process can make again."""

    model: str

    @property
    def pooling(self) -> str:
        """How the vectors of a text's tokens become one."""


class EncoderProcess:
    """Has a process load the encoder and read the texts; without that process it does both itself."""

    def __init__(self, encoder: LanguageModel) -> None:
        self.name, self.dim = encoder.name, encoder.dim
        self._encoder = encoder
        self._turn = Lock()
        self._problem: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # else there is none
            self._process = _started(encoder)
            weakref.finalize(self, _end, self._process)
        self._greeting = Thread(target=self._hear_greeting, name="encoder", daemon=True)
        self._greeting.start()

    def encode(self, texts: Sequence[str]) -> torch.Tensor:  # [n, dim]
        """Unit vectors of the texts, float32 on the CPU; what comes while the model is being loaded waits for it."""
        self._greeting.join()
        if self._problem is not None:
            raise InputError(self._problem)
        with self._turn:
            if texts and self._process is not None:
                try:
                    return self._ask(self._process, texts)
                except (OSError, EOFError) as error:
                    self._lose(error)
        return self._encoder.encode(texts)

    def _hear_greeting(self) -> None:
        if self._process is None:
            return
        try:
            self._problem = json.loads(_line(self._process))["problem"]
        except (OSError, EOFError) as error:
            self._lose(error)
        if self._problem is not None:
            _log.warning("encoder_unusable", encoder=self.name, problem=self._problem)

    def _ask(self, process: subprocess.Popen[bytes], texts: Sequence[str]) -> torch.Tensor:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(list(texts)).encode() + b"\n")
        process.stdin.flush()
        size = len(texts) * self.dim * 4
        data = process.stdout.read(size)
        if len(data) < size:
            raise EOFError("the process has ended")
        return torch.from_numpy(np.frombuffer(bytearray(data), np.float32).reshape(len(texts), self.dim))

    def _lose(self, error: Exception) -> None:
        _log.warning("encoder_process_lost", encoder=self.name, problem=str(error), instead="it is loaded here")
        self._process = None


def _started(encoder: LanguageModel) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", PROGRAM, encoder.model, encoder.pooling]
    # A session of its own, because a signal from the keyboard is for the worker, at whose end this ends.
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise EOFError("the process has ended")
    return line


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
