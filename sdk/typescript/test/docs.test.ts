// The examples of docs/sdk-typescript.md pass the type checker.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const packageFolder = dirname(dirname(fileURLToPath(import.meta.url)));
const repository = process.env["CHORUS_REPOSITORY"] ?? join(packageFolder, "../..");

/** What the examples leave to the reader. */
const GIVEN: Record<string, string> = {
  agent: "declare const agent: import('chorus-sdk/node').Agent;",
  hub: "declare const hub: string;",
  input: "declare const input: unknown;",
  lastCursor: "declare let lastCursor: string | undefined;",
  signal: "declare const signal: AbortSignal;",
  followInbox: "import { followInbox } from 'chorus-sdk';",
  show: "declare function show(event: unknown): void;",
  translate: "declare function translate(text: string, signal: AbortSignal): Promise<string>;",
  model: "declare const model: string;",
  generateText: "declare function generateText(options: object): Promise<{ text: string }>;",
};

test("every example of the page passes the strict type checker", async (t) => {
  const page = await readFile(join(repository, "docs/sdk-typescript.md"), "utf8");
  const blocks = [...page.matchAll(/```ts\n([^]*?)```/g)].map((match) => match[1] ?? "");
  assert.ok(blocks.length >= 12);
  // Inside the package, so that its own name resolves.
  const folder = join(packageFolder, "docs-examples");
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(folder, { recursive: true });
  for (const [index, block] of blocks.entries()) {
    const isDeclared = (name: string) => new RegExp(`(const|let) ${name}\\b|import \\{[^}]*\\b${name}\\b`).test(block);
    const given = Object.entries(GIVEN).filter(([name]) => new RegExp(`\\b${name}\\b`).test(block) && !isDeclared(name));
    await writeFile(join(folder, `example${index}.ts`), `${given.map(([, line]) => line).join("\n")}\nexport {};\n${block}`);
  }
  const config = { extends: "../tsconfig.test.json", compilerOptions: { rootDir: "..", noUnusedLocals: false }, include: ["."] };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const checked = spawnSync(process.execPath, [join(packageFolder, "node_modules/typescript/bin/tsc"), "-p", folder], { encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout);
});
