// Attacks on the portal: guessed look-ups, the stolen token of its client, other merchants, forms of other sites.

import assert from "node:assert/strict";
import { get } from "node:http";
import { call, eventually, inParallel, run, token } from "./browser.mjs";
import { addMerchant, deepLink, DEMO, publish, publishMany, ZIP_CODE } from "./portal_shop.mjs";

const { AUTH_URL, RMA_URL, EXCHANGE_URL, ORDERS_URL, WAREHOUSE_URL, PORTAL_URL, MERCHANT_ID } = process.env;
const SERVICES = [AUTH_URL, ORDERS_URL, RMA_URL, EXCHANGE_URL, WAREHOUSE_URL];
/** The operations that the scope `shopper` opens by itself. */
const OPEN = ["get /v1/portals/{name}", "post /v1/lookups"];
const GUESSES = 1000;

const stolen = await token(process.env.PORTAL_CLIENT_ID, process.env.PORTAL_CLIENT_SECRET);

/** A look-up with the token of the portal's client. Every address has a few. */
async function lookUp(body, number = 1, merchant = MERCHANT_ID) {
  const headers = {
    authorization: `Bearer ${stolen}`, "content-type": "application/json", "x-service-id": merchant,
    "x-forwarded-for": `10.${(number >> 12) & 255}.${(number >> 4) & 255}.${(number & 15) + 1}`,
  };
  const started = performance.now();
  const response = await fetch(`${RMA_URL}/v1/lookups`, { method: "POST", headers, body: JSON.stringify(body) });
  const { request_id, ...found } = await response.json();
  return { status: response.status, body: found, milliseconds: performance.now() - started };
}

async function withProof(url, proof, options = {}) {
  const headers = { authorization: `Bearer ${stolen}`, "x-service-id": MERCHANT_ID, "content-type": "application/json" };
  if (proof) headers["x-shopper-proof"] = proof;
  const response = await fetch(url, { ...options, headers });
  return { status: response.status, body: await response.json().catch(() => null) };
}

/** Sends a form. On a busy machine the portal may ask the shopper to try again in a moment. */
async function sendForm(path, fields, headers = {}) {
  const body = new URLSearchParams(fields);
  const response = await eventually(`the portal responds to ${path}`, async () => {
    const response = await fetch(PORTAL_URL + path, { method: "POST", body, headers, redirect: "manual" });
    return response.status !== 503 && response;
  });
  return { status: response.status, text: await response.text(), cookie: response.headers.getSetCookie()[0] };
}

/** The name and value of a cookie. */
const pair = (cookie) => cookie.split(";")[0];

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** The bytes that a browser receives. */
function transferred(path) {
  return new Promise((resolve, reject) => {
    get(PORTAL_URL + path, { headers: { "accept-encoding": "gzip" } }, (response) => {
      let bytes = 0;
      response.on("data", (chunk) => { bytes += chunk.length; });
      response.on("end", () => resolve(bytes));
    }).on("error", reject);
  });
}

/** Every operation of the services that needs a token. */
async function operations() {
  const found = [];
  for (const service of SERVICES) {
    const { paths } = await call(`${service}/openapi.json`);
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const needsToken = operation.security?.length > 0 && operation.security.every((one) => Object.keys(one).length > 0);
        if (needsToken && !OPEN.includes(`${method} ${path}`)) found.push({ service, path, method });
      }
    }
  }
  return found;
}

await run({
  "a wrong guess and a half-right one get the same response in the same time": async () => {
    // An order allows five failures in an hour.
    const orders = await publishMany(GUESSES / 5);
    const guesses = Array.from({ length: GUESSES }, (_, number) => [
      () => lookUp({ order_identifier: `NONE-${Math.floor(number / 5)}`, email: "wrong@shopper.example" }, 2 * number),
      () => lookUp({ order_identifier: orders[Math.floor(number / 5)], email: "wrong@shopper.example" }, 2 * number + 1),
    ]).flat();
    const results = await inParallel(guesses, 10);
    const [wrong, halfRight] = [0, 1].map((start) => results.filter((_, index) => index % 2 === start));
    const bodies = new Set(results.map(({ status, body }) => JSON.stringify([status, body])));
    assert.equal(bodies.size, 1, [...bodies].join("\n"));
    assert.equal(wrong[0].status, 404);
    const [first, second] = [wrong, halfRight].map((half) => median(half.map(({ milliseconds }) => milliseconds)));
    console.log(`        medians: wrong ${first.toFixed(1)} ms, half-right ${second.toFixed(1)} ms`);
    assert.ok(Math.abs(first - second) < Math.max(first, second) * 0.1, `${first} ms and ${second} ms`);
  },

  "the page of a wrong guess tells nothing": async () => {
    const order = await publish(["FELT-HAT-SAND-M"]);
    const wrong = { by: "own", key: "wrong@shopper.example" };
    const pages = [];
    for (const identifier of [order.identifier, `ABSENT-${Date.now()}`]) {
      const { status, text } = await sendForm(`/${MERCHANT_ID}`, { order: identifier, ...wrong });
      pages.push(`${status} ${text.replaceAll(identifier, "ORDER")}`);
    }
    assert.match(pages[0], /^422 /);
    assert.equal(pages[0], pages[1]);
  },

  "five failures lock an order, also for the right shopper": async () => {
    const order = await publish(["FELT-HAT-SAND-M"]);
    const wrong = { order_identifier: order.identifier, zip_code: "00000" };
    for (let number = 0; number < 5; number += 1) assert.equal((await lookUp(wrong, 40_000 + number)).status, 404);
    const right = await lookUp({ order_identifier: order.identifier, zip_code: ZIP_CODE }, 40_010);
    assert.equal(right.status, 429);
  },

  "the token of the portal's client opens nothing without a proof": async () => {
    const order = await publish(["FELT-HAT-SAND-M"]);
    const all = await operations();
    assert.ok(all.length > 60, `only ${all.length} operations`);
    const opened = [];
    for (const { service, path, method } of all) {
      const target = path.replace(/\{identifier\}|\{order_identifier\}/g, order.identifier).replace(/\{merchant\}/g, MERCHANT_ID).replace(/\{[^}]+\}/g, "1");
      const body = ["get", "delete"].includes(method) ? undefined : "{}";
      const { status } = await withProof(service + target, null, { method: method.toUpperCase(), body });
      // Some operations check their parameters first. An identifier that nothing has gives 404.
      if (![400, 401, 403, 404, 415, 422].includes(status)) opened.push(`${method} ${path}: ${status}`);
    }
    assert.deepEqual(opened, []);
    const { status, body } = await withProof(`${RMA_URL}/v1/orders/${order.identifier}/returnable`, null);
    assert.deepEqual([status, body.code], [403, "proof_required"]);
  },

  "a proof opens its own order only": async () => {
    const [own, other] = [await publish(["FELT-HAT-SAND-M"]), await publish(["FELT-HAT-SAND-M"])];
    const { body } = await lookUp({ order_identifier: own.identifier, email: own.email }, 50_000);
    const returnable = (order, proof) => withProof(`${RMA_URL}/v1/orders/${order}/returnable`, proof);
    assert.equal((await returnable(own.identifier, body.proof)).status, 200);
    assert.equal((await returnable(other.identifier, body.proof)).status, 403);
    assert.equal((await returnable(own.identifier, `${body.proof.slice(0, -2)}AA`)).status, 403);
    const units = [other.identifier].map((order_identifier) => ({
      order_identifier, order_line_item_identifier: "FELT-HAT-SAND-M", unit: 1, return_reason: "OTHER", resolution: "refund",
    }));
    const quote = { method: "POST", body: JSON.stringify({ return_method: "mail-back", units }) };
    assert.equal((await withProof(`${RMA_URL}/v1/returns/quote`, body.proof, quote)).status, 403);
    assert.equal((await withProof(`${RMA_URL}/v1/returns`, body.proof)).status >= 400, true);
  },

  "one merchant's portal never shows another merchant's data": async () => {
    const other = await addMerchant();
    const own = await publish(["FELT-HAT-SAND-M"]);
    const foreign = await publish(["TRAIL-SHOE-NAVY-42"], { client: other });
    const form = (order) => ({ order: order.identifier, by: "own", key: order.email });
    // The portal knows a new merchant after a moment.
    const found = await eventually("the other merchant has a portal", async () => {
      const response = await sendForm(`/${other.merchant}`, form(foreign));
      return response.status === 303 && response;
    });
    assert.equal((await sendForm(`/${MERCHANT_ID}`, form(foreign))).status, 422);
    assert.equal((await sendForm(`/${other.merchant}`, form(own))).status, 422);
    const { url } = await deepLink(own.identifier, false, DEMO);
    const moved = new URL(url).pathname.replace(`/${MERCHANT_ID}/`, `/${other.merchant}/`);
    assert.equal((await fetch(PORTAL_URL + moved, { redirect: "manual" })).status, 422);
    for (const path of ["/choose", "/returns", "/check"]) {
      const response = await fetch(`${PORTAL_URL}/${MERCHANT_ID}${path}`, { headers: { cookie: pair(found.cookie) }, redirect: "manual" });
      assert.equal(response.status, 303, path);
      assert.match(response.headers.get("location"), /again=1/);
    }
    const page = await (await fetch(`${PORTAL_URL}/${other.merchant}/choose`, { headers: { cookie: pair(found.cookie) } })).text();
    assert.match(page, /Trail running shoe/);
    assert.doesNotMatch(page, /Fern/);
  },

  "forms of other sites are refused": async () => {
    for (const path of [`/${MERCHANT_ID}`, `/${MERCHANT_ID}/check`, `/${MERCHANT_ID}/returns/RMA-1/cancel`, `/${MERCHANT_ID}/withdraw`, "/sign-out"]) {
      for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://other.example" }]) {
        assert.equal((await sendForm(path, { a: "b" }, headers)).status, 403, path);
      }
    }
  },

  "a URL with a NUL has a page": async () => {
    // A language that the merchant does not have, whatever its name, is ignored.
    for (const [path, status] of [[`/${MERCHANT_ID}/%00`, 404], [`/${MERCHANT_ID}?lang=%00`, 200]]) {
      const response = await fetch(PORTAL_URL + path);
      assert.equal(response.status, status, path);
      assert.match(response.headers.get("content-type"), /^text\/html/, path);
    }
  },

  "headers, cookie and sizes": async () => {
    const response = await fetch(`${PORTAL_URL}/${MERCHANT_ID}`);
    const page = await response.text();
    const policy = response.headers.get("content-security-policy");
    assert.match(policy, /default-src 'none'.*require-trusted-types-for 'script'/);
    assert.match(policy, new RegExp(`img-src 'self' data: ${new URL(process.env.SANDBOX_URL).host};`));
    assert.equal(response.headers.get("cache-control"), "no-store");
    const order = await publish(["FELT-HAT-SAND-M"]);
    const { cookie } = await sendForm(`/${MERCHANT_ID}`, { order: order.identifier, by: "own", key: order.email });
    for (const part of ["__Host-shopper=", "HttpOnly", "Secure", "SameSite=Lax", "Path=/"]) assert.ok(cookie.includes(part), cookie);
    assert.doesNotMatch(cookie, new RegExp(order.email));
    const styles = [...page.matchAll(/href="([^"]+\.css)"/g)].map(([, path]) => path);
    const scripts = [...page.matchAll(/src="([^"]+\.js)"/g)].map(([, path]) => path);
    for (const path of [...styles, ...scripts]) {
      assert.match((await fetch(PORTAL_URL + path)).headers.get("cache-control"), /immutable/, path);
    }
    const size = async (paths) => (await Promise.all(paths.map(transferred))).reduce((sum, bytes) => sum + bytes, 0);
    const [script, all] = [await size(scripts), await size([`/${MERCHANT_ID}`, ...scripts, ...styles])];
    console.log(`        first view: ${all} bytes, scripts ${script}`);
    assert.ok(script < 6_000 && all < 30_000);
  },
});
