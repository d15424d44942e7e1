// The scripts of the GitHub Action, run as a runner runs them, against a real hub.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test, type TestContext } from "node:test";
import { Refusal, registerAgent } from "chorus-sdk";
import { hub, type TestHub } from "chorus-sdk/testing";
import { BINARY, temporaryFolder } from "./support.ts";

const repository = process.env["CHORUS_REPOSITORY"] ?? join(dirname(fileURLToPath(import.meta.url)), "../../..");
const action = join(repository, "action");

interface Ended {
  readonly code: number;
  readonly log: string;
  readonly outputs: Record<string, string>;
}

async function runScript(folder: string, script: string, variables: Record<string, string>): Promise<Ended> {
  const output = join(folder, "output");
  await writeFile(output, "");
  const env = { PATH: `${join(folder, "bin")}:${process.env["PATH"]}`, RUNNER_TEMP: folder, GITHUB_OUTPUT: output, GITHUB_PATH: join(folder, "path"), ...variables };
  const { code, log } = await new Promise<{ code: number; log: string }>((resolve) => {
    execFile(join(action, script), { env }, (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), log: stdout + stderr }));
  });
  const lines = (await readFile(output, "utf8")).trim().split("\n");
  return { code, log, outputs: Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)])) };
}

async function prepare(t: TestContext): Promise<{ folder: string; server: TestHub; run: (inputs: Record<string, string>) => Promise<Ended>; key: string }> {
  const server = await hub();
  t.after(() => server.stop());
  const folder = await temporaryFolder(t);
  await mkdir(join(folder, "bin"));
  await symlink(BINARY, join(folder, "bin/chorus"));
  const { agentId, key } = await registerAgent({ hub: server.url, name: "ci" });
  const given = { INPUT_TO: "", INPUT_WAIT: "0", INPUT_CULTURE: "en", INPUT_HUB: server.url, INPUT_AGENT: agentId, INPUT_KEY: key };
  return { folder, server, key, run: (inputs) => runScript(folder, "run.sh", { ...given, ...inputs }) };
}

test("send passes the text as it is, waits for the answer, and shows the key nowhere", async (t) => {
  const { folder, server, run, key } = await prepare(t);
  const alice = await server.agent("alice");
  const texts: string[] = [];
  alice.onMessage((message) => {
    texts.push(message.text);
    if (message.text === "refuse") throw new Refusal("ON_HOLIDAY", "back in May");
  });
  const running = alice.run();
  t.after(() => alice.close());
  const text = 'The "build" failed: $(touch owned) `id` ${{ github }} ünï';
  const sent = await run({ INPUT_COMMAND: "send", INPUT_TO: alice.id, INPUT_TEXT: text, INPUT_WAIT: "30" });
  assert.equal(sent.code, 0, sent.log);
  assert.deepEqual([texts, sent.outputs["answer"]], [[text], "ok"]);
  assert.equal((await alice.status(sent.outputs["trace_id"] ?? "")).status, "acknowledged");
  assert.deepEqual(sent.log.split("\n").filter((line) => line.includes(key)), [`::add-mask::${key}`]);
  assert.deepEqual((await readdir(folder)).sort(), ["bin", "output"], "the credentials were left behind");
  const refused = await run({ INPUT_COMMAND: "send", INPUT_TO: alice.id, INPUT_TEXT: "refuse", INPUT_WAIT: "30" });
  assert.equal(refused.outputs["answer"], "ON_HOLIDAY");
  await alice.close();
  await running;
  const silent = await run({ INPUT_COMMAND: "send", INPUT_TO: alice.id, INPUT_TEXT: "hello?", INPUT_WAIT: "1" });
  assert.deepEqual([silent.code, silent.log.includes("did not answer")], [1, true]);
});

test("ask returns the first answer, advise the id of its frame, and anything else is refused", async (t) => {
  const { server, run, key } = await prepare(t);
  const { Agent } = await import("chorus-sdk");
  const session = new Agent({ hub: server.url, agentId: "ci@chorus", key }).session("desk", "s1");
  const stopping = new AbortController();
  const heard: string[] = [];
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const answering = (async () => {
    for await (const item of session.watch({ signal: stopping.signal })) {
      if (item.type === "opened") open();
      if (item.type === "frame") heard.push(item.frame.kind);
      if (item.type === "frame" && item.frame.kind === "agent_query") await session.answer(item.frame, 'yes,\n"go"');
    }
  })();
  await opened;
  const asked = await run({ INPUT_COMMAND: "ask", INPUT_TEXT: "Shall it be released?", INPUT_WAIT: "30" });
  assert.deepEqual([asked.code, asked.outputs["answer"]], [0, 'yes,\\n\\"go\\"'], asked.log);
  const advised = await run({ INPUT_COMMAND: "advise", INPUT_TEXT: "releasing" });
  assert.match(advised.outputs["trace_id"] ?? "", /^[0-9a-f-]{36}$/);
  const wrong = await run({ INPUT_COMMAND: "rm", INPUT_TEXT: "x" });
  assert.equal(wrong.code, 1);
  const injected = await run({ INPUT_COMMAND: "send", INPUT_TO: "x", INPUT_TEXT: "x", INPUT_AGENT: 'a@b","api_key":"c' });
  assert.deepEqual([injected.code, injected.log.includes("agent is an address")], [1, true]);
  stopping.abort();
  await answering;
  assert.ok(heard.includes("agent_query") && heard.includes("agent_advisory"), heard.join());
});

test("a version is installed only if its archive has the given sum", async (t) => {
  const folder = await temporaryFolder(t);
  const inside = join(folder, "chorus-0.1.0-x86_64-unknown-linux-musl");
  await mkdir(inside);
  await writeFile(join(inside, "chorus"), "#!/bin/sh\necho chorus 0.1.0\n");
  const archive = join(folder, "archive.tar.gz");
  execFileSync("tar", ["czf", archive, "-C", folder, "chorus-0.1.0-x86_64-unknown-linux-musl"]);
  const bytes = await readFile(archive);
  const server = createServer((request, response) => {
    const isKnown = request.url === "/v0.1.0/chorus-0.1.0-x86_64-unknown-linux-musl.tar.gz";
    response.writeHead(isKnown ? 200 : 404).end(isKnown ? bytes : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close().closeAllConnections());
  const variables = {
    CHORUS_VERSION: "0.1.0",
    CHORUS_SHA256: createHash("sha256").update(bytes).digest("hex"),
    CHORUS_RELEASES: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    RUNNER_OS: "Linux",
    RUNNER_ARCH: "X64",
  };
  const wrong = await runScript(folder, "install.sh", { ...variables, CHORUS_SHA256: "0".repeat(64) });
  assert.deepEqual([wrong.code, wrong.log.includes("another sum")], [1, true]);
  assert.ok(!(await readdir(folder)).includes("path"));
  const good = await runScript(folder, "install.sh", variables);
  assert.equal(good.code, 0, good.log);
  const installed = (await readFile(join(folder, "path"), "utf8")).trim();
  assert.match(execFileSync(join(installed, "chorus"), ["--version"], { encoding: "utf8" }), /^chorus /);
  for (const bad of [{ CHORUS_VERSION: "../x" }, { CHORUS_SHA256: "" }, { RUNNER_OS: "Windows" }]) {
    assert.equal((await runScript(folder, "install.sh", { ...variables, ...bad })).code, 1);
  }
});

test("no input is written into a command line", async () => {
  const definition = await readFile(join(action, "action.yml"), "utf8");
  for (const line of definition.split("\n")) if (/^\s*(- )?run:/.test(line)) assert.doesNotMatch(line, /\$\{\{/);
});
