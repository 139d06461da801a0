"""The client for programs without an event loop: the same methods, each waiting for its result."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from itertools import islice
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from adatkg_core.events import Fact
from adatkg_core.messages import Prediction
from streams.client.client import AT_ONCE, Client, Predictions
from streams.kafka import Connection, Topics

T = TypeVar("T")
P = ParamSpec("P")


def _waiting(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncClient, P], T]:
    """A method of the client as one of the client below, which takes the same and waits for the result."""

    @functools.wraps(method)
    def wait(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wait(method(self._client, *args, **kwargs))

    return wait


class SyncClient:
    """A connection to the stream, open inside `with`; any number of threads may share it.

    It is a `Client` on an event loop of its own in a thread of its own, so it can be used where another loop runs
    already, as in a notebook.
    """

    def __init__(self, connection: str | Connection | None = None, topics: str | Topics | None = None) -> None:
        self._client = Client(connection, topics)
        self._lock = threading.Lock()  # nothing is handed to a loop that is about to end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._over: asyncio.Event | None = None
        self._closed = False

    def __enter__(self) -> Self:
        opened: Future[None] = Future()
        self._closed = False
        # A daemon, so that a program that forgets to close can still end; what it published was waited for.
        self._thread = threading.Thread(target=self._serve, args=(opened,), name="adatkg-client", daemon=True)
        self._thread.start()
        try:
            opened.result()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what is being followed and wait until what was published is in the log."""
        with self._lock:
            self._closed = True
            if self._loop is not None and self._over is not None:
                self._loop.call_soon_threadsafe(self._over.set)
            self._loop, thread, self._thread = None, self._thread, None
        if thread is not None:
            thread.join()

    def predictions(self, graph: str | None = None, *, from_beginning: bool = False) -> SyncPredictions:
        """Follow the predictions of a graph, or of all, until the client is closed; each comes once."""
        return SyncPredictions(self, self._client.predictions(graph, from_beginning=from_beginning))

    ask = _waiting(Client.ask)
    publish_fact = _waiting(Client.publish_fact)

    def publish_facts(self, graph: str, facts: Iterable[Fact | tuple[str, str, str, int | str]]) -> int:
        """Append facts in their order and say how many; at one that is unusable it stops, those before it stay."""
        count, left = 0, iter(facts)  # taken in the caller's thread, to which a cursor or a file may belong
        while part := list(islice(left, AT_ONCE)):
            count += self._wait(self._client._append(graph, part, count))
        return count

    # -- private, also for SyncPredictions --------------------------------------------------------------------

    def _serve(self, opened: Future[None]) -> None:
        try:
            asyncio.run(self._live(opened))
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    async def _live(self, opened: Future[None]) -> None:
        """Stay open until the end is wanted; what still waits then is cancelled with the loop."""
        async with self._client:
            with self._lock:
                if self._closed:  # whoever opened it did not wait
                    return
                self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
            opened.set_result(None)
            await self._over.wait()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                work.close()
                raise RuntimeError("the client is not open: use `with SyncClient(...) as client`")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError("the client was closed before this was done") from None
        except BaseException:
            future.cancel()  # Ctrl-C, for one: nobody waits for it any more
            raise


class SyncPredictions(Iterator[Prediction]):
    """Forecasts in the order of the log. Reading begins with the first step, or with `begin()` before."""

    def __init__(self, client: SyncClient, predictions: Predictions) -> None:
        self._client, self._predictions = client, predictions

    def begin(self) -> Self:
        """Take up the place from which to read; whatever is predicted after this returns will come."""
        self._client._wait(self._begun())
        return self

    def __next__(self) -> Prediction:
        try:
            forecast = self._client._wait(self._step())
        except RuntimeError:
            if self._client._closed:
                raise StopIteration from None
            raise
        if forecast is None:
            raise StopIteration
        return forecast

    def close(self) -> None:
        """Stop reading."""
        if not self._client._closed:
            self._client._wait(self._predictions.aclose())

    async def _begun(self) -> None:
        await self._predictions.begin()

    async def _step(self) -> Prediction | None:
        return await anext(self._predictions, None)
