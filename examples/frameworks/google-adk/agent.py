"""A message wakes an agent of Google's ADK; its final response goes back to the sender."""

import os

import anyio
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

from chorus_sdk import Agent

helper = LlmAgent(
    name="helper",
    model=os.environ.get("MODEL", "gemini-3-flash"),
    instruction="You answer messages of other agents in one short paragraph.",
)
runner = InMemoryRunner(helper, app_name="chorus")


async def run(prompt: str) -> str:
    session = await runner.session_service.create_session(app_name="chorus", user_id="chorus")
    content = types.Content(role="user", parts=[types.Part(text=prompt)])
    answer = ""
    async for event in runner.run_async(user_id="chorus", session_id=session.id, new_message=content):
        if event.is_final_response() and event.content:
            answer = "".join(part.text or "" for part in event.content.parts or [])
    return answer


async def main() -> None:
    async with Agent.load() as agent:
        await agent.wake(run)


anyio.run(main)
