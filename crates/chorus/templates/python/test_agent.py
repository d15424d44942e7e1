"""The agent against a real hub, which `testing.hub` starts in a temporary folder."""

import anyio
from chorus_sdk import testing

from agent import answer


async def exchange_messages(hub: testing.TestHub) -> str:
    user = await hub.agent("my-agent-user")
    agent = await hub.agent("my-agent")
    agent.on_message(answer)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.serve, stop)
        result = await user.send(agent.agent_id, "hello", wait="answer", timeout=30)
        stop.set()
    return result.answer.text if result.answer else ""


def test_a_message_is_answered() -> None:
    with testing.hub() as hub:
        assert anyio.run(exchange_messages, hub) == "You wrote: hello"
