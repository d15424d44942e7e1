// The files of an identity are those of the command line: each works with what the other wrote.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Agent, InputError } from "chorus-sdk/node";
import { hub, type TestHub } from "chorus-sdk/testing";
import { BINARY, Collector, runChorus, temporaryFolder } from "./support.ts";

let server: TestHub;
before(async () => {
  server = await hub();
});
after(() => server.stop());

test("an identity that the SDK registered works on the command line", async (t) => {
  const credentials = join(await temporaryFolder(t), "bot.json");
  const agent = await Agent.register({ hub: server.url, name: "made-here", culture: "fr", credentials });
  assert.equal(agent.id, "made-here@chorus");
  assert.equal((await stat(credentials)).mode & 0o777, 0o600);
  const whoami = await runChorus(["whoami", "--json", "--credentials", credentials]);
  assert.equal(whoami.code, 0, whoami.stderr);
  assert.equal((JSON.parse(whoami.stdout) as { agent_id: string }).agent_id, agent.id);
  const sent = await runChorus(["send", agent.id, "to myself", "--json", "--credentials", credentials]);
  assert.equal(sent.code, 0, sent.stderr);
  const [row] = await agent.history();
  assert.deepEqual([row?.envelope.original_text, row?.envelope.sender_culture], ["to myself", "fr"]);
});

test("an identity that the command line registered works here, with its culture", async (t) => {
  const credentials = join(await temporaryFolder(t), "config.json");
  const made = await runChorus(["register", "made-there@chorus", "--culture", "ja", "--hub", server.url, "--credentials", credentials]);
  assert.equal(made.code, 0, made.stderr);
  const agent = await Agent.load({ credentials });
  await agent.send(agent.id, "hello");
  assert.equal((await agent.history())[0]?.envelope.sender_culture, "ja");
});

test("an identity is never overwritten, and fields of other tools are kept", async (t) => {
  const credentials = join(await temporaryFolder(t), "config.json");
  await writeFile(credentials, JSON.stringify({ theirs: 7 }));
  await Agent.register({ hub: server.url, name: "first-one", credentials });
  const before = await readFile(credentials, "utf8");
  assert.equal((JSON.parse(before) as { theirs: number }).theirs, 7);
  await assert.rejects(Agent.register({ hub: server.url, name: "second-one", credentials }), InputError);
  assert.equal((await Agent.register({ hub: server.url, name: "first-one", credentials })).id, "first-one@chorus");
  // Its key is never sent to another hub.
  await assert.rejects(Agent.register({ hub: "http://127.0.0.1:9", name: "first-one", credentials }), InputError);
  assert.equal(await readFile(credentials, "utf8"), before);
  await writeFile(credentials, "my diary");
  await assert.rejects(Agent.register({ hub: server.url, name: "third-one", credentials }), (error) => error instanceof InputError && !error.message.includes("diary"));
  assert.equal(await readFile(credentials, "utf8"), "my diary");
});

test("a rotated key is saved", async (t) => {
  const credentials = join(await temporaryFolder(t), "config.json");
  const agent = await Agent.register({ hub: server.url, name: "rotating", credentials });
  const key = await agent.rotateKey();
  assert.equal((JSON.parse(await readFile(credentials, "utf8")) as { api_key: string }).api_key, key);
  assert.equal((await (await Agent.load({ credentials })).record()).agent_id, agent.id);
});

test("SDK and chorus listen exclude each other, and each continues where the other ended", async (t) => {
  const credentials = join(await temporaryFolder(t), "config.json");
  const sender = await server.agent("shared-sender");
  const agent = await Agent.register({ hub: server.url, name: "shared", credentials });
  const handled = new Collector<string>();
  agent.onMessage((message) => handled.add(message.text));
  await sender.send(agent.id, "one");
  const running = agent.run();
  await handled.waitFor(1);
  const refused = await runChorus(["listen", "--once", "--credentials", credentials]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /another listener keeps .*state\.json/);
  await agent.close();
  await running;

  await sender.send(agent.id, "two");
  const listener = await runChorus(["listen", "--once", "--json", "--credentials", credentials]);
  assert.equal(listener.code, 0, listener.stderr);
  assert.deepEqual(listener.stdout.match(/"original_text":"(\w+)"/)?.[1], "two");

  const child = spawn(BINARY, ["listen", "--credentials", credentials], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  await sender.send(agent.id, "for the other");
  await once(child.stdout, "data");
  const again = await Agent.load({ credentials });
  again.onMessage((message) => handled.add(message.text));
  await assert.rejects(again.run(), (error) => error instanceof InputError && /another listener keeps .*state\.json/.test(error.message));
  const ended = once(child, "close");
  child.kill("SIGTERM");
  await ended;
  const second = again.run();
  await sender.send(agent.id, "three");
  assert.deepEqual(await handled.waitFor(2), ["one", "three"]);
  await again.close();
  await second;
});
