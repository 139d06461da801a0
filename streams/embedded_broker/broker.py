"""A real Kafka on this machine: one node, started and ended by us, its records in one folder."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.runtime import wait_until
from streams.embedded_broker.config import (
    CONSOLE,
    LOG,
    LOG_SETTINGS,
    SETTINGS,
    address,
    check_port,
    choose_port,
    cluster_id,
    new_cluster_id,
    write_config,
)
from streams.embedded_broker.jars import ensure_jars
from streams.embedded_broker.java import find_java
from streams.embedded_broker.tied_process import tied

_LOCK = "broker.lock"
_TAIL = 6  # lines of the log in an error: the exception, its causes and what led to it
_POLL = 0.1  # seconds between two looks at a starting broker
# A broker without memory shall end, so that whoever waits for it learns of it.
_MEMORY = ("-Xms128m", "-Xmx512m", "-XX:+ExitOnOutOfMemoryError")
_BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # for a program that runs a second


class Broker:
    """One Kafka node with its data in `data_dir`; port 0 takes a free port and keeps it for later starts.

    It can be started again after `stop` or `kill` and has every record that it acknowledged. On Linux it ends
    with this process, however this process ends. `settings` are Kafka's own and win over ours; `listeners` among
    them come beside the plain one at `port`.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int = 9092,
        host: str = "127.0.0.1",
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.data_dir = data_dir.expanduser().absolute()
        self.host = host
        self.port = port or choose_port(host)
        self.bootstrap = address(host, self.port)
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._log_begin = 0

    @property
    def pid(self) -> int | None:
        """The process id of Kafka while it runs."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if self._process and running else None

    def start(self, timeout: float = 60.0) -> None:
        """Return when a client can talk to it; what hinders it is told with the last lines of its log."""
        if self.pid is not None:
            raise AdatkgError(f"the broker at {self.bootstrap} runs already: stop it before it is started again")
        jars = os.pathsep.join(map(str, ensure_jars()))
        deadline = time.monotonic() + timeout
        self._release()
        self._take_folder()
        try:
            check_port(self.host, self.port)
            write_config(self.data_dir, self.host, self.port, self._settings)
            java = find_java().path
            log = self.data_dir / LOG
            self._log_begin = log.stat().st_size if log.exists() else 0
            identity = cluster_id(self.data_dir) or self._format([java, *_BRIEF, "-cp", jars], timeout)
            logging = f"-Dlog4j2.configurationFile={LOG_SETTINGS}"
            self._process = self._spawn([java, *_MEMORY, logging, "-cp", jars, "kafka.Kafka", SETTINGS])
            if not wait_until(lambda: self._is_up(identity), deadline - time.monotonic(), _POLL):
                raise AdatkgError(
                    f"the broker at {self.bootstrap} gave no answer in {timeout:.0f} s. {self.last_words()}"
                )
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout: float = 30.0) -> None:
        """End it in its own time, and by force after `timeout` seconds."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.wait()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
        self.wait()

    def wait(self) -> int:
        """Wait until it has ended; its exit code, negative for a signal."""
        code = 0 if self._process is None else self._process.wait()
        self._release()
        return code

    def last_words(self) -> str:
        """The last lines that it wrote since it was started, and where to read more."""
        lines = []
        for name, begin in ((CONSOLE, 0), (LOG, self._log_begin)):
            path = self.data_dir / name
            text = path.read_bytes() if path.exists() else b""
            # The log has begun anew when it is shorter than it was.
            text = text[begin:] if len(text) >= begin else text
            lines += [line for line in text.decode(errors="replace").splitlines() if not line.startswith("\tat ")]
        return "\n".join(["Its last words:", *lines[-_TAIL:], f"The whole log is {self.data_dir / LOG}"])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _take_folder(self) -> None:
        """Make the folder and lock it; Kafka inherits the lock, so it holds as long as either process lives."""
        if sys.platform == "win32":
            raise AdatkgError("the embedded broker needs Linux or macOS: set ADATKG_BOOTSTRAP to another broker")
        import fcntl

        path = self.data_dir / _LOCK
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            if not path.exists() and any(self.data_dir.iterdir()):
                raise InputError(f"{self.data_dir} holds other things than a broker's: give a new or an empty folder")
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._forget_lock()
            raise InputError(f"{self.data_dir} is in use by another broker: stop it or give another folder") from error
        except OSError as error:
            self._forget_lock()
            raise InputError(f"{self.data_dir}: {error.strerror}; give a folder that can be written to") from error

    def _release(self) -> None:
        if self._lock is not None and sys.platform != "win32":
            import fcntl

            # Closing is not enough when a fork of this process has the descriptor too.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._forget_lock()

    def _forget_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _format(self, java: list[str], timeout: float) -> str:
        """Give a new folder its identity; a format that was interrupted is done again."""
        identity = new_cluster_id()
        command = [*java, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", identity, "-c", SETTINGS]
        try:
            done = subprocess.run(command, cwd=self.data_dir, capture_output=True, timeout=timeout, env=_environment())
        except subprocess.TimeoutExpired as error:
            raise AdatkgError(f"{self.data_dir} could not be formatted within {timeout:.0f} s") from error
        if done.returncode != 0:
            said = (done.stdout + done.stderr).decode(errors="replace").strip()
            raise AdatkgError(f"{self.data_dir} could not be formatted for Kafka: {said}")
        return identity

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start the process from a thread that lives as long as it: Linux ties it to the thread that started it."""
        if sys.platform != "linux":
            atexit.register(self.stop)  # the best that can be done there: no help when this process is killed
        made: Future[subprocess.Popen[bytes]] = Future()

        def keep() -> None:
            try:
                with (self.data_dir / CONSOLE).open("wb") as console:
                    process = subprocess.Popen(
                        tied(command),
                        cwd=self.data_dir,
                        env=_environment(),
                        stdin=subprocess.DEVNULL,
                        stdout=console,
                        stderr=console,
                        pass_fds=() if self._lock is None else (self._lock,),
                        start_new_session=True,  # Ctrl-C is for this process, which then stops Kafka
                    )
            except BaseException as error:
                made.set_exception(error)
                return
            made.set_result(process)
            process.wait()

        threading.Thread(target=keep, name=f"broker {self.bootstrap}", daemon=True).start()
        return made.result()

    def _is_up(self, identity: str) -> bool:
        """Whether it does its work; raises if it has ended instead."""
        if self._answers(identity):
            return True
        if self._process is not None and (code := self._process.poll()) is not None:
            raise AdatkgError(f"the broker at {self.bootstrap} ended with code {code}. {self.last_words()}")
        return False

    def _answers(self, identity: str) -> bool:
        """Whether it is this very node that answers, and has taken up its work."""
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        try:
            # The client would log every refusal.
            socket.create_connection((self.host, self.port), 1.0).close()
            admin = KafkaAdminClient(bootstrap_servers=self.bootstrap, request_timeout_ms=5000)
        except (OSError, KafkaError):
            return False
        try:
            cluster = admin.describe_cluster()
        except KafkaError:
            return False
        finally:
            admin.close()
        return bool(cluster["cluster_id"] == identity and cluster["brokers"])


def _environment() -> dict[str, str]:
    # Java can open no file with a name beyond ASCII unless the locale says UTF-8.
    return {**os.environ, "LC_ALL": "C.UTF-8"}
