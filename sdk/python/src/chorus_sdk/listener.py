"""Handlers and the loop that serves them: a return is `ok`, an exception is `ADAPTATION_FAILED` (SDK-06, SDK-16)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.to_thread

from . import limits
from .base import AgentBase
from .channel import Delivery, parse_delivery
from .errors import ConnectionFailed, HubError, InvalidInput, single_error
from .message import (
    ADAPTATION_FAILED,
    InboxEvent,
    InboxItem,
    Message,
    Receipt,
    ReplyCache,
    parse_inbox_event,
)
from .types import ReceiverReply
from .worker import SkillHandler, SkillWorker

if TYPE_CHECKING:
    from .agent import Agent

log = logging.getLogger("chorus_sdk")
MessageHandler = Callable[[Message], Awaitable[None] | None]
ReceiptHandler = Callable[[Receipt], Awaitable[None] | None]
DeliveryHandler = Callable[[Delivery], Awaitable[None] | None]
EventHandler = Callable[[InboxEvent], Awaitable[None] | None]
M = TypeVar("M", bound=MessageHandler)
R = TypeVar("R", bound=ReceiptHandler)
D = TypeVar("D", bound=DeliveryHandler)
E = TypeVar("E", bound=EventHandler)
QUEUE_LEN = 1000
"""Max events read ahead of a busy handler; beyond it the stream waits, and the hub keeps what is not read."""


class HandlerCalls(AgentBase):
    """The handlers of an agent and `serve`, which runs them."""

    _skills: dict[str, SkillHandler]
    _awaited_conversations: set[str]

    def _init_handlers(self) -> None:
        self._message_handler: MessageHandler | None = None
        self._receipt_handler: ReceiptHandler | None = None
        self._delivery_handler: DeliveryHandler | None = None
        self._event_handler: EventHandler | None = None
        self._skills = {}
        self._awaited_conversations = set()
        self._replies = ReplyCache()

    def on_message(self, handler: M) -> M:
        """Calls `handler` for every message, one at a time and in order. When it returns, the sender hears `ok`; when
        it raises, the sender hears `ADAPTATION_FAILED` and nothing of the exception. A function that is not async runs
        in a thread of its own. After a crash a message may come again; it is never lost."""
        self._message_handler = handler
        return handler

    def on_receipt(self, handler: R) -> R:
        """Calls `handler` when a receiver has acknowledged a message of this agent."""
        self._receipt_handler = handler
        return handler

    def on_delivery(self, handler: D) -> D:
        """Calls `handler` for every delivery of a channel; it answers with `delivery.callback`."""
        self._delivery_handler = handler
        return handler

    def on_event(self, handler: E) -> E:
        """Calls `handler` for every other event with a cursor, such as `channel_invite` and `job_result`."""
        self._event_handler = handler
        return handler

    def run(self, *, backend: str = "asyncio") -> None:
        """Serves the handlers until SIGINT or SIGTERM. In a program that has an event loop, await `serve` instead."""
        if _is_loop_running():
            raise InvalidInput("an event loop runs in this thread already: use `await agent.serve()`")
        anyio.run(self._run_until_signal, backend=backend)

    async def _run_until_signal(self) -> None:
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            if threading.current_thread() is threading.main_thread():
                tasks.start_soon(_wait_for_signal, stop)
            await self.serve(stop)
            tasks.cancel_scope.cancel()
        await self.close()

    async def serve(self, stop: anyio.Event | None = None) -> None:
        """Serves the handlers until `stop` is set, the task is cancelled, or the key is no longer valid. Handlers that
        run when it stops get ten seconds."""
        agent = cast("Agent", self)
        await self._client.check_version()
        # An agent with skills alone leaves its mail, and the position in it, to the process that reads it.
        is_listener = self._has_handlers()
        if is_listener:
            self._store.acquire()
        try:
            worker = SkillWorker(agent, self._skills)
            await worker.publish()
            try:
                await self._serve_events(stop or anyio.Event(), worker)
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(limits.HANDLER_GRACE_S):
                    await worker.withdraw()
        except BaseExceptionGroup as group:
            raise single_error(group) from None
        finally:
            if is_listener:
                self._store.release()

    def _has_handlers(self) -> bool:
        handlers = (self._message_handler, self._receipt_handler, self._delivery_handler, self._event_handler)
        return any(handler is not None for handler in handlers)

    async def _serve_events(self, stop: anyio.Event, worker: SkillWorker) -> None:
        sender, receiver = anyio.create_memory_object_stream[InboxItem](QUEUE_LEN)
        stopping = False

        reading = anyio.CancelScope()
        handled = anyio.Event()

        async def read() -> None:
            with reading:
                async with sender:
                    await self._read_events(sender.send, worker)

        async def handle() -> None:
            async with receiver:
                async for item in receiver:
                    if stopping:
                        break
                    await self._handle_item(item)
            handled.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            tasks.start_soon(read)
            tasks.start_soon(handle)
            await stop.wait()
            stopping = True
            worker.stop()
            reading.cancel()  # ends the queue, and with it the handler loop after its message
            with anyio.move_on_after(limits.HANDLER_GRACE_S):
                await handled.wait()
                await worker.finished.wait()
            tasks.cancel_scope.cancel()

    async def _read_events(self, put: Callable[[InboxItem], Awaitable[None]], worker: SkillWorker) -> None:
        agent = cast("Agent", self)
        since = self._store.cursor() if self._has_handlers() else None
        async with agent._open_inbox(since) as stream:  # pyright: ignore[reportPrivateUsage]
            async for event in stream:
                if event.name == "connected":
                    await worker.on_connected()
                    continue
                item = parse_inbox_event(agent, event)
                if isinstance(item, InboxEvent):
                    worker.on_event(item)
                if item is not None:
                    await put(item)

    async def _handle_item(self, item: InboxItem) -> None:
        if isinstance(item, Message):
            await self._handle_message(item)
        elif isinstance(item, Receipt):
            await self._call_handler(self._receipt_handler, item)
        else:
            delivery = parse_delivery(self._client, item)
            if delivery is not None:
                await self._call_handler(self._delivery_handler, delivery)
            else:
                await self._call_handler(self._event_handler, item)
        if item.cursor is not None and self._has_handlers():
            await anyio.to_thread.run_sync(self._store.save_cursor, item.cursor)

    async def _handle_message(self, message: Message) -> None:
        reply = await self.decide_reply(message)
        if reply is not None and message.answered is None:
            await self._send_reply(message, reply)

    async def decide_reply(self, message: Message) -> ReceiverReply | None:
        """Runs the handler, unless the turn was handled before; None without a handler. The endpoint receiver uses it
        too, so that both ways answer alike."""
        if message.conversation_id in self._awaited_conversations and (message.turn_number or 1) > 1:
            return {"status": "ok"}  # `send(wait="answer")` takes it
        if self._message_handler is None:
            return None
        reply = self._replies.get(message)
        if reply is None:
            reply = await self._run_message_handler(self._message_handler, message)
            self._replies.insert(message, message.answered or reply)
        return reply

    async def _run_message_handler(self, handler: MessageHandler, message: Message) -> ReceiverReply:
        try:
            await call_handler(handler, message)
        except Exception:
            log.exception("the handler failed for message %s", message.trace_id)
            return {
                "status": "error",
                "error_code": ADAPTATION_FAILED,
                "detail": "the receiver's handler failed",
            }
        return {"status": "ok"}

    async def _send_reply(self, message: Message, reply: ReceiverReply) -> None:
        """Sends the reply; while the hub is away it waits, because the cursor is saved only after it."""
        failures = 0
        while True:
            try:
                await cast("Agent", self).respond(message.trace_id, reply)
                return
            except (ConnectionFailed, HubError) as error:
                if not error.retryable:
                    # 409: the message has another answer already. 404: it is gone. Neither changes by waiting.
                    log.warning("the reply to %s was refused: %s", message.trace_id, error.code)
                    if error.status == 401:
                        raise
                    return
            failures += 1
            await self._client.sleep(self._client.backoff.delay_after(failures))

    async def _call_handler(self, handler: Callable[[Any], Awaitable[None] | None] | None, item: object) -> None:
        if handler is None:
            return
        try:
            await call_handler(handler, item)
        except Exception:
            log.exception("a handler failed")


async def call_handler(handler: Callable[[Any], Any], item: object) -> Any:
    """Calls a handler of either kind; one that is not async gets a thread, so that it does not stop the others."""
    if inspect.iscoroutinefunction(handler):
        return await handler(item)
    result = await anyio.to_thread.run_sync(handler, item)
    return await result if inspect.isawaitable(result) else result


async def _wait_for_signal(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            stop.set()
            return


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
