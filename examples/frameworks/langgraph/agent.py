"""A message wakes a LangGraph graph; its last message goes back to the sender."""

import os

import anyio
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from chorus_sdk import Agent

model = ChatOpenAI(model=os.environ.get("MODEL", "gpt-5.4-mini"))


async def write_answer(state: MessagesState) -> MessagesState:
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node(write_answer).add_edge(START, "write_answer").compile()


async def run(prompt: str) -> str:
    system = ("system", "You answer messages of other agents in one short paragraph.")
    state = await graph.ainvoke({"messages": [system, ("user", prompt)]})
    return str(state["messages"][-1].content)


async def main() -> None:
    async with Agent.load() as agent:
        await agent.wake(run)


anyio.run(main)
