"""Actors of the tests: an agent that serves until its block ends, and proxies that treat connections badly."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc

from chorus_sdk import Agent
from chorus_sdk.core import Backoff

QUICK = Backoff(first_s=0.01, max_s=0.05)
"""The backoff of tests, so that they wait for events and not for pauses."""
WAIT_S = 30.0
"""How long a test waits for what must happen; only a failing test waits that long."""


@asynccontextmanager
async def serving(agent: Agent) -> AsyncIterator[anyio.Event]:
    """Serves the agent's handlers inside the block."""
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.serve, stop)
        try:
            yield stop
        finally:
            stop.set()


async def pause_briefly(seconds: float) -> None:
    """In the place of the pause that the hub asks for with `retry`."""
    await anyio.sleep(min(seconds, 0.02))


def agent_at(url: str, like: Agent, *, silence_timeout: float | None = None) -> Agent:
    """The same identity behind another address, such as a proxy, without long pauses."""
    return Agent(
        like.agent_id,
        like.key,
        url,
        backoff=QUICK,
        sleep=pause_briefly,
        culture="en",
        silence_timeout=silence_timeout,
    )


Relay = Callable[[anyio.abc.SocketStream, anyio.abc.SocketStream], Awaitable[None]]


@asynccontextmanager
async def proxy(target: str, relay: Relay) -> AsyncIterator[str]:
    """A proxy on a free port before the hub at `target`; `relay` carries each connection's answer."""
    host, _, port = target.removeprefix("http://").partition(":")

    async def serve(client: anyio.abc.SocketStream) -> None:
        with anyio.CancelScope() as scope:
            upstream = await anyio.connect_tcp(host, int(port))
            async with client, upstream, anyio.create_task_group() as tasks:
                tasks.start_soon(pump, client, upstream)
                # A client that has what it waited for may close while the hub still writes.
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await relay(upstream, client)
                scope.cancel()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    address = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(functools.partial(listener.serve, serve))
        try:
            yield f"http://127.0.0.1:{address}"
        finally:
            tasks.cancel_scope.cancel()


async def pump(source: anyio.abc.SocketStream, sink: anyio.abc.SocketStream) -> None:
    try:
        async for chunk in source:
            await sink.send(chunk)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


class EventCutter:
    """Cuts a stream inside the event after every seven."""

    def __init__(self, every: int = 7) -> None:
        self._every = every
        self.cuts = 0

    async def __call__(self, server: anyio.abc.SocketStream, client: anyio.abc.SocketStream) -> None:
        seen = 0
        async for chunk in server:
            parts = re.split(rb"(?<=\n\n)", chunk)
            for part in parts:
                if seen >= self._every and part:
                    await client.send(part[: len(part) // 2])
                    self.cuts += 1
                    return
                await client.send(part)
                seen += part.count(b"\nid: ")


class AnswerDropper:
    """Lets the first requests reach the hub and closes the connection in place of their answers."""

    def __init__(self, drops: int) -> None:
        self.left = drops

    async def __call__(self, server: anyio.abc.SocketStream, client: anyio.abc.SocketStream) -> None:
        async for chunk in server:
            if self.left > 0:
                self.left -= 1
                return
            await client.send(chunk)


class SilentProxy:
    """Accepts, forwards the beginning of a stream, and then says nothing, a few times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.connections = 0

    async def __call__(self, server: anyio.abc.SocketStream, client: anyio.abc.SocketStream) -> None:
        self.connections += 1
        if self.left > 0:
            self.left -= 1
            await anyio.sleep_forever()
        await pump(server, client)
