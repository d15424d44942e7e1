// Checks the signature of what a hub or a channel's service posts (Standard Webhooks, R-96).

/** How far the clocks of sender and receiver may be apart. An older request may be a repeat of a recorded one. */
const TOLERANCE_SECONDS = 300;
const SECRET_PREFIX = "whsec_";

/** Whether one of the secrets signed the body, as the bytes came, within five minutes of `nowMs`. */
export async function isSignedBy(
  secrets: string | readonly string[],
  headers: Headers,
  body: Uint8Array<ArrayBuffer>,
  nowMs: number,
): Promise<boolean> {
  const id = headers.get("webhook-id");
  const timestamp = headers.get("webhook-timestamp");
  const signatures = headers.get("webhook-signature");
  if (id === null || timestamp === null || signatures === null || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    const key = await importSecret(secret);
    for (const signature of signatures.split(" ")) {
      const bytes = signature.startsWith("v1,") ? decodeBase64(signature.slice(3)) : undefined;
      // The comparison of Web Crypto takes the same time for every wrong signature.
      if (bytes !== undefined && (await crypto.subtle.verify("HMAC", key, bytes, signed))) return true;
    }
  }
  return false;
}

async function importSecret(secret: string): Promise<CryptoKey> {
  const bytes = decodeBase64(secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret);
  if (bytes === undefined || bytes.length < 24 || bytes.length > 64) {
    throw new TypeError("a signing secret is whsec_ and the base64 of 24 to 64 bytes");
  }
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}
