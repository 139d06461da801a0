"""The wire between a worker and the broker, which can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import threading

_CHUNK = 1 << 16
_HOST = "127.0.0.1"


class Proxy:
    """Passes bytes from a port to another on a thread of its own; `cut` and `hush` last until `mend`."""

    def __init__(self, port: int, target: int) -> None:
        self.port, self._target = port, target
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"proxy {port}", daemon=True)
        self._thread.start()
        self._listens.wait()

    def cut(self) -> None:
        """Every connection breaks, and a new one breaks at once."""
        self._loop.call_soon_threadsafe(self._cut)

    def hush(self) -> None:
        """Connections stay, but nothing comes through, as when a cable is pulled."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def mend(self) -> None:
        """The wire is whole again."""
        self._loop.call_soon_threadsafe(self._mend)

    def close(self) -> None:
        """The wire is gone."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def _mend(self) -> None:
        self._is_cut = False
        self._flows.set()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._flows.set()
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, _HOST, self.port))
        self._listens.set()
        self._loop.run_forever()
        server.close()
        self._cut()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far: asyncio.StreamWriter | None = None
        self._writers.add(writer)
        try:
            if self._is_cut:
                return
            far_reader, far = await asyncio.open_connection(_HOST, self._target)
            self._writers.add(far)
            ways = [asyncio.create_task(self._pass(reader, far)), asyncio.create_task(self._pass(far_reader, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
        except OSError:
            pass  # the broker is away: so is this end
        finally:
            for end in (writer, far):
                if end is not None:
                    self._writers.discard(end)
                    end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
