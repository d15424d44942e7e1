// The version of this package. It is that of the hub it was built for, and a test compares it with package.json.

export const VERSION = "0.1.0";

/** Whether a hub of this version lacks what this package relies on: its minor version is older. */
export function isOlderHub(hubVersion: string): boolean {
  const numbers = (version: string) => version.split(".").map(Number);
  const [ourMajor = 0, ourMinor = 0] = numbers(VERSION);
  const [major = 0, minor = 0] = numbers(hubVersion);
  return major < ourMajor || (major === ourMajor && minor < ourMinor);
}
