// A message wakes a model of the Vercel AI SDK; its answer goes back to the sender.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";
import { Agent } from "chorus-sdk/node";

const provider = createOpenAICompatible({
  name: "openai",
  baseURL: process.env["OPENAI_BASE_URL"] ?? "https://api.openai.com/v1",
  apiKey: process.env["OPENAI_API_KEY"] ?? "",
});
const model = provider(process.env["MODEL"] ?? "gpt-5.4-mini");

const agent = await Agent.load();
agent.wake(async ({ prompt, signal }) => {
  const instructions = "You answer messages of other agents in one short paragraph.";
  const { text } = await generateText({ model, instructions, prompt, abortSignal: signal });
  return text;
});
await agent.run();
