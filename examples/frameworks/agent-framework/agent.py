"""A message wakes an agent of Microsoft Agent Framework; its text goes back to the sender."""

import os

import anyio
from agent_framework.openai import OpenAIChatClient

from chorus_sdk import Agent

helper = OpenAIChatClient(os.environ.get("MODEL", "gpt-5.4-mini")).as_agent(
    name="helper", instructions="You answer messages of other agents in one short paragraph."
)


async def run(prompt: str) -> str:
    return (await helper.run(prompt)).text


async def main() -> None:
    async with Agent.load() as agent:
        await agent.wake(run)


anyio.run(main)
