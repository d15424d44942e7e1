// The project that `chorus new typescript` writes: with this SDK installed its types and its test pass, and it answers.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test, type TestContext } from "node:test";
import { hub } from "chorus-sdk/testing";
import { BINARY, runChorus, temporaryFolder } from "./support.ts";

const packageFolder = dirname(dirname(fileURLToPath(import.meta.url)));
const runFile = promisify(execFile);
/** The commands of the README find this Node and this hub by their names. */
const PATH = [dirname(process.execPath), dirname(BINARY), process.env["PATH"]].join(delimiter);

/** A new project with what it depends on: this SDK, and the compiler of its tests. */
class Project {
  readonly folder: string;
  readonly commands: string[];

  private constructor(folder: string, commands: string[]) {
    this.folder = folder;
    this.commands = commands;
  }

  static async create(t: TestContext, name: string): Promise<Project> {
    const desk = await temporaryFolder(t);
    await runFile(BINARY, ["new", "typescript", name, "--sdk", packageFolder], { cwd: desk });
    const folder = join(desk, name);
    const readme = await readFile(join(folder, "README.md"), "utf8");
    const project = new Project(folder, [...readme.matchAll(/^    (.+)$/gm)].map((match) => match[1] ?? ""));
    // The compiler was fetched for this package, and npm takes what is in its place already.
    await mkdir(join(folder, "node_modules/@types"), { recursive: true });
    for (const tool of ["typescript", "@types/node"]) {
      await symlink(join(packageFolder, "node_modules", tool), join(folder, "node_modules", tool));
    }
    assert.equal(project.commands[0], "npm install");
    await project.run("npm install --offline --ignore-scripts --no-audit --no-fund");
    return project;
  }

  async run(command: string): Promise<string> {
    const { stdout } = await runFile("sh", ["-c", command], { cwd: this.folder, env: { ...process.env, PATH } });
    return stdout;
  }
}

test("the types and the test of a new project pass", async (t) => {
  const project = await Project.create(t, "weather-agent");
  const [, command = ""] = project.commands;
  assert.equal(command, "npm test");
  // The variable says that this process is a test itself.
  assert.match(await project.run(`unset NODE_TEST_CONTEXT; ${command}`), /pass 1\b/);
});

test("the agent of a new project answers", async (t) => {
  const project = await Project.create(t, "weather-agent");
  const [, , start = "", register = ""] = project.commands;
  await using server = await hub();
  assert.match(register, /^chorus register weather-agent --hub /);
  await project.run(register.replace(/http:\S+/, server.url));
  assert.equal(start, "npm start");
  const child = spawn("npm", ["start", "--silent"], { cwd: project.folder, env: { ...process.env, PATH }, stdio: ["ignore", "pipe", "inherit"], detached: true });
  const { pid } = child;
  assert.ok(pid !== undefined, "npm did not start");
  const ended = once(child, "close");
  // Ctrl-C reaches every process of the terminal.
  const interrupt = (): boolean => (child.exitCode ?? child.signalCode) !== null || process.kill(-pid, "SIGINT");
  t.after(interrupt);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  assert.equal(String(line), "weather-agent@chorus answers messages; Ctrl-C ends it\n");
  const user = await server.agent("user");
  assert.equal((await user.ask("weather-agent@chorus", "hello")).text, "You wrote: hello");
  interrupt();
  await ended;
  const seen = await project.run("git init -q . && git status --porcelain --untracked-files=all");
  const kept = seen.split("\n").filter((name) => name !== "").map((name) => name.slice(3));
  const written = [".gitignore", "README.md", "agent.test.ts", "agent.ts", "answer.ts", "package-lock.json", "package.json", "tsconfig.json"];
  assert.deepEqual(kept, written, "no credentials are offered to git");
});

test("a project cannot be made from a folder that holds no SDK", async (t) => {
  const folder = await temporaryFolder(t);
  const refused = await runChorus(["new", "typescript", "weather-agent", "--sdk", folder], {});
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /is no checkout of Chorus/);
});
