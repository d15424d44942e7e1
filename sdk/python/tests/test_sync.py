"""The sync face: the same names, in threads, and beside a running event loop (SDK-15, PY-02)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from actors import WAIT_S

from chorus_sdk import InvalidInput, NotFound, Receipt, sync
from chorus_sdk.sync import StopSignal
from chorus_sdk.testing import TestHub

SOURCE = str(Path(__file__).parent.parent / "src")


def test_a_conversation_without_async(hub: TestHub, name: Callable[[str], str]) -> None:
    alice = sync.Agent.register(name("alice"), hub.url, save=False)
    bob = sync.Agent.register(name("bob"), hub.url, save=False)
    threads: set[int] = set()

    @bob.on_message
    def answer(message: sync.Message) -> None:
        threads.add(threading.get_ident())
        if message.turn_number == 1:
            message.reply(f"{message.text} yourself").ok()

    stop = StopSignal()
    server = threading.Thread(target=bob.serve, args=(stop,))
    server.start()
    result = alice.send(bob.agent_id, "hello", wait="answer", timeout=WAIT_S)
    assert result.answer is not None and result.answer.text == "hello yourself"
    result.answer.ack()
    with alice.inbox("0") as inbox:
        items = [next(inbox), next(inbox)]
    assert {type(item).__name__ for item in items} == {"Message", "Receipt"}
    assert any(isinstance(item, Receipt) and item.trace_id == result.trace_id for item in items)
    texts = []
    for message in alice.messages("0"):
        texts.append(message.text)
        break
    assert texts == ["hello yourself"]
    with alice.session("cc-one").lock("a resource") as lease:
        assert lease
    assert isinstance(alice.create_channel("room"), sync.Room)
    with pytest.raises(NotFound):
        alice.send("nobody-at-all@chorus", "hello")
    stop.set()
    server.join(WAIT_S)
    assert not server.is_alive()
    assert threading.get_ident() not in threads
    alice.close()
    bob.close()


def test_beside_a_running_event_loop(hub: TestHub, name: Callable[[str], str]) -> None:
    """A notebook has a loop in its thread: the sync face works there, and `run` says what to do instead."""

    async def cell() -> str:
        alice = sync.Agent.register(name("alice"), hub.url, save=False)
        delivery = alice.send(alice.agent_id, "from a notebook").delivery
        with pytest.raises(InvalidInput, match=r"await agent\.serve"):
            alice._inner.run()
        alice.close()
        return delivery

    assert asyncio.run(cell()) == "queued"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("face", ["from chorus_sdk import Agent", "from chorus_sdk.sync import Agent"])
def test_run_ends_on_a_signal(
    hub: TestHub, name: Callable[[str], str], tmp_path: Path, number: signal.Signals, face: str
) -> None:
    file = tmp_path / "agent.json"
    sync.Agent.register(name("agent"), hub.url, credentials=file).close()
    program = f"""
        import logging
        {face}
        agent = Agent.load({str(file)!r})
        @agent.on_message
        def handle(message):
            print(message.text, flush=True)
        agent.run()
        print("ended", flush=True)
    """
    sender = sync.Agent.load(file)
    sender.send(sender.agent_id, "ready")
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    rest, _ = child.communicate(timeout=WAIT_S)
    assert (rest, child.returncode) == ("ended\n", 0)
    sender.close()


def test_import_is_quick() -> None:
    """PY-02, in time of the processor, so that a busy machine does not count; httpx2 and anyio are imported before."""
    script = "import time, httpx2, anyio; t = time.process_time(); import chorus_sdk; print(time.process_time() - t)"
    times = []
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": SOURCE}
        )
        times.append(float(run.stdout))
    assert min(times) < 0.15
