"""The thread of the sync face: one event loop in the background, never in the caller's thread (SDK-15)."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from typing import Any
from weakref import WeakSet

from anyio.from_thread import BlockingPortal, start_blocking_portal

_lock = threading.Lock()
_open_agents: WeakSet[Any] = WeakSet()
_exit_stack = ExitStack()
_portal: BlockingPortal | None = None
SYNC_CLASSES: dict[type, Callable[[Any], Any]] = {}
"""The sync class of each async one, filled by `chorus_sdk.sync`."""


def get_portal() -> BlockingPortal:
    """The portal of this process, started when it is first needed."""
    global _portal
    with _lock:
        if _portal is None:
            _portal = _exit_stack.enter_context(start_blocking_portal("asyncio"))
            atexit.register(_close_all)
        return _portal


def _close_all() -> None:
    """Ends the streams before the event loop, which cannot end a generator that is read from."""
    for agent in list(_open_agents):
        call(agent.close)
    _exit_stack.close()


def close_at_exit(agent: Any) -> None:
    _open_agents.add(agent)


def call(function: Callable[..., Awaitable[Any]], *positional: Any, **named: Any) -> Any:
    """Runs an async function in the background thread and waits. An interrupted wait cancels it."""
    future = get_portal().start_task_soon(functools.partial(_await, function, *positional, **named))
    try:
        return wrap(future.result())
    except BaseException:
        future.cancel()
        raise


async def _await(function: Callable[..., Awaitable[Any]], *positional: Any, **named: Any) -> Any:
    return await function(*positional, **named)


def wrap(value: Any) -> Any:
    """The sync object of an async one; other values stay."""
    kind: type[Any] = value.__class__
    make = SYNC_CLASSES.get(kind)
    if make is not None:
        return make(value)
    if kind is list:
        return [wrap(one) for one in value]
    return value


def copy_fields(target: type[Any]) -> Callable[[Any], Any]:
    """Makes the sync twin of a dataclass."""

    def copy(value: Any) -> Any:
        return target(**{field.name: wrap(getattr(value, field.name)) for field in dataclasses.fields(value)})

    return copy


@contextmanager
def enter(manager: AbstractAsyncContextManager[Any]) -> Generator[Any, None, None]:
    wrapped: AbstractContextManager[Any] = get_portal().wrap_async_context_manager(manager)
    with wrapped as value:
        yield wrap(value)


def iterate(items: AsyncGenerator[Any, None]) -> Generator[Any, None, None]:
    """A generator over an async one; closing it closes the other."""
    try:
        while True:
            try:
                yield call(items.__anext__)
            except StopAsyncIteration:
                return
    finally:
        call(items.aclose)


class SyncObject:
    """What every class of the sync face has: the async object that does the work."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)
