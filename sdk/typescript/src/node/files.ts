// The files of an identity, in the form and at the places of the command line (docs/cli.md, R-33).
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, link, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { InputError } from "../errors.js";
import { parseHubUrl } from "../hub.js";
import type { Credentials } from "../register.js";

/** The credential file of a workspace. */
const WORKSPACE_FILE = "chorus-credentials.json";

export interface IdentityFiles {
  readonly credentials: string;
  readonly state: string;
  readonly turns: string;
  readonly lock: string;
}

/** The named file, else the workspace's if it exists, else the one in `$CHORUS_HOME` or `~/.chorus`. */
export async function locateFiles(explicit?: string): Promise<IdentityFiles> {
  if (explicit !== undefined) return filesBeside(resolve(explicit));
  const inWorkspace = resolve(WORKSPACE_FILE);
  if (await exists(inWorkspace)) return filesBeside(inWorkspace);
  const home = process.env["CHORUS_HOME"] || join(homedir(), ".chorus");
  return filesBeside(join(home, "config.json"));
}

/** `config.json` has `state.json` beside it, `chorus-credentials.json` has `chorus-state.json`. */
export function filesBeside(credentials: string): IdentityFiles {
  const stem = basename(credentials).replace(/\.[^.]*$/, "");
  const prefix = stem === "config" ? "" : `${stem.replace(/-credentials$/, "")}-`;
  const beside = (name: string) => join(dirname(credentials), prefix + name);
  return { credentials, state: beside("state.json"), turns: beside("turns.jsonl"), lock: beside("state.lock") };
}

/** The saved credentials; undefined without a file, or when it has no agent or no key. */
export async function readCredentials(files: IdentityFiles): Promise<Credentials | undefined> {
  const fields = await readObject(files.credentials);
  const { agent_id: agentId, api_key: key, hub_url: hub } = fields ?? {};
  if (typeof agentId !== "string" || agentId === "" || typeof key !== "string" || key === "") return undefined;
  // The name stands in lines that a model trusts, and the URL gets the key.
  if (!/^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+$/.test(agentId) || typeof hub !== "string") {
    throw new InputError(`${files.credentials}: agent_id or hub_url is malformed`, "FILE");
  }
  return { agentId, key, hub: parseHubUrl(hub) };
}

/** Writes new credentials beside the fields of other tools; an identity that is there already is not replaced. */
export async function saveNewCredentials(files: IdentityFiles, credentials: Credentials): Promise<void> {
  const existing = await readObject(files.credentials);
  if (existing !== undefined && (await readCredentials(files)) !== undefined) throw identityExists(files);
  const written = await writeAtomically(files.credentials, formatCredentials(credentials, existing), existing === undefined);
  if (!written) throw identityExists(files);
}

/** Writes the key that a rotation gave, for the same identity. */
export async function replaceKey(files: IdentityFiles, credentials: Credentials): Promise<void> {
  const existing = await readObject(files.credentials);
  if (existing?.["agent_id"] !== credentials.agentId) throw identityExists(files);
  await writeAtomically(files.credentials, formatCredentials(credentials, existing), false);
}

/** Finds an unwritable folder before the hub issues a key. */
export async function checkWritable(files: IdentityFiles): Promise<void> {
  const folder = dirname(files.credentials);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await access(folder, constants.W_OK).catch(() => {
    throw new InputError(`${folder} cannot be written`, "FILE");
  });
}

function identityExists(files: IdentityFiles): InputError {
  return new InputError(`${files.credentials} already holds an identity`, "FILE");
}

function formatCredentials({ agentId, key, hub }: Credentials, others: Record<string, unknown> = {}): string {
  return `${JSON.stringify({ agent_id: agentId, api_key: key, hub_url: hub, ...withoutIdentity(others) }, undefined, 2)}\n`;
}

function withoutIdentity(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !["agent_id", "api_key", "hub_url"].includes(name)));
}

/** A JSON object in a file; undefined without the file. Other content is an error, so that it is not overwritten. */
export async function readObject(path: string): Promise<Record<string, unknown> | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new InputError(`${path} cannot be read`, "FILE");
  }
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The text of the file is not repeated: it may hold a key.
  }
  throw new InputError(`${path} is no JSON object`, "FILE");
}

/** Replaces a file in one step, readable by its owner only; with `isNew` false is returned if there is one already. */
export async function writeAtomically(path: string, text: string, isNew = false): Promise<boolean> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, `.${basename(path)}.${randomBytes(8).toString("hex")}.tmp`);
  const file = await open(temporary, "wx", 0o600);
  try {
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    // Unlike a rename, a hard link never replaces a file.
    if (isNew) await link(temporary, path);
    else await rename(temporary, path);
  } catch (error) {
    if (isNew && (error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
  // A new file name is durable only after its folder is synced.
  const parent = await open(folder, "r");
  await parent.sync().finally(() => parent.close());
  return true;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
