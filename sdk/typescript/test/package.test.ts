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

interface PackedFiles {
  readonly size: number;
  readonly files: { readonly path: string }[];
}

function packFiles(): PackedFiles {
  const words = ["pack", "--dry-run", "--json", "--loglevel", "error"];
  const [packed] = JSON.parse(execFileSync("npm", words, { cwd: folder, encoding: "utf8" })) as [PackedFiles];
  return packed;
}

test("the package has the declarations that its modules need, and no others", () => {
  const needed = new Set<string>();
  const visit = (file: string): void => {
    if (needed.has(file)) return;
    needed.add(file);
    for (const [, path = ""] of read(file).matchAll(/(?:from |import\()"(\.[^"]+)\.js"/g)) visit(join(dirname(file), `${path}.d.ts`));
  };
  for (const entry of ["index", "node/index", "webhook", "testing"]) visit(`dist/${entry}.d.ts`);
  const packed = packFiles().files.map(({ path }) => path).filter((path) => path.endsWith(".d.ts"));
  assert.deepEqual(packed.sort(), [...needed].sort());
});

// TS-01
test("the package is at most 60 kB, and publint finds nothing", async () => {
  const { size } = packFiles();
  assert.ok(size <= 60_000, `${size} bytes`);
  const { publint } = await import("publint");
  const { messages } = await publint({ pkgDir: folder, strict: true });
  assert.deepEqual(messages, []);
});
