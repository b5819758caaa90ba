// A browser for the tests of the web pages, and the small things that every test needs.
//
// Every page that a test opens is watched: a violation of the content security policy, an error in the
// script or a failed request for an asset fails the test.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";

/** Modules that scripts/test installed. */
export const require = createRequire(`${process.env.WEB_TOOLS}/node_modules/`);
const { chromium } = require("playwright-core");

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** Waits are generous, because the machine may be busy. */
const TIMEOUT = 60_000;

/** @returns {Promise<import("playwright-core").Browser>} */
export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/**
 * A window with its own cookies. `problems` collects everything that a page did wrong.
 * @param {import("playwright-core").Browser} browser
 * @param {import("playwright-core").BrowserContextOptions} options
 */
export async function open(browser, options = {}) {
  const context = await browser.newContext({ baseURL: process.env.CONSOLE_URL, ...options });
  context.setDefaultTimeout(TIMEOUT);
  const page = await context.newPage();
  /** @type {string[]} */
  const problems = [];
  page.on("console", (message) => {
    // Chromium also writes an error for each response of 400 or more, which tests look at themselves.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      problems.push(`${page.url()}: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
  page.on("response", (response) => {
    if (response.url().includes("/assets/") && !response.ok()) problems.push(`${response.url()}: ${response.status()}`);
  });
  return { page, context, problems };
}

/** The current code of an authenticator app (RFC 6238). @param {string} secret in base 32 */
export function totp(secret, step = 0) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + step));
  const bits = [...secret.replace(/[\s=]/g, "").toUpperCase()]
    .map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0"))
    .join("");
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const digest = createHmac("sha1", key).update(counter).digest();
  const number = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}

/**
 * Calls a service.
 * @param {string} url
 * @param {{ method?: string, token?: string, merchant?: string, body?: unknown, form?: Record<string, string> }} request
 */
export async function call(url, { method, token, merchant, body, form } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (token) headers.authorization = `Bearer ${token}`;
  if (merchant) headers["x-service-id"] = merchant;
  if (body !== undefined) headers["content-type"] = "application/json";
  const sent = form ? new URLSearchParams(form) : body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(url, { method: method ?? (sent === undefined ? "GET" : "POST"), headers, body: sent });
  const text = await response.text();
  assert.ok(response.ok, `${url}: ${response.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
}

/** A token for a client of the API. */
export async function token(id, secret) {
  const form = { grant_type: "client_credentials", client_id: id, client_secret: secret };
  return (await call(`${process.env.AUTH_URL}/oauth/token`, { form })).access_token;
}

/** Waits until `check` returns a value. */
export async function eventually(what, check) {
  const end = Date.now() + TIMEOUT;
  for (;;) {
    const value = await check();
    if (value) return value;
    assert.ok(Date.now() < end, `not within ${TIMEOUT / 1000} s: ${what}`);
    await new Promise((resume) => setTimeout(resume, 200));
  }
}

/** Runs named tests one after the other and ends the process with the number of failures. */
export async function run(tests) {
  const only = process.argv[2];
  let failures = 0;
  for (const [name, test] of Object.entries(tests)) {
    if (only && !name.includes(only)) continue;
    const started = Date.now();
    try {
      await test();
      console.log(`ok      ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failures += 1;
      console.log(`FAILED  ${name}\n${error.stack ?? error}`);
    }
  }
  process.exitCode = failures === 0 ? 0 : 1;
}
