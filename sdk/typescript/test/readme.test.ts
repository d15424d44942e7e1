// The agents of the README are run as they are printed.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, symlink, writeFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { hub } from "chorus-sdk/testing";
import { runChorus, temporaryFolder } from "./support.ts";

const packageFolder = dirname(dirname(fileURLToPath(import.meta.url)));

test("the ten-line agent of the README answers, and the second one hears it", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  const page = await readFile(join(packageFolder, "README.md"), "utf8");
  const [agent = "", asker = ""] = [...page.matchAll(/```ts\n([^]*?)```/g)].map((match) => match[1] ?? "");
  assert.ok(agent.split("\n").filter((line) => line !== "").length <= 10, "it has more than ten lines");
  const folder = await temporaryFolder(t);
  await mkdir(join(folder, "node_modules"));
  await symlink(packageFolder, join(folder, "node_modules/chorus-sdk"));

  const start = async (name: string, source: string): Promise<ChildProcess> => {
    const script = join(folder, `${name}.mts`);
    await writeFile(script, source);
    const env = { ...process.env, CHORUS_HUB: server.url, CHORUS_HOME: join(folder, name) };
    const child = spawn(process.execPath, [script], { env, cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    return child;
  };
  const readLine = async (child: ChildProcess): Promise<string> => String((await once(child.stdout as NodeJS.ReadableStream, "data"))[0]).trim();

  const echo = await start("echo", agent);
  assert.equal(await readLine(echo), "echo@chorus listens");
  const made = await runChorus(["register", "asker@chorus", "--culture", "en", "--hub", server.url], { CHORUS_HOME: join(folder, "asker") });
  assert.equal(made.code, 0, made.stderr);
  assert.equal(await readLine(await start("asker", asker)), "You said: hello");
});
