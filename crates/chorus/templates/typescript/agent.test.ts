// The agent against a real hub, which `hub` starts in a temporary folder.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hub } from "chorus-sdk/testing";
import { answer } from "./answer.ts";

test("a message is answered", async () => {
  await using server = await hub();
  await using user = await server.agent("my-agent-user");
  await using agent = await server.agent("my-agent");
  agent.onMessage(answer);
  void agent.run();
  const reply = await user.ask(agent.id, "hello");
  assert.equal(reply.text, "You wrote: hello");
});
