// The file lock of the one process that listens with an identity: the same lock as that of `chorus listen`.
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { InputError } from "../errors.js";

/** The exit code of the helper when the lock is held by another process. */
const HELD = 75;

/** Node has no file locks, so a helper holds it; it ends, and the lock with it, when this process does. */
const HELPERS: readonly (readonly [string, (path: string) => string[]])[] = [
  ["flock", (path) => ["--exclusive", "--nonblock", "--conflict-exit-code", String(HELD), path, "sh", "-c", "echo held; exec cat >/dev/null"]],
  // macOS has no flock program; perl is there.
  ["perl", (path) => ["-MFcntl=:flock", "-e", `$|=1; open F, ">>", $ARGV[0] or exit 1; flock F, LOCK_EX|LOCK_NB or exit ${HELD}; print "held\\n"; 1 while <STDIN>`, path]],
];

/** Takes the lock and returns what releases it. `described` is what the message names. */
export async function acquireFileLock(path: string, described: string): Promise<() => Promise<void>> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await (await open(path, "a", 0o600)).close();
  for (const [program, args] of HELPERS) {
    const outcome = await startHelper(program, args(path));
    if (outcome === "held elsewhere") {
      throw new InputError(`another listener keeps ${described}; stop it or use other credentials`, "LISTENER");
    }
    if (outcome !== "no program") return outcome;
  }
  throw new InputError("a listener needs the program flock or perl to lock its files; or give the agent another store", "FILE");
}

function startHelper(program: string, args: string[]): Promise<(() => Promise<void>) | "held elsewhere" | "no program"> {
  return new Promise((resolve, reject) => {
    // In a group of its own, so that Ctrl-C at the terminal does not release the lock while handlers still run.
    const helper = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"], detached: true });
    const ended = new Promise<void>((done) => helper.once("close", () => done()));
    helper.once("error", () => resolve("no program"));
    helper.once("close", (code) => (code === HELD ? resolve("held elsewhere") : reject(new InputError("the lock could not be taken", "FILE"))));
    helper.stdout.once("data", () => {
      // The lock does not keep the process alive.
      for (const handle of [helper, helper.stdin as Socket, helper.stdout as Socket]) handle.unref();
      resolve(async () => {
        for (const handle of [helper, helper.stdin as Socket, helper.stdout as Socket]) handle.ref();
        helper.stdin.end();
        await ended;
      });
    });
  });
}
