"""Streams through bad days: the hub is killed, cut, silent or stopped; 0 messages lost, 0 twice (SDK-05, SDK-19)."""

from __future__ import annotations

import itertools

import anyio
import pytest
from actors import QUICK, WAIT_S, EventCutter, SilentProxy, agent_at, proxy
from anyio.abc import SocketAttribute, SocketStream
from conftest import MakeAgent

from chorus_sdk import Agent, AgentUnregistered, ConnectionFailed, KeyRotated, Message, Unauthorized
from chorus_sdk.testing import TestHub

pytestmark = pytest.mark.anyio


async def collect(agent: Agent, count: int, since: str = "0") -> list[str]:
    """The texts of messages until there are `count` of them."""
    texts: list[str] = []
    with anyio.fail_after(120):
        async for message in agent.messages(since):
            texts.append(message.text)
            if len(texts) >= count:
                break
    return texts


async def assert_nothing_more(agent: Agent, count: int) -> None:
    """The hub's own history has exactly these messages, so a stream that repeats nothing is complete."""
    rows = await agent.fetch_history(limit=1000)
    assert len([row for row in rows if row["receiver_id"] == agent.agent_id]) == count


# SDK-19
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)
async def test_kill_9_of_the_hub_under_a_stream_of_1000_messages(own_hub: TestHub) -> None:
    alice = await own_hub.agent("alice")
    bob = await own_hub.agent("bob")
    sender = agent_at(own_hub.url, alice)
    receiver = agent_at(own_hub.url, bob)
    expected = [f"message {number}" for number in range(1000)]
    received: list[str] = []
    marks = [anyio.Event() for _ in range(3)]

    async def receive() -> None:
        async for message in receiver.messages("0"):
            received.append(message.text)
            for number, mark in enumerate(marks):
                if len(received) == 200 * (number + 1):
                    mark.set()
            if len(received) >= len(expected):
                return

    async def send() -> None:
        for text in expected:
            while True:
                try:
                    await sender.send(bob.agent_id, text, idempotency_key=text.replace(" ", "-"))
                    break
                except ConnectionFailed:
                    continue  # the hub is away for longer than the attempts of one call

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            tasks.start_soon(send)
            for mark in marks:
                await mark.wait()
                own_hub.kill()
                await anyio.to_thread.run_sync(own_hub.start)
    assert received == expected
    await assert_nothing_more(bob, len(expected))
    for agent in (alice, bob, sender, receiver):
        await agent.close()


async def test_a_proxy_that_cuts_after_every_7_events(hub: TestHub, make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    for number in range(100):
        await alice.send(bob.agent_id, f"message {number}")
    cutter = EventCutter(7)
    async with proxy(hub.url, cutter) as url, agent_at(url, bob) as cut:
        texts = await collect(cut, 100)
    assert texts == [f"message {number}" for number in range(100)]
    assert cutter.cuts >= 100 // 7


async def test_a_proxy_that_accepts_and_says_nothing(hub: TestHub, make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    await alice.send(bob.agent_id, "through at last")
    silent = SilentProxy(times=2)
    async with proxy(hub.url, silent) as url, agent_at(url, bob, silence_timeout=0.3) as patient:
        assert await collect(patient, 1) == ["through at last"]
    assert silent.connections == 3


async def test_a_hub_that_is_stopped_and_goes_on(own_hub: TestHub) -> None:
    alice, bob = await own_hub.agent("alice"), await own_hub.agent("bob")
    patient = agent_at(own_hub.url, bob, silence_timeout=0.3)
    inbox = patient.inbox("0")
    await alice.send(bob.agent_id, "before")
    first = await anext(inbox)
    own_hub.pause()
    with anyio.move_on_after(2) as waited:  # far longer than the silence after which a connection is given up
        await anext(inbox)
    assert waited.cancelled_caught
    own_hub.resume()
    await alice.send(bob.agent_id, "after")
    with anyio.fail_after(WAIT_S):
        second = await anext(inbox)
    assert isinstance(first, Message) and isinstance(second, Message)
    assert (first.text, second.text) == ("before", "after")
    for agent in (alice, bob, patient):
        await agent.close()


ENVELOPE = '{"chorus_version":"0.4","sender_id":"a@h","original_text":"well formed","sender_culture":"en"}'
MIXED_EVENTS = [
    ("connected", "[]"),
    ("message", "no json"),
    ("message", "[1]"),
    ("message", "{}"),
    ("receipt", "3"),
    ("later-kind", "7"),
    ("message", f'{{"trace_id":"t","sender_id":"a@h","timestamp":"x","envelope":{ENVELOPE}}}'),
]


async def test_events_that_cannot_be_understood_are_passed_over() -> None:
    """No hub of ours writes such events, so a server of the test does."""
    lines = [f"event: {name}\nid: {at}\ndata: {data}\n\n" for at, (name, data) in enumerate(MIXED_EVENTS, 1)]

    async def answer(client: SocketStream) -> None:
        async with client:
            await client.receive()
            head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            await client.send((head + "".join(lines)).encode())
            await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        port = listener.extra(SocketAttribute.local_port)
        async with Agent("bob@chorus", "ca_none", f"http://127.0.0.1:{port}") as bob:
            assert await collect(bob, 1) == ["well formed"]
        tasks.cancel_scope.cancel()


async def test_cancelling_loses_nothing(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    async with bob.inbox("0") as inbox:
        with anyio.move_on_after(0.05):
            await anext(inbox)
        for number in range(20):
            await alice.send(bob.agent_id, f"{number}")
        texts: list[str] = []
        for attempt in itertools.count(1):
            if len(texts) == 20:
                break
            with anyio.move_on_after(0.002 * attempt):  # a slow machine succeeds later
                item = await anext(inbox)
                assert isinstance(item, Message)
                texts.append(item.text)
    assert texts == [f"{number}" for number in range(20)]


async def test_a_stream_without_a_cursor_misses_nothing_when_it_breaks(own_hub: TestHub) -> None:
    """It has had no event yet, so it has no id to resume from: history fills the gap."""
    alice, bob = await own_hub.agent("alice"), await own_hub.agent("bob")
    fresh = Agent(bob.agent_id, bob.key, own_hub.url, backoff=QUICK)
    inbox = fresh.inbox()
    await inbox.opened()
    with anyio.move_on_after(0.05):
        await anext(inbox)  # it has handed out nothing, and this breaks its connection
    own_hub.kill()
    await anyio.to_thread.run_sync(own_hub.start)
    await alice.send(bob.agent_id, "while it was away")
    with anyio.fail_after(WAIT_S):
        item = await anext(inbox)
    assert isinstance(item, Message) and item.text == "while it was away"
    for agent in (alice, bob, fresh):
        await agent.close()


async def test_a_rotation_ends_the_stream_and_the_agent_goes_on(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    old = Agent(bob.agent_id, bob.key, bob.hub_url)
    inbox = old.inbox("0")
    await inbox.opened()
    await bob.rotate_key()
    assert bob.key != old.key
    with anyio.fail_after(WAIT_S), pytest.raises(KeyRotated) as ended:
        await anext(inbox)
    assert (ended.value.code, ended.value.status, ended.value.retryable) == ("key_rotated", 401, False)
    with pytest.raises(Unauthorized):
        await old.fetch_usage()
    await alice.send(bob.agent_id, "with the new key")
    assert await collect(bob, 1) == ["with the new key"]
    await old.close()


async def test_unregistering_ends_the_stream(make_agent: MakeAgent) -> None:
    bob = await make_agent("bob")
    inbox = bob.inbox("0")
    await inbox.opened()
    await bob.unregister()
    with anyio.fail_after(WAIT_S), pytest.raises(AgentUnregistered):
        await anext(inbox)


async def test_a_wrong_key_is_final(hub: TestHub) -> None:
    async with Agent("eve@chorus", "ca_wrong", hub.url) as eve:
        with anyio.fail_after(WAIT_S), pytest.raises(Unauthorized) as refused:
            await anext(eve.inbox("0"))
    assert refused.value.request_id
