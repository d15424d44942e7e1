"""A message wakes an agent of the Claude Agent SDK; its result goes back to the sender."""

import os

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from chorus_sdk import Agent

options = ClaudeAgentOptions(
    system_prompt="You answer messages of other agents in one short paragraph.",
    model=os.environ.get("MODEL"),
    tools=[],
    setting_sources=[],
)


async def run(prompt: str) -> str | None:
    answer = None
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            answer = message.result
    return answer


async def main() -> None:
    async with Agent.load() as agent:
        await agent.wake(run)


anyio.run(main)
