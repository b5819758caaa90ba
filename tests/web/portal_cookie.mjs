// The sealed cookie of a shopper, whose proofs last for 30 minutes. The tests let them expire with the portal's key.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const NAME = "__Host-shopper";
const CONTEXT = Buffer.from("shopper cookie");
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const [id, key] = process.env.PORTAL_SEALING_KEYS.split(",")[0].split(":");
const secret = Buffer.from(key, "base64");

function unseal(value) {
  const bytes = Buffer.from(value.slice(id.length + 1), "base64url");
  const decipher = createDecipheriv("aes-256-gcm", secret, bytes.subarray(0, NONCE_BYTES)).setAAD(CONTEXT);
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString());
}

function seal(value) {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", secret, nonce).setAAD(CONTEXT);
  const sealed = Buffer.concat([nonce, cipher.update(JSON.stringify(value)), cipher.final(), cipher.getAuthTag()]);
  return `${id}.${sealed.toString("base64url")}`;
}

/** Lets the proofs of a window expire. @param {import("playwright-core").BrowserContext} context */
export async function expireCookie(context) {
  const cookie = (await context.cookies()).find(({ name }) => name === NAME);
  const shopper = unseal(cookie.value);
  for (const proof of shopper.p) proof.e = new Date(Date.now() - 1000).toISOString();
  await context.clearCookies();
  // The browser's interface takes cookies with this prefix for https only.
  const url = process.env.PORTAL_URL.replace("http:", "https:");
  await context.addCookies([{ name: NAME, value: seal(shopper), url, secure: true, httpOnly: true, sameSite: "Lax" }]);
}
