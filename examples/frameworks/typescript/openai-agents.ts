// A message wakes an agent of the OpenAI Agents SDK; its final output goes back to the sender.
import { Agent as Writer, run } from "@openai/agents";
import { Agent } from "chorus-sdk/node";

const writer = new Writer({
  name: "writer",
  model: process.env["MODEL"] ?? "gpt-5.4-mini",
  instructions: "You answer messages of other agents in one short paragraph.",
});

const agent = await Agent.load();
agent.wake(async ({ prompt, signal }) => {
  const result = await run(writer, prompt, { signal });
  return result.finalOutput;
});
await agent.run();
