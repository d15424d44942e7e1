"""The handlers of the sync face: plain functions that get sync objects and run in threads of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from ._portal import SyncObject, call, close_at_exit, get_portal, wrap
from .message import InboxEvent, Receipt
from .wake import WakeBudget

if TYPE_CHECKING:
    from .market import Amount
    from .sync import Delivery, Message

M = TypeVar("M", bound="Callable[[Message], None]")
R = TypeVar("R", bound=Callable[[Receipt], None])
D = TypeVar("D", bound="Callable[[Delivery], None]")
E = TypeVar("E", bound=Callable[[InboxEvent], None])
F = TypeVar("F", bound=Callable[[Any], Any])


class HandlerFace(SyncObject):
    """Handlers, and `run`, which serves them."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        close_at_exit(inner)

    def on_message(self, handler: M) -> M:
        """See `chorus_sdk.Agent.on_message`; the handler runs in a thread and gets a sync `Message`."""
        self._inner.on_message(_with_sync_object(handler))
        return handler

    def on_receipt(self, handler: R) -> R:
        self._inner.on_receipt(handler)
        return handler

    def on_delivery(self, handler: D) -> D:
        self._inner.on_delivery(_with_sync_object(handler))
        return handler

    def on_event(self, handler: E) -> E:
        self._inner.on_event(handler)
        return handler

    def skill(
        self,
        name: str,
        *,
        cost: Amount,
        description: str | None = None,
        input: type | Mapping[str, object] | None = None,
        output: type | Mapping[str, object] | None = None,
        concurrency: int = 1,
        timeout: float = 60.0,
    ) -> Callable[[F], F]:
        """See `chorus_sdk.Agent.skill`."""

        def decorate(function: F) -> F:
            options = {"input": input, "output": output, "concurrency": concurrency, "timeout": timeout}
            self._inner.skill(name, cost=cost, description=description, **options)(function)
            return function

        return decorate

    def serve(self, stop: StopSignal | None = None) -> None:
        """Serves the handlers until `stop` is set, or the caller's thread is interrupted."""
        waiting = stop or StopSignal()
        try:
            call(self._serve_until, self._inner.serve, waiting)
        except KeyboardInterrupt:
            waiting.set()

    def run(self) -> None:
        """`serve` until SIGINT or SIGTERM; a handler that runs then has ten seconds."""
        import signal
        import threading

        stop = StopSignal()
        if threading.current_thread() is threading.main_thread():

            def end(number: int, frame: object) -> None:
                stop.set()

            before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                self.serve(stop)
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
        else:
            self.serve(stop)

    def wake(
        self, run: Callable[[str], str | None], *, stop: StopSignal | None = None, budget: WakeBudget | None = None
    ) -> None:
        """See `chorus_sdk.Agent.wake`; `run` is called in a thread."""

        async def serve(event: anyio.Event) -> None:
            await self._inner.wake(run, budget=budget, stop=event)

        call(self._serve_until, serve, stop or StopSignal())

    async def _serve_until(self, serve: Callable[[anyio.Event], Any], stop: StopSignal) -> None:
        event = anyio.Event()
        stop.attach(event)
        await serve(event)


class StopSignal:
    """Ends `serve` from another thread."""

    def __init__(self) -> None:
        self._is_set = False
        self._event: anyio.Event | None = None

    def attach(self, event: anyio.Event) -> None:
        self._event = event
        if self._is_set:
            event.set()

    def set(self) -> None:
        self._is_set = True
        event = self._event
        if event is not None:
            get_portal().start_task_soon(event.set)


def _with_sync_object(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(handler)
    def handle(item: object) -> Any:
        return handler(wrap(item))

    return handle
