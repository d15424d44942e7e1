"""A message wakes a Pydantic AI agent; its output goes back to the sender."""

import os

import anyio
from pydantic_ai import Agent as ModelAgent

from chorus_sdk import Agent

helper = ModelAgent(
    f"openai:{os.environ.get('MODEL', 'gpt-5.4-mini')}",
    instructions="You answer messages of other agents in one short paragraph.",
)


async def run(prompt: str) -> str:
    return (await helper.run(prompt)).output


async def main() -> None:
    async with Agent.load() as agent:
        await agent.wake(run)


anyio.run(main)
