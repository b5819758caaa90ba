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
const TIMEOUT = 120_000;
/** Pauses of `eventually` in milliseconds. The last one repeats. */
const PAUSES = [25, 50, 100, 200];

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

/** @type {Map<string, Promise<string>>} */
const tokens = new Map();

/** A token for a client of the API. Each client asks once, because auth limits the requests of an address. */
export function token(id, secret) {
  const form = { grant_type: "client_credentials", client_id: id, client_secret: secret };
  const found = tokens.get(id) ?? call(`${process.env.AUTH_URL}/oauth/token`, { form }).then(({ access_token }) => access_token);
  tokens.set(id, found);
  return found;
}

/**
 * Waits until `check` returns a value.
 * @param {string | (() => string)} what names the condition
 */
export async function eventually(what, check) {
  const end = Date.now() + TIMEOUT;
  for (let tries = 0; ; tries += 1) {
    const value = await check();
    if (value) return value;
    assert.ok(Date.now() < end, `not within ${TIMEOUT / 1000} s: ${typeof what === "string" ? what : what()}`);
    await new Promise((resume) => setTimeout(resume, PAUSES[Math.min(tries, PAUSES.length - 1)]));
  }
}

/** Runs tasks, several at once. @returns their results */
export async function inParallel(tasks, width) {
  const results = [];
  const queue = [...tasks.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await next[1]();
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

/** Runs named tests, `width` at once, and fails the process if one fails. */
export async function run(tests, width = 1) {
  const only = process.argv[2];
  const chosen = Object.entries(tests).filter(([name]) => !only || name.includes(only));
  await inParallel(chosen.map(([name, test]) => async () => {
    const started = Date.now();
    try {
      await test();
      console.log(`ok      ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`FAILED  ${name}\n${error.stack ?? error}`);
    }
  }), width);
}
