// The agents of the README are run as they are printed, also beside that of the Python SDK.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, symlink, writeFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test, type TestContext } from "node:test";
import { Agent } from "chorus-sdk/node";
import { hub, type TestHub } from "chorus-sdk/testing";
import { runChorus, temporaryFolder } from "./support.ts";

const packageFolder = dirname(dirname(fileURLToPath(import.meta.url)));
const pythonSdk = join(process.env["CHORUS_REPOSITORY"] ?? join(packageFolder, "../.."), "sdk/python");
/** A Python with what the Python SDK needs; `sdk/python/check` makes one. */
const python = process.env["CHORUS_SDK_PYTHON"];

/** A folder in which programs run as a user's: with this package, and a home for each identity. */
class Desk {
  readonly folder: string;
  readonly #t: TestContext;
  readonly #server: TestHub;

  private constructor(t: TestContext, server: TestHub, folder: string) {
    this.#t = t;
    this.#server = server;
    this.folder = folder;
  }

  static async open(t: TestContext): Promise<Desk> {
    const server = await hub();
    t.after(() => server.stop());
    const folder = await temporaryFolder(t);
    await mkdir(join(folder, "node_modules"));
    await symlink(packageFolder, join(folder, "node_modules/chorus-sdk"));
    return new Desk(t, server, folder);
  }

  home(name: string): string {
    return join(this.folder, name);
  }

  async register(name: string): Promise<void> {
    const args = ["register", `${name}@chorus`, "--culture", "en", "--hub", this.#server.url];
    const made = await runChorus(args, { CHORUS_HOME: this.home(name) });
    assert.equal(made.code, 0, made.stderr);
  }

  async start(name: string, program: string, file: string, source: string): Promise<ChildProcess> {
    const script = join(this.folder, file);
    await writeFile(script, source);
    const env = { ...process.env, CHORUS_HUB: this.#server.url, CHORUS_HOME: this.home(name), PYTHONPATH: join(pythonSdk, "src"), PYTHONDONTWRITEBYTECODE: "1" };
    const child = spawn(program, [script], { env, cwd: this.folder, stdio: ["ignore", "pipe", "inherit"] });
    this.#t.after(() => child.kill("SIGKILL"));
    return child;
  }

  /** Sends as one agent, and returns what comes back to it. */
  async exchange(from: string, to: string, text: string): Promise<string> {
    const agent = await Agent.load({ credentials: join(this.home(from), "config.json") });
    await agent.send(`${to}@chorus`, text);
    for await (const event of agent.inbox({ since: "0" })) {
      if (event.type === "message" && event.sender === `${to}@chorus` && event.text.includes(text)) return event.text;
    }
    return "";
  }
}

async function readBlocks(page: string, language: string): Promise<string[]> {
  const text = await readFile(page, "utf8");
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, "g"))].map((match) => match[1] ?? "");
}

async function readLine(child: ChildProcess): Promise<string> {
  return String((await once(child.stdout as NodeJS.ReadableStream, "data"))[0]).trim();
}

test("the ten-line agent of the README answers, and the second one hears it", async (t) => {
  const desk = await Desk.open(t);
  const [agent = "", asker = ""] = await readBlocks(join(packageFolder, "README.md"), "ts");
  assert.ok(agent.split("\n").filter((line) => line !== "").length <= 10, "it has more than ten lines");
  const echo = await desk.start("echo", process.execPath, "echo.mts", agent);
  assert.equal(await readLine(echo), "echo@chorus listens");
  await desk.register("asker");
  assert.equal(await readLine(await desk.start("asker", process.execPath, "asker.mts", asker)), "You said: hello");
});

const isMissing = python === undefined || !existsSync(join(pythonSdk, "README.md"));
test("the ten-line agents of both SDKs answer each other", { skip: isMissing && "sdk/python/check has not run" }, async (t) => {
  const desk = await Desk.open(t);
  const [agent = ""] = await readBlocks(join(packageFolder, "README.md"), "ts");
  const [parrot = ""] = await readBlocks(join(pythonSdk, "README.md"), "python");
  await desk.register("parrot");
  await desk.start("parrot", python ?? "", "parrot.py", parrot);
  assert.equal(await readLine(await desk.start("echo", process.execPath, "echo.mts", agent)), "echo@chorus listens");
  assert.match(await desk.exchange("echo", "parrot", "hello from TypeScript"), /hello from TypeScript/);
  assert.match(await desk.exchange("parrot", "echo", "hello from Python"), /hello from Python/);
});
