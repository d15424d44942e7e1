"""Handlers: a return is ok, an exception is ADAPTATION_FAILED, a crash loses nothing (SDK-06…08, SDK-16)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from actors import WAIT_S, serving
from conftest import MakeAgent

from chorus_sdk import Agent, CredentialsError, KeyRotated, ListenerBusy, MemoryStore, Message, Receipt
from chorus_sdk.testing import TestHub, find_binary

pytestmark = pytest.mark.anyio


async def test_a_return_is_ok_and_an_exception_says_nothing_of_itself(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")

    @bob.on_message
    def handle(message: Message) -> None:
        if message.text == "fail":
            raise RuntimeError("the password is hunter2")

    async with serving(bob):
        good = await alice.send(bob.agent_id, "work", wait="receipt", timeout=WAIT_S)
        bad = await alice.send(bob.agent_id, "fail", wait="receipt", timeout=WAIT_S)
    assert good.response == {"status": "ok"}
    assert bad.response is not None and bad.response.get("error_code") == "ADAPTATION_FAILED"
    assert "hunter2" not in json.dumps(bad.response)


async def test_the_cursor_is_saved_after_the_answer(make_agent: MakeAgent) -> None:
    """A crash in the handler repeats the message; one after the answer does not."""
    alice, bob = await make_agent("alice"), await make_agent("bob")
    store = MemoryStore("0")
    await alice.send(bob.agent_id, "first")
    await alice.send(bob.agent_id, "second")
    handled: list[str] = []

    async def run_until_crash(crash_at: str | None) -> None:
        agent = Agent(bob.agent_id, bob.key, bob.hub_url, store=store)
        done = anyio.Event()

        @agent.on_message
        async def handle(message: Message) -> None:
            handled.append(message.text)
            if message.text == crash_at or len(handled) == 3:
                done.set()
            if message.text == crash_at:
                await anyio.sleep_forever()  # the process dies here

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                if crash_at is not None:
                    tasks.start_soon(agent.serve)
                    await done.wait()
                    tasks.cancel_scope.cancel()
                else:
                    async with serving(agent):
                        await done.wait()
        await agent.close()

    await run_until_crash("second")
    await run_until_crash(None)
    assert handled == ["first", "second", "second"]
    rows = await bob.fetch_history()
    assert store.cursor() == str(rows[-1]["id"])


async def test_a_turn_that_comes_again_is_not_handled_again(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    handled: list[str] = []

    @bob.on_message
    async def handle(message: Message) -> None:
        handled.append(message.text)
        await message.fail("BUSY")

    async with serving(bob):
        for text in ("once", "once, tried again"):
            sent = await alice.send(
                bob.agent_id, text, conversation_id="t", turn_number=3, wait="receipt", timeout=WAIT_S
            )
            assert sent.response == {"status": "error", "error_code": "BUSY"}
    assert handled == ["once"]


async def test_receipts_and_stop(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    heard: list[Receipt] = []
    came = anyio.Event()

    @alice.on_receipt
    async def note(receipt: Receipt) -> None:
        heard.append(receipt)
        came.set()

    @bob.on_message
    async def take(message: Message) -> None:
        pass

    with anyio.fail_after(WAIT_S):
        async with serving(alice), serving(bob):
            sent = await alice.send(bob.agent_id, "hello")
            await came.wait()
    assert [receipt.trace_id for receipt in heard] == [sent.trace_id]


async def test_a_handler_that_runs_when_the_agent_stops_is_finished(make_agent: MakeAgent) -> None:
    alice, bob = await make_agent("alice"), await make_agent("bob")
    began, go_on = anyio.Event(), anyio.Event()

    @bob.on_message
    async def work(message: Message) -> None:
        began.set()
        await go_on.wait()

    with anyio.fail_after(WAIT_S):
        async with serving(bob) as stop:
            sent = await alice.send(bob.agent_id, "long work")
            await began.wait()
            stop.set()
            go_on.set()
    assert (await alice.fetch_status(sent.trace_id))["status"] == "acknowledged"


async def test_a_rotated_key_ends_serve(make_agent: MakeAgent) -> None:
    bob = await make_agent("bob")
    other = Agent(bob.agent_id, bob.key, bob.hub_url)

    @bob.on_message
    async def take(message: Message) -> None:
        pass

    async def rotate() -> None:
        await other.send(bob.agent_id, "it listens when this is acknowledged", wait="receipt", timeout=WAIT_S)
        await other.rotate_key()

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rotate)
            with pytest.raises(KeyRotated):
                await bob.serve()
    await other.close()


# SDK-02, SDK-08
async def test_an_identity_works_in_the_sdk_and_in_the_command_line(
    hub: TestHub, tmp_path: Path, name: Callable[[str], str]
) -> None:
    file = tmp_path / "bot.json"
    made = await Agent.register(name("bot"), hub.url, credentials=file, culture="de")
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CredentialsError):
        await Agent.register(name("other"), hub.url, credentials=file)

    def chorus(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [find_binary(), "--credentials", str(file), "--json", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)

    shown = await anyio.to_thread.run_sync(lambda: chorus("whoami"))
    assert made.agent_id in shown.stdout and shown.returncode == 0, shown.stderr
    loaded = Agent.load(file)
    assert (loaded.agent_id, loaded.hub_url) == (made.agent_id, hub.url)

    async def take(message: Message) -> None:
        pass

    loaded.on_message(take)
    async with serving(loaded):
        await made.send(loaded.agent_id, "it listens when this is acknowledged", wait="receipt", timeout=WAIT_S)
        busy = await anyio.to_thread.run_sync(lambda: chorus("listen", "--once"))
        assert busy.returncode != 0 and "another listener keeps" in busy.stderr
        second = Agent.load(file)
        second.on_message(take)
        with pytest.raises(ListenerBusy, match="another listener keeps"):
            await second.serve()
        await second.close()

    sent = await loaded.send(loaded.agent_id, "to myself")
    taken = await anyio.to_thread.run_sync(lambda: chorus("listen", "--once"))
    assert sent.trace_id in taken.stdout, taken.stderr
    state = json.loads((tmp_path / "bot-state.json").read_text())
    assert (state["agent_id"], state["culture"]) == (made.agent_id, "de") and int(state["cursor"]) > 0
    for agent in (made, loaded):
        await agent.close()
