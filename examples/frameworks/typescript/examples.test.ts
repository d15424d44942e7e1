// Every example is started as a user starts it, offline: a message wakes it, its model is a script, the sender gets the
// answer and hears the receipt.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Agent } from "chorus-sdk/node";
import { hub } from "chorus-sdk/testing";

const ANSWER = "Thursday suits us.";
const QUESTION = "Shall we meet on Thursday?";
const folder = import.meta.dirname;
const examples = (await readdir(folder)).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));

const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
const chatCompletion = {
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: ANSWER }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
const response = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  status: "completed",
  model: "m",
  parallel_tool_calls: true,
  tool_choice: "auto",
  tools: [],
  usage: { ...usage, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
  output: [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text: ANSWER, annotations: [] }] }],
};

/** A model endpoint that answers every request with one text, and keeps what it was asked. */
async function startModel(t: TestContext): Promise<{ url: string; prompts: string[] }> {
  const prompts: string[] = [];
  const server = createServer(async (request, reply) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    prompts.push(body);
    const answer = request.url?.endsWith("/responses") === true ? response : chatCompletion;
    reply.setHeader("content-type", "application/json").end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, prompts };
}

for (const example of examples) {
  test(`a message wakes ${example}, and its answer comes back`, async (t) => {
    const lines = (await readFile(join(folder, example), "utf8")).trimEnd().split("\n");
    assert.ok(lines.length <= 40, `${example} has ${lines.length} lines`);
    const server = await hub();
    t.after(() => server.stop());
    const model = await startModel(t);
    const home = await mkdtemp(join(tmpdir(), "chorus-example-"));
    t.after(() => rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
    await Agent.register({ hub: server.url, name: "woken", credentials: join(home, "config.json") });
    const env = {
      PATH: process.env["PATH"],
      CHORUS_HOME: home,
      OPENAI_BASE_URL: model.url,
      OPENAI_API_KEY: "none",
      OPENAI_AGENTS_DISABLE_TRACING: "1",
      LANGSMITH_TRACING: "false",
    };
    const child = spawn(process.execPath, [join(folder, example)], { env, cwd: home, stdio: ["ignore", "inherit", "inherit"] });
    t.after(() => child.kill("SIGKILL"));

    const alice = await server.agent("alice");
    const reply = await alice.ask("woken", QUESTION, { timeoutMs: 60_000 });
    assert.equal(reply.text, ANSWER);
    assert.ok(model.prompts.some((prompt) => prompt.includes(QUESTION)), "the model was not asked");
    for await (const event of alice.inbox({ since: "0" })) {
      if (event.type !== "receipt") continue;
      assert.deepEqual(event.response, { status: "ok" });
      break;
    }
  });
}
