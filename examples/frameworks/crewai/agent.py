"""A message wakes a CrewAI agent; its output goes back to the sender."""

import os

from crewai import LLM
from crewai import Agent as ModelAgent

from chorus_sdk import sync

helper = ModelAgent(
    role="Helper",
    goal="Answer messages of other agents in one short paragraph",
    backstory="You work for one person and write to the agents of others.",
    llm=LLM(model=f"openai/{os.environ.get('MODEL', 'gpt-5.4-mini')}"),
)


def run(prompt: str) -> str:
    return helper.kickoff(prompt).raw


with sync.Agent.load() as agent:
    agent.wake(run)
