// Attacks on the console: other merchants, forms of other sites, markup in every text, a service that is away.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { call, eventually, launch, open, run, token } from "./browser.mjs";
import { filled, routes } from "./console_routes.mjs";
import { person, signIn } from "./people.mjs";
import { addMerchant, change, publish, setEndpoint } from "./portal_shop.mjs";

const { AUTH_URL, RMA_URL, SANDBOX_URL, CONSOLE_URL, PORTAL_URL, MERCHANT_ID } = process.env;
const suffix = Date.now();
const browser = await launch();
const operator = await token(process.env.OPERATOR_CLIENT_ID, process.env.OPERATOR_CLIENT_SECRET);

async function inWindow(session, test) {
  const { page, context, problems } = await open(browser);
  try {
    await signIn(context, session);
    await test(page, context);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

/** A second merchant with an order, a return, a delivered message, a replay, a client and a person. */
async function otherMerchant() {
  const client = await addMerchant({ base_url: SANDBOX_URL });
  await setEndpoint(client.merchant, "rma");
  const order = await publish(["FELT-HAT-SAND-M"], { client });
  const own = await token(client.id, client.secret);
  const [{ identifier }] = order.items;
  const unit = { order_identifier: order.identifier, order_line_item_identifier: identifier, unit: 1, return_reason: "OTHER", resolution: "refund" };
  const body = { return_method: "mail-back", units: [unit] };
  const { rma_identifier: rma } = await call(`${RMA_URL}/v1/returns`, { token: own, body });
  const query = new URLSearchParams({ state: "delivered", ordering_key: `rma:${rma}` });
  const delivery = await eventually(`the message of ${rma} is delivered`, async () => {
    return (await call(`${RMA_URL}/v1/deliveries?${query}`, { token: operator })).deliveries[0];
  });
  const filter = { merchant: client.merchant, delivery: delivery.id, state: "delivered" };
  const replay = await call(`${RMA_URL}/v1/replays`, { token: operator, body: { filter } });
  const { email } = await person(`other-${suffix}@example.com`, "merchant-admin", client.merchant);
  return { client, order: order.identifier, rma, delivery: delivery.id, replay: replay.id, email };
}

/** The state that a foreign person must not change. */
async function stateOf({ client, email }) {
  const { version } = await call(`${AUTH_URL}/v1/merchants/${client.merchant}`, { token: operator });
  const { clients } = await call(`${AUTH_URL}/v1/clients?merchant=${client.merchant}`, { token: operator });
  const { people } = await call(`${AUTH_URL}/v1/people?merchant=${client.merchant}`, { token: operator });
  const secrets = clients.map((one) => [one.client_id, one.revoked_at ?? null, one.secrets?.length]);
  return { version, secrets, state: people.find((one) => one.email === email)?.state };
}

/** The paths of a method that lead to the other merchant. */
function foreignPaths(method, other) {
  const values = {
    merchant: other.client.merchant, client: other.client.id, order: other.order, rma: other.rma, email: other.email,
    interface: "rma", number: "1", position: "1", service: "rma-engine",
  };
  return routes("console", method)
    // The style sheet of the preview holds only the colours of its own URL.
    .filter((path) => !path.endsWith("/preview.css"))
    .filter((path) => /\{(merchant|email)\}|^\/(deliveries|replays)\/\{/.test(path))
    .map((path) => filled(path, { ...values, id: path.startsWith("/replays") ? other.replay : other.delivery }));
}

async function post(origin, path, headers) {
  const body = new URLSearchParams({ a: "b" });
  return fetch(origin + path, { method: "POST", headers, body, redirect: "manual" });
}

await run({
  "a merchant's person sees nothing of another merchant": async () => {
    const other = await otherMerchant();
    const { session } = await person(`foreign-${suffix}@example.com`, "merchant-admin", MERCHANT_ID);
    const paths = foreignPaths("get", other);
    assert.ok(paths.length > 20, String(paths));
    await inWindow(session, async (page) => {
      for (const path of paths) assert.equal((await page.goto(path)).status(), 404, path);
    });
    const before = await stateOf(other);
    const headers = { cookie: `__Host-session=${session}`, "sec-fetch-site": "same-origin" };
    for (const path of foreignPaths("post", other)) {
      const { status } = await post(CONSOLE_URL, path, headers);
      assert.ok(status >= 400 && status < 500, `${path}: ${status}`);
    }
    assert.deepEqual(await stateOf(other), before);
  },

  "forms of other sites are refused": async () => {
    const { session } = await person(`csrf-${suffix}@example.com`, "operator");
    const cookie = `__Host-session=${session}`;
    for (const [crate, origin] of [["console", CONSOLE_URL], ["portal", PORTAL_URL]]) {
      const paths = routes(crate, "post");
      assert.ok(paths.length > 5, String(paths));
      for (const path of [...paths.map((path) => filled(path, { merchant: MERCHANT_ID })), "/no-such-page"]) {
        for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://other.example" }]) {
          const { status } = await post(origin, path, { ...headers, cookie });
          assert.equal(status, 403, `${crate} ${path} ${JSON.stringify(headers)}`);
        }
      }
    }
  },

  "markup in the texts of a merchant is shown as text": async () => {
    const markup = `<script>throw 1</script><img src=x onerror="throw 2">"'&amp;`;
    const client = await addMerchant();
    const { merchant } = client;
    const policy = { rules: [{ id: "markup", text: { en: markup }, when: { line_tags: [markup] }, then: { returnable: false } }] };
    await change(merchant, { policy });
    await change(merchant, { name: markup, concept: markup, support_contact: { email: "help@example.com", name: markup } });
    await call(`${AUTH_URL}/v1/clients`, { token: operator, body: { merchant, name: markup, scopes: ["orders"] } });
    const email = `named-${suffix}@example.com`;
    await call(`${AUTH_URL}/v1/people`, { token: operator, body: { email, name: markup, role: "merchant-admin", merchant } });
    const { identifier } = await publish(["FELT-HAT-SAND-M"], { client, text: markup });
    const { session } = await person(`markup-merchant-${suffix}@example.com`, "operator");
    const typed = encodeURIComponent(markup);
    await inWindow(session, async (page) => {
      for (const [path, isShown] of [
        [`/merchants?q=${merchant}`, true], [`/merchants/${merchant}/endpoints`, true], [`/merchants/${merchant}/clients`, true],
        [`/merchants/${merchant}/people`, true], [`/merchants/${merchant}/policy`, true], [`/merchants/${merchant}/policy/versions`, true], [`/people/${email}`, true], [`/merchants/${merchant}/audit`, true],
        [`/merchants/${merchant}/orders/${identifier}`, true], [`/merchants?q=${typed}`, true], [`/merchants/${merchant}`, false],
        [`/audit?actor=${typed}&action=${typed}&from=${typed}`, false], [`/replays/new?merchant=${merchant}&event=${typed}`, false],
        [`/exchange-orders?original_order_id=${typed}`, false], [`/people?q=${typed}`, false],
      ]) {
        await page.goto(path);
        assert.equal(await page.locator("main img, main script").count(), 0, path);
        if (isShown) assert.ok((await page.locator("main").innerText()).includes("<script>throw 1"), path);
      }
    });
  },

  "a page stands without a service that is away": async () => {
    const { session } = await person(`away-${suffix}@example.com`, "operator");
    const pid = Number(readFileSync(`${process.env.STACK_PIDS}/exchange`, "utf8").split(" ")[0]);
    await inWindow(session, async (page) => {
      await page.goto("/");
      process.kill(pid, "SIGSTOP");
      try {
        for (const path of ["/", "/deliveries", "/replays", "/merchants", "/exchange-orders"]) {
          const response = await page.goto(path);
          assert.equal(response.status(), 200, path);
          assert.match(await page.locator("main").innerText(), /exchange/, path);
        }
        await page.goto("/");
        const due = page.locator(".figure-card").filter({ hasText: "Oldest due delivery" });
        assert.match(await due.innerText(), /not known|at least/);
      } finally {
        process.kill(pid, "SIGCONT");
      }
      await eventually("the service is back", async () => {
        await page.goto("/");
        return !/away|does not respond/.test(await page.locator("main").innerText());
      });
    });
  },

  "a live page says when it was last refreshed": async () => {
    const { session } = await person(`live-${suffix}@example.com`, "operator");
    await inWindow(session, async (page, context) => {
      // The page refreshes itself every 15 s, and after a failure 30 s later. The clock of the window jumps over them.
      await page.clock.install();
      await page.goto("/");
      await page.route(/\/$/, (route) => route.fulfill({ status: 503, body: "" }));
      const note = page.getByText(/Not refreshed since \d\d:\d\d UTC/);
      await page.clock.fastForward(16_000);
      await note.waitFor();
      await page.unrouteAll();
      await page.clock.fastForward(31_000);
      await note.waitFor({ state: "detached" });
      await context.clearCookies();
      await page.clock.fastForward(16_000);
      await note.waitFor();
      assert.equal(await page.getByRole("link", { name: "Reload the page" }).count(), 1);
    });
  },

  "a button does not change under the mouse": async () => {
    const { session } = await person(`mouse-${suffix}@example.com`, "operator");
    await inWindow(session, async (page) => {
      const path = /\/endpoints$/;
      await page.clock.install();
      await page.goto(`/merchants/${MERCHANT_ID}/endpoints`);
      await page.route(path, async (route) => {
        const response = await route.fetch();
        const body = (await response.text()).replaceAll("Send sample", "Another action");
        await route.fulfill({ response, body });
      });
      const refresh = async () => {
        const loaded = page.waitForResponse(path);
        await page.clock.fastForward(16_000);
        await (await loaded).finished();
      };
      const button = page.locator("#endpoints button").first();
      await button.hover();
      // The second refresh begins after the first one was shown.
      await refresh();
      await refresh();
      assert.match(await button.innerText(), /Send sample/);
      await page.mouse.move(0, 0);
      await refresh();
      await page.getByRole("button", { name: /Another action/ }).first().waitFor();
    });
  },
});
await browser.close();
