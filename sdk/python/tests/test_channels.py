"""Rooms, deliveries and callbacks (SDK-11)."""

from __future__ import annotations

import anyio
import pytest
from actors import WAIT_S, serving
from conftest import MakeAgent

from chorus_sdk import Conflict, Delivery, HubError, InboxEvent, NotFound
from chorus_sdk.channel import RoomStream

pytestmark = pytest.mark.anyio


async def next_of_kind(rows: RoomStream, kind: str) -> dict[str, object]:
    with anyio.fail_after(WAIT_S):
        async for row in rows:
            if row["type"] == kind:
                return dict(row)
    raise AssertionError


async def test_an_invited_agent_accepts_and_answers(make_agent: MakeAgent) -> None:
    alice, timber = await make_agent("alice"), await make_agent("timber")
    room = await alice.create_channel("ops-team", context="Where the team talks.")

    @timber.on_event
    async def accept(event: InboxEvent) -> None:
        if event.name == "channel_invite":
            await timber.channel(room.id).accept("timber")

    @timber.on_delivery
    async def answer(delivery: Delivery) -> None:
        assert delivery.callback.url not in repr(delivery)
        await delivery.callback.status("looking")
        await delivery.callback.tool_call("tc_1", "weather", {"city": "Oslo"})
        await delivery.callback.tool_result("tc_1", "3°C")
        await delivery.callback.message(f"{delivery.message['sender']}, it is 3°C")

    rows = room.stream()
    await rows.opened()
    async with serving(timber):
        await room.add_agent(timber.agent_id, name="timber")
        while (await next_of_kind(rows, "member"))["change"] != "joined":
            pass
        await room.post("@timber what is the weather in Oslo?")
        said = [await next_of_kind(rows, kind) for kind in ("status", "tool_call", "tool_result", "message")]
    await rows.close()
    assert [row["type"] for row in said] == ["status", "tool_call", "tool_result", "message"]
    assert said[-1]["content"] == f"{alice.handle[1:]}, it is 3°C"
    history = await room.fetch_history()
    assert [row["type"] for row in history][-4:] == ["status", "tool_call", "tool_result", "message"]
    assert [row["cursor"] for row in await room.fetch_history(since=history[-2]["cursor"])] == [history[-1]["cursor"]]


async def test_a_delivery_of_the_iterator_is_answered(make_agent: MakeAgent) -> None:
    alice, timber = await make_agent("alice"), await make_agent("timber")
    room = await alice.create_channel("room")
    await room.add_agent(timber.agent_id, name="timber")
    await timber.channel(room.id).accept("timber")
    await room.post("@timber hello")
    with anyio.fail_after(WAIT_S):
        async with timber.inbox("0") as inbox:
            async for item in inbox:
                delivery = timber.read_delivery(item) if isinstance(item, InboxEvent) else None
                if delivery is not None:
                    await delivery.callback.message("hello yourself")
                    break
    assert (await room.fetch_history())[-1].get("content") == "hello yourself"


async def test_an_artifact_is_created_and_edited_from_its_version(make_agent: MakeAgent) -> None:
    alice, timber = await make_agent("alice"), await make_agent("timber")
    room = await alice.create_channel("room")
    made = await room.create_artifact("auth-spec", "# Auth", title="Auth spec")
    assert (made["slug"], made["version"]) == ("auth-spec", 1)
    edited = await room.edit_artifact("auth-spec", {"find": "Auth", "replace": "Access", "version": 1})
    assert edited["version"] == 2
    assert (await room.fetch_artifact("auth-spec"))["content"] == "# Access"
    with pytest.raises(Conflict):
        await room.edit_artifact("auth-spec", {"content": "late", "version": 1})
    await room.add_agent(timber.agent_id, name="timber")
    assert (await room.update_member("timber", deliver="mentions"))["deliver"] == "mentions"
    with pytest.raises(NotFound):
        await room.fetch_file("missing.png")


async def test_many_events_over_one_request(make_agent: MakeAgent) -> None:
    alice, timber = await make_agent("alice"), await make_agent("timber")
    room = await alice.create_channel("room")
    await room.add_agent(timber.agent_id, name="timber")
    await timber.channel(room.id).accept("timber")
    callback = await timber.channel(room.id).create_callback("timber")
    assert callback.url not in repr(callback)
    async with callback.stream() as stream:
        for number in range(20):
            await stream.message(f"line {number}")
    rows = await room.fetch_history(limit=100)
    contents = [row["content"] for row in rows if row["type"] == "message"]
    assert contents == [f"line {number}" for number in range(20)]


async def test_a_stopped_callback_is_an_error_without_its_url(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    callback = alice.callback(f"{alice.hub_url}/channels/ch_0123456789abcdef/inbox/tok_secret")
    with pytest.raises(HubError) as refused:
        await callback.message("hello")
    assert refused.value.status == 404 and "tok_secret" not in f"{refused.value!r}{vars(refused.value)}"


async def test_the_connection_string_is_made_and_revoked(make_agent: MakeAgent) -> None:
    alice, host = await make_agent("alice"), await make_agent("host")
    room = await alice.create_channel("room")
    member = await room.add_connection(await host.create_connection(), "remote")
    assert member["name"] == "remote"
    assert await host.revoke_connection() is True
    assert await host.revoke_connection() is False
    assert (await room.remove_member("remote"))["removed"] is True
    assert [channel["id"] for channel in await alice.list_channels()] == [room.id]
    await room.update(name="renamed")
    assert (await room.fetch())["name"] == "renamed"
    await room.delete()
    assert await alice.list_channels() == []
