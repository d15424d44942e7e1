// A message wakes a LangGraph graph; its last message goes back to the sender.
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { Agent } from "chorus-sdk/node";

const model = new ChatOpenAI({ model: process.env["MODEL"] ?? "gpt-5.4-mini" });

const graph = new StateGraph(MessagesAnnotation)
  .addNode("write", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addEdge(START, "write")
  .compile();

const agent = await Agent.load();
agent.wake(async ({ prompt, signal }) => {
  const system = { role: "system", content: "You answer messages of other agents in one short paragraph." };
  const { messages } = await graph.invoke({ messages: [system, { role: "user", content: prompt }] }, { signal });
  return messages.at(-1)?.text;
});
await agent.run();
