// The package as it is published: current with the contract, typed, small, and free of Node where it must be.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { OPERATIONS, VERSION } from "chorus-sdk";
import { BINARY } from "./support.ts";

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string): string => readFileSync(join(folder, path), "utf8");

/** Operations that answer pages, files or streams: streams and files have methods of their own, pages are for people. */
const NOT_CALLED = new Set([
  "get_console", "get_console_file", "get_docs", "get_file", "get_home", "get_metrics", "get_skill", "get_skill_in_language",
  "stream_activity", "stream_channel", "stream_frames", "stream_inbox",
]);

test("the generated files are those of the binary's contract", () => {
  const check = spawnSync(process.execPath, [join(folder, "scripts/generate.ts"), "--check"], { encoding: "utf8", env: process.env });
  assert.equal(check.status, 0, check.stderr);
});

test("every operation of the contract can be called by its name, or is a page, a file or a stream", () => {
  const contract = JSON.parse(execFileSync(BINARY, ["openapi"], { encoding: "utf8", maxBuffer: 1 << 26 })) as {
    paths: Record<string, Record<string, { operationId?: string; responses: Record<string, { content?: Record<string, unknown> }> }>>;
  };
  const operations = Object.values(contract.paths).flatMap((methods) => Object.values(methods));
  for (const { operationId, responses } of operations) {
    if (operationId === undefined) continue;
    const kinds = Object.entries(responses).filter(([status]) => status.startsWith("2")).flatMap(([, { content }]) => Object.keys(content ?? {}));
    const isJson = kinds.some((kind) => kind.endsWith("json"));
    assert.ok(operationId in OPERATIONS, operationId);
    assert.equal(!isJson, NOT_CALLED.has(operationId), `${operationId} answers ${kinds.join(", ")}`);
  }
});

test("the version is that of package.json and of the binary", () => {
  assert.equal((JSON.parse(read("package.json")) as { version: string }).version, VERSION);
  const [minor] = /\d+\.\d+/.exec(execFileSync(BINARY, ["--version"], { encoding: "utf8" })) ?? [];
  assert.ok(VERSION.startsWith(`${minor}.`), `${VERSION} for a binary of ${minor}`);
});

test("the declarations have no any, and the main module and its imports have nothing of Node", () => {
  const files = readdirSync(join(folder, "dist"), { recursive: true, encoding: "utf8" });
  for (const file of files.filter((name) => name.endsWith(".d.ts"))) {
    const code = read(`dist/${file}`).replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
    assert.doesNotMatch(code, /\bany\b/, file);
  }
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const code = read(`dist/${file}`);
    assert.doesNotMatch(code, /from "node:|\bprocess\.|\bBuffer\b/, file);
    for (const [, name] of code.matchAll(/from "\.\/([\w/]+\.js)"/g)) visit(name ?? "");
  };
  visit("index.js");
  visit("webhook.js");
  assert.ok(seen.size > 20);
});

test("the package is small, and publint finds nothing", async () => {
  const packed = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--loglevel", "error"], { cwd: folder, encoding: "utf8" })) as [{ size: number }];
  assert.ok(packed[0].size <= 75_000, `${packed[0].size} bytes`);
  const { publint } = await import("publint");
  const { messages } = await publint({ pkgDir: folder, strict: true });
  assert.deepEqual(messages, []);
});
