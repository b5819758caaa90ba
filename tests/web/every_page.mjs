// Visits every kind of page that can be reached by links, as an operator and as a merchant's person, and
// checks each: accessibility in both themes and at 320 pixels, valid HTML, no violation of the content
// security policy, no sideways scrolling.

import assert from "node:assert/strict";
import { launch, open, run } from "./browser.mjs";
import { checkLooks, invalidHtml } from "./page_checks.mjs";
import { person, signIn } from "./people.mjs";

/** The looks in which every page is checked. */
const SCREENS = [{ colorScheme: "dark", width: 1280, onlyColors: true }, { width: 1280 }, { width: 320 }];

const browser = await launch();

/** The kind of a page: its path without identifiers. */
function kind(url) {
  const { pathname } = new URL(url);
  return pathname
    .replace(/^\/merchants\/[^/]+/, "/merchants/:id")
    .replace(/\/endpoints\/[^/]+/, "/endpoints/:id")
    .replace(/^\/(reference|deliveries|replays)\/[^/]+\/.*/, "/$1/:id")
    .replace(/\/[^/]*\d[^/]*/g, "/:id");
}

/** Checks the open page in all looks. The HTML is checked while the browser works. @returns findings */
async function check(page, text) {
  const [looks, markup] = await Promise.all([checkLooks(page, SCREENS), invalidHtml(text)]);
  return [...markup, ...looks];
}

/** Opens a window, signed in if there is a session. */
async function inWindow(session, test) {
  // The policy would forbid the script of axe; the other tests run with the policy.
  const { page, context } = await open(browser, { bypassCSP: true, reducedMotion: "reduce" });
  try {
    if (session) await signIn(context, session);
    await test(page);
  } finally {
    await context.close();
  }
}

/** Follows links from `start` and checks one page of each kind; the others differ only in their data. */
async function everyPage(session, start) {
  await inWindow(session, async (page) => {
    const origin = new URL(process.env.CONSOLE_URL).origin;
    const queue = [...start];
    const seen = new Set(queue);
    const kinds = new Set();
    const findings = [];
    while (queue.length > 0) {
      const path = queue.shift();
      const name = kind(new URL(path, origin).href);
      if (kinds.has(name)) continue;
      kinds.add(name);
      const response = await page.goto(path);
      if (response.status() >= 400) {
        findings.push(`${path}: status ${response.status()}`);
        continue;
      }
      const links = await page.$$eval("a[href]:not([download])", (anchors) => anchors.map((anchor) => anchor.href));
      const started = Date.now();
      const found = await check(page, await response.text());
      if (process.env.VERBOSE) console.log(`        ${path} (${Date.now() - started} ms, ${found.length} findings)`);
      findings.push(...found.map((finding) => `${path}: ${finding}`));
      for (const link of links) {
        const url = new URL(link);
        const next = url.pathname + url.search;
        if (url.origin === origin && !seen.has(next)) {
          seen.add(next);
          queue.push(next);
        }
      }
    }
    console.log(`        ${kinds.size} pages`);
    assert.deepEqual(findings, []);
  });
}

/** Sends forms and opens pages that fail, and checks the pages that come back. */
async function everyResult(session, steps) {
  await inWindow(session, async (page) => {
    const findings = [];
    for (const [name, status, step] of steps) {
      const isPage = (response) => response.request().isNavigationRequest() && (response.status() < 300 || response.status() >= 400);
      /** @type {import("playwright-core").Response | undefined} */
      let last;
      const remember = (response) => {
        if (isPage(response)) last = response;
      };
      page.on("response", remember);
      await step(page);
      page.off("response", remember);
      if (last.status() !== status) findings.push(`${name}: status ${last.status()}`);
      if (status === 422) {
        const focus = await page.evaluate(() => document.activeElement?.getAttribute("role"));
        if (focus !== "alert" || !(await page.title()).startsWith("Error: ")) findings.push(`${name}: the focus or the title does not say so`);
      }
      findings.push(...(await check(page, await last.text())).map((finding) => `${name}: ${finding}`));
    }
    assert.deepEqual(findings, []);
  });
}

/** Fills a form without the checks of the browser and sends it. */
async function send(page, path, fields, button) {
  await page.goto(path);
  await page.locator("main form").evaluateAll((forms) => forms.forEach((form) => form.setAttribute("novalidate", "")));
  for (const [selector, value] of Object.entries(fields)) await page.locator(`main ${selector}`).first().fill(value);
  await page.getByRole("button", { name: button }).first().click();
  await page.waitForLoadState();
}

const suffix = Date.now();
const merchant = `/merchants/${process.env.MERCHANT_ID}`;
await run({
  "pages of an operator": async () => {
    const { session } = await person(`pages-${suffix}@example.com`, "operator");
    await everyPage(session, ["/", "/account", "/people"]);
  },
  "pages of a merchant's person": async () => {
    const { session } = await person(`pages-m-${suffix}@example.com`, "merchant-admin", process.env.MERCHANT_ID);
    await everyPage(session, ["/", "/account"]);
  },
  "pages without a session": () => everyPage(null, ["/sign-in"]),
  "the filter of deliveries is open on large screens, and has its conditions above the list on small ones": async () => {
    const { session } = await person(`filter-${suffix}@example.com`, "operator");
    for (const [width, path, isOpen] of [[1280, "/deliveries", true], [390, "/deliveries", false], [390, "/deliveries?state=dead", false]]) {
      const { page, context } = await open(browser, { javaScriptEnabled: false, viewport: { width, height: 844 } });
      await signIn(context, session);
      await page.goto(path);
      assert.equal(await page.getByLabel("State").isVisible(), isOpen, `${path} at ${width} pixels`);
      if (!isOpen) await page.getByText("Filter", { exact: true }).click();
      await page.getByLabel("State").selectOption("pending");
      if (path.includes("?")) {
        await page.getByRole("link", { name: "state: dead" }).click();
        assert.equal(new URL(page.url()).search, "");
      }
      await context.close();
    }
  },
  "unknown values of lists are explained in plain words, and long ones fit": async () => {
    const { session } = await person(`values-${suffix}@example.com`, "operator");
    const lists = ["deliveries", "replays", "returns", "orders", "exchange-orders", "reviews", "overdue", "overdue/months", "discrepancies", "audit", "warehouse/receipts"];
    const long = "x".repeat(2000);
    const texts = [`lookup?q=${long}`, `deliveries?text=${long}`, `audit?actor=${long}`, `merchants?q=${long}`];
    await inWindow(session, async (page) => {
      await page.setViewportSize({ width: 375, height: 800 });
      for (const path of [...lists.map((list) => `${list}?state=zombie&kind=zombie&after=zzz`), ...texts]) {
        await page.goto(`/${path}`);
        const shown = (await page.locator("main :is(.note, .field-error)").allInnerTexts()).join(" ");
        assert.doesNotMatch(shown, /deserialize|parsing|variant|UUID|query/i, path);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
      }
    });
  },
  "results of an operator's forms": async () => {
    const { session } = await person(`results-${suffix}@example.com`, "operator");
    await everyResult(session, [
      ["no page", 404, (page) => page.goto("/no-such-page")],
      ["no delivery", 404, async (page) => {
        await page.goto("/deliveries/exchange/mistyped");
        await page.getByRole("navigation", { name: "Main" }).waitFor();
      }],
      ["no merchant", 404, (page) => page.goto("/merchants/no-such-merchant")],
      ["no merchant with NUL", 404, (page) => page.goto("/merchants/%00")],
      ["rejected merchant", 422, (page) => send(page, "/new-merchant", { "[name=identifier]": "Not valid", "[name=name]": "" }, "Create")],
      ["invited person", 200, async (page) => {
        await page.goto("/people/new");
        await page.getByLabel("E-mail address").fill(`result-${suffix}@example.com`);
        await page.getByLabel("Role").selectOption("support");
        await page.getByRole("button", { name: "Make an invitation link" }).click();
        await page.waitForLoadState();
      }],
      ["rejected policy", 422, (page) => send(page, `${merchant}/policy`, { "[name=policy]": '{ "rules": [{ "id": "a", "then": {} }] }' }, "Save")],
      ["unreadable policy", 422, (page) => send(page, `${merchant}/policy`, { "[name=policy]": "{" }, "Save")],
      ["preview of no order", 422, (page) => send(page, `${merchant}/policy`, { "[name=order]": "no-such-order" }, "Try on this order")],
      ["preview of returns", 200, (page) => send(page, `${merchant}/policy`, {}, "Compare with the last 90 days")],
      ["rejected endpoint", 422, (page) => send(page, `${merchant}/endpoints/rma`, { "[name=url]": "http://" }, "Save")],
      ["new client", 200, async (page) => {
        await page.goto(`${merchant}/new-client`);
        await page.locator("main input[name=name]").fill("Checked");
        await page.getByRole("checkbox").first().check();
        await page.getByRole("button", { name: "Add", exact: true }).click();
        await page.waitForLoadState();
      }],
      ["sample", 200, (page) => send(page, `${merchant}/endpoints`, {}, /^Send sample to/)],
      ["invalid filter", 200, (page) => page.goto("/deliveries?status=many&from=yesterday")],
      ["unknown values", 200, (page) => page.goto("/deliveries?state=zombie&after=zzz")],
      ["invalid audit filter", 200, (page) => page.goto("/audit?from=yesterday")],
    ]);
  },
  "results of a viewer's requests": async () => {
    const { session } = await person(`results-v-${suffix}@example.com`, "merchant-viewer", process.env.MERCHANT_ID);
    await everyResult(session, [["denied", 403, (page) => page.goto("/new-merchant")]]);
  },
  "results without a session": () => everyResult(null, [
    ["wrong password", 401, (page) => send(page, "/sign-in", { "[name=email]": `nobody-${suffix}@example.com`, "[name=password]": "wrong" }, "Sign in")],
    ["used invitation", 404, (page) => page.goto("/invitation?token=none")],
  ]),
}, 2);
await browser.close();
