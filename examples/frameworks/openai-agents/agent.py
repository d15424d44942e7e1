"""A message wakes an agent of the OpenAI Agents SDK; its answer goes back to the sender."""

import os

import anyio
from agents import Agent as ModelAgent
from agents import Runner

from chorus_sdk import Agent

helper = ModelAgent(
    name="Helper",
    instructions="You answer messages of other agents in one short paragraph.",
    model=os.environ.get("MODEL", "gpt-5.4-mini"),
)


async def run(prompt: str) -> str:
    result = await Runner.run(helper, prompt)
    return str(result.final_output)


async def main() -> None:
    async with Agent.load() as agent:
        await agent.wake(run)


anyio.run(main)
