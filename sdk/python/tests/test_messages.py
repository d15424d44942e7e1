"""Sending: one key per call, receipts, answers, failures as results (SDK-03, SDK-04, SDK-07)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import anyio
import pytest
from actors import QUICK, WAIT_S, AnswerDropper, SilentProxy, agent_at, proxy, serving
from anyio.abc import SocketStream
from conftest import MakeAgent

from chorus_sdk import (
    Agent,
    Conflict,
    ConnectionFailed,
    DeliveryFailed,
    HubClient,
    InboxEvent,
    Message,
    NotFound,
    Receipt,
    SendResult,
    WaitTimeout,
)
from chorus_sdk.core import ApiCall
from chorus_sdk.testing import TestHub

pytestmark = pytest.mark.anyio


async def received_texts(agent: Agent) -> list[str]:
    rows = await agent.fetch_history(limit=1000)
    return [row["envelope"]["original_text"] for row in rows if row["receiver_id"] == agent.agent_id]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)
async def test_a_message_arrives_and_its_sender_hears_the_receipt(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    sent = await alice.send(bob.agent_id, "請多指教", culture="zh-TW", cultural_context="A polite phrase on meeting.")
    assert sent.ok().delivery == "queued"
    async with bob.inbox() as inbox:
        message = await anext(inbox)
        assert isinstance(message, Message)
        assert (message.sender, message.text, message.culture) == (alice.agent_id, "請多指教", "zh-TW")
        await message.ack()
    async with alice.inbox() as receipts:
        receipt = await anext(receipts)
    assert isinstance(receipt, Receipt)
    assert (receipt.trace_id, receipt.receiver, receipt.response) == (sent.trace_id, bob.agent_id, {"status": "ok"})
    assert (await alice.fetch_status(sent.trace_id))["status"] == "acknowledged"


async def test_a_lost_answer_is_asked_for_again_and_the_message_arrives_once(
    hub: TestHub, make_agent: MakeAgent
) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    dropper = AnswerDropper(drops=4)
    async with proxy(hub.url, dropper) as url, agent_at(url, alice) as unlucky:
        sent = await unlucky.send(bob.agent_id, "once")
    assert dropper.left == 0
    assert (await bob.fetch_history())[0]["trace_id"] == sent.trace_id
    assert await received_texts(bob) == ["once"]


#
async def test_a_lost_answer_to_a_registration_brings_the_same_key(hub: TestHub, name: Callable[[str], str]) -> None:
    dropper = AnswerDropper(drops=2)
    async with proxy(hub.url, dropper) as url:
        carol = await Agent.register(name("carol"), url, save=False)
    assert dropper.left == 0
    async with carol, agent_at(hub.url, carol) as direct:
        assert (await direct.fetch_record())["agent_id"] == carol.agent_id


async def test_what_is_made_is_made_once_when_its_answers_are_lost(hub: TestHub, make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    async with proxy(hub.url, AnswerDropper(drops=2)) as url, agent_at(url, alice) as unlucky:
        room = await unlucky.create_channel("once")
    assert [channel["id"] for channel in await alice.list_channels()] == [room.id]
    async with proxy(hub.url, AnswerDropper(drops=2)) as url, agent_at(url, alice) as unlucky:
        made = await unlucky.create_key("reader", ["read"])
    assert [key["id"] for key in await alice.list_keys()] == [made["id"]]
    async with proxy(hub.url, AnswerDropper(drops=2)) as url, agent_at(url, alice) as unlucky:
        connection = await unlucky.create_connection()
    assert (await alice.channel(room.id).add_connection(connection, "remote"))["name"] == "remote"


async def test_five_attempts_are_the_end(hub: TestHub, make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    dropper = AnswerDropper(drops=6)  # one for the look at the version, five for the send
    async with proxy(hub.url, dropper) as url, agent_at(url, alice) as unlucky:
        with pytest.raises(ConnectionFailed) as failed:
            await unlucky.send(bob.agent_id, "maybe")
        assert failed.value.retryable and alice.key not in str(failed.value)
    assert dropper.left == 0
    assert await received_texts(bob) == ["maybe"]


async def test_two_racing_sends_with_one_key_are_one_message(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    results: list[SendResult] = []

    async def send() -> None:
        results.append(await alice.send(bob.agent_id, "who is first?", idempotency_key="one-race"))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(send)
    assert len({result.trace_id for result in results}) == 1
    assert await received_texts(bob) == ["who is first?"]
    with pytest.raises(Conflict) as refused:
        await alice.send(bob.agent_id, "another text", idempotency_key="one-race")
    assert refused.value.code == "ERR_IDEMPOTENCY_CONFLICT"


async def test_nothing_but_transient_errors_is_tried_again(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    pauses: list[float] = []

    async def note_pause(seconds: float) -> None:
        pauses.append(seconds)

    async with Agent(alice.agent_id, alice.key, alice.hub_url, sleep=note_pause) as watched:
        with pytest.raises(NotFound) as refused:
            await watched.send("nobody-here@chorus", "hello?")
    assert refused.value.code == "ERR_AGENT_NOT_FOUND" and refused.value.request_id
    assert pauses == []


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)
async def test_waiting_for_a_receipt_and_for_an_answer(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")

    @bob.on_message
    async def answer(message: Message) -> None:
        if message.text == "refuse this":
            await message.fail("NOT_TODAY", "ask tomorrow")
        elif message.turn_number == 1:
            await message.reply(f"{message.text} yourself")

    async with serving(bob):
        receipt = await alice.send(bob.agent_id, "hello", wait="receipt", timeout=WAIT_S)
        assert receipt.ok().response == {"status": "ok"}
        answered = await alice.send(bob.agent_id, "good day", wait="answer", timeout=WAIT_S)
        assert answered.answer is not None
        assert (answered.answer.text, answered.answer.turn_number) == ("good day yourself", 2)
        assert answered.answer.conversation_id == answered.conversation_id
        refused = await alice.send(bob.agent_id, "refuse this", wait="receipt", timeout=WAIT_S)
        with pytest.raises(DeliveryFailed) as raised:
            refused.ok()
        assert (raised.value.code, str(raised.value)) == ("NOT_TODAY", "ask tomorrow")


#
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"], indirect=True)
async def test_waiting_until_a_message_was_shown(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")

    async def show() -> None:
        async with bob.inbox("0") as inbox:
            message = await anext(inbox)
        assert isinstance(message, Message)
        await message.mark_shown()
        await message.mark_shown()

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(show)
            sent = await alice.send(bob.agent_id, "do you see this?", wait="shown", timeout=WAIT_S)
        async with alice.inbox("0") as inbox:
            event = await anext(inbox)
    status = await alice.fetch_status(sent.trace_id)
    assert sent.shown_at is not None and status.get("shown_at") == sent.shown_at, "the first time stands"
    assert sent.response is None and status["status"] != "acknowledged", "it is no receipt"
    assert isinstance(event, InboxEvent) and event.name == "shown"
    assert event.data == {"trace_id": sent.trace_id, "receiver_id": bob.agent_id, "timestamp": sent.shown_at}
    with pytest.raises(NotFound):
        await alice.mark_shown(sent.trace_id)  # only the receiver can say it


async def test_an_acknowledged_message_was_not_shown_by_that(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    bob.on_message(lambda message: None)
    async with serving(bob):
        sent = await alice.send(bob.agent_id, "hello", wait="receipt", timeout=WAIT_S)
        assert "shown_at" not in await alice.fetch_status(sent.trace_id)
        with pytest.raises(WaitTimeout):
            await alice.send(bob.agent_id, "hello", wait="shown", timeout=0.2)


@pytest.mark.parametrize("wait", ["shown", "receipt", "answer"])
async def test_a_fact_that_came_while_the_stream_was_away_is_asked_for(
    hub: TestHub, make_agent: MakeAgent, wait: Literal["shown", "receipt", "answer"]
) -> None:
    """The stream of the waiting send is cut, and the fact comes before it is back."""
    alice, bob = await make_agent("alice"), await make_agent("bob")
    cut = anyio.Event()

    async def cut_the_stream(server: SocketStream, client: SocketStream) -> None:
        async for chunk in server:
            await client.send(chunk)
            if b"event: connected" in chunk and not cut.is_set():
                await cut.wait()
                return

    async def answer() -> None:
        message = await anext(aiter(bob.messages("0")))
        cut.set()
        await message.mark_shown()
        await message.reply("good day")
        await message.ack()

    async def hold_back(seconds: float) -> None:
        while (await bob.fetch_history())[-1]["sender_id"] != bob.agent_id:
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(WAIT_S):
        async with proxy(hub.url, cut_the_stream) as url, anyio.create_task_group() as tasks:
            away = Agent(alice.agent_id, alice.key, url, sleep=hold_back, culture="en")
            tasks.start_soon(answer)
            result = await away.send(bob.agent_id, "hello", wait=wait, timeout=WAIT_S)
            await away.close()
    if wait == "answer":
        assert result.answer is not None and result.answer.text == "good day"
    elif wait == "shown":
        assert result.shown_at is not None
    else:
        assert result.response == {"status": "ok"}


async def test_a_silent_hub_is_given_up_and_asked_again(hub: TestHub, make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    silent = SilentProxy(times=2)
    async with proxy(hub.url, silent) as url:
        client = HubClient(url, alice.key, backoff=QUICK, call_timeout=0.3)
        async with client:
            answer = await client.send_call(ApiCall("GET", "/agent/usage", is_repeatable=True))
    assert answer.status == 200 and silent.connections == 3


async def test_a_wait_that_ends_is_an_error_and_the_message_stays(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    with pytest.raises(WaitTimeout):
        await alice.send(bob.agent_id, "are you there?", wait="receipt", timeout=0.1)
    assert await received_texts(bob) == ["are you there?"]


async def test_failed_is_a_result_and_ok_raises(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    gone = await make_agent("gone", endpoint="http://127.0.0.1:9/closed")
    result = await alice.send(gone.agent_id, "to a closed port")
    assert (result.delivery, result.error_code) == ("failed", "ERR_AGENT_UNREACHABLE")
    with pytest.raises(DeliveryFailed):
        result.ok()


async def test_an_older_hub_is_named_in_one_warning(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alice = await make_agent("alice")
    monkeypatch.setattr("chorus_sdk.client.VERSION", "99.1.0")
    for _ in range(2):
        await alice.send(alice.agent_id, "hello")
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and "99.1.0" in warnings[0]


async def test_errors_have_a_code_and_no_secret(hub: TestHub, make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    wrong = Agent(alice.agent_id, "ca_very_secret", hub.url)
    with pytest.raises(Exception) as refused:
        await wrong.fetch_usage()
    assert "ca_very_secret" not in f"{refused.value!r}{refused.value}{wrong!r}{vars(refused.value)}"
    await wrong.close()
