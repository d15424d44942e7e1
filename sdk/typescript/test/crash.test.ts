// Agents that end in the middle: a crash repeats and never loses, a signal ends cleanly.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { hub } from "chorus-sdk/testing";
import { Collector, temporaryFolder } from "./support.ts";

const sdk = import.meta.resolve("chorus-sdk/node");

/** An agent in a process of its own, which prints a line for each thing it does. */
async function startAgent(t: TestContext, folder: string, handler: string, url: string): Promise<{ child: ChildProcess; lines: Collector<string> }> {
  const script = join(folder, "agent.mjs");
  await writeFile(
    script,
    `import { Agent } from ${JSON.stringify(sdk)};
    const agent = await Agent.register({ hub: ${JSON.stringify(url)}, name: "worker", credentials: ${JSON.stringify(join(folder, "bot.json"))} });
    agent.onMessage(async (message) => { ${handler} });
    await agent.run({ onOpen: () => console.log("open") });
    console.log("ended");`,
  );
  const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const lines = new Collector<string>();
  createInterface(child.stdout as NodeJS.ReadableStream).on("line", (line) => lines.add(line));
  return { child, lines };
}

test("a message whose handler was killed is handled again, and those before it are not", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  const folder = await temporaryFolder(t);
  const sender = await server.agent("sender");
  const handler = `console.log("begin " + message.text); if (message.text === "two" && process.stdin.readable && !process.env.AGAIN) await new Promise(() => setInterval(() => 0, 1000)); console.log("end " + message.text);`;
  const first = await startAgent(t, folder, handler, server.url);
  await first.lines.waitFor(1);
  for (const text of ["one", "two", "three"]) await sender.send("worker@chorus", text);
  assert.deepEqual(await first.lines.waitFor(4), ["open", "begin one", "end one", "begin two"]);
  const killed = once(first.child, "close");
  first.child.kill("SIGKILL");
  await killed;
  const second = await startAgent(t, folder, handler.replace("!process.env.AGAIN", "false"), server.url);
  assert.deepEqual((await second.lines.waitFor(5)).slice(1), ["begin two", "end two", "begin three", "end three"]);
});

test("SIGTERM lets the running handler end, answers its message, and ends the process", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  const folder = await temporaryFolder(t);
  const sender = await server.agent("sender");
  const handler = `console.log("begin"); await new Promise((resolve) => process.stdin.once("data", resolve)); process.stdin.pause(); console.log("end");`;
  const { child, lines } = await startAgent(t, folder, handler, server.url);
  await lines.waitFor(1);
  const sent = await sender.send("worker@chorus", "work");
  await lines.waitFor(2);
  const closed = once(child, "close");
  child.kill("SIGTERM");
  child.stdin?.write("go on\n");
  assert.deepEqual((await closed)[0], 0);
  assert.deepEqual(lines.items, ["open", "begin", "end", "ended"]);
  assert.equal((await sender.status(sent.traceId)).status, "acknowledged");
});
