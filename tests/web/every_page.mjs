// Visits every kind of page that can be reached by links, as an operator and as a merchant's person, and
// checks each: accessibility in both themes and at 320 pixels, valid HTML, no violation of the content
// security policy, no sideways scrolling.

import assert from "node:assert/strict";
import { launch, open, require, run } from "./browser.mjs";
import { person, signIn } from "./people.mjs";

const { HtmlValidate } = require("html-validate");
const AXE = require.resolve("axe-core/axe.min.js");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Rules that depend on the theme. */
const COLOR_RULES = ["color-contrast", "link-in-text-block"];

const html = new HtmlValidate({
  extends: ["html-validate:recommended"],
  rules: {
    // Rules of style that our templates do not follow.
    "void-style": "off",
    "attr-quotes": "off",
    "no-trailing-whitespace": "off",
    "no-implicit-button-type": "off",
    "long-title": "off",
    "prefer-native-element": "off",
    "no-inline-style": "error",
    "require-sri": "off",
  },
});

/** The kind of a page: its path without identifiers. */
function kind(url) {
  const { pathname } = new URL(url);
  return pathname
    .replace(/^\/merchants\/[^/]+/, "/merchants/:id")
    .replace(/\/endpoints\/[^/]+/, "/endpoints/:id")
    .replace(/^\/(reference|deliveries|replays)\/[^/]+\/.*/, "/$1/:id")
    .replace(/\/[^/]*\d[^/]*/g, "/:id");
}

async function violations(page, runOnly) {
  const options = { runOnly, resultTypes: ["violations"] };
  // @ts-ignore axe is added to the page by the caller.
  const { violations } = await page.evaluate((options) => axe.run(options), options);
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}

/** Checks the open page in the themes and widths. @returns findings */
async function check(page, text) {
  const findings = [];
  const report = await html.validateString(text);
  const messages = report.results.flatMap((result) => result.messages);
  findings.push(...messages.map((one) => `HTML ${one.line}:${one.column} ${one.ruleId}: ${one.message}`));
  await page.addScriptTag({ path: AXE });
  for (const [colorScheme, width, rules] of [["dark", 1280, COLOR_RULES], ["light", 1280, TAGS], ["light", 320, TAGS]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    const label = `${colorScheme} ${width}`;
    findings.push(...(await violations(page, rules)).map((finding) => `${label}: ${finding}`));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 0) findings.push(`${label}: scrolls sideways by ${wide} pixels`);
  }
  return findings;
}

/** Follows links from `start` and checks one page of each kind; the others differ only in their data. */
async function everyPage(session, start) {
  const browser = await launch();
  try {
    // The policy would forbid the script of axe; the other tests run with the policy.
    const { page, context } = await open(browser, { bypassCSP: true, reducedMotion: "reduce" });
    if (session) await signIn(context, session);
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
      const links = await page.$$eval("a[href]", (anchors) => anchors.map((anchor) => anchor.href));
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
  } finally {
    await browser.close();
  }
}

/** Sends forms and opens pages that fail, and checks the pages that come back. */
async function everyResult(session, steps) {
  const browser = await launch();
  try {
    const { page, context } = await open(browser, { bypassCSP: true, reducedMotion: "reduce" });
    if (session) await signIn(context, session);
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
      findings.push(...(await check(page, await last.text())).map((finding) => `${name}: ${finding}`));
    }
    assert.deepEqual(findings, []);
  } finally {
    await browser.close();
  }
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
  "results of an operator's forms": async () => {
    const { session } = await person(`results-${suffix}@example.com`, "operator");
    await everyResult(session, [
      ["no page", 404, (page) => page.goto("/no-such-page")],
      ["no merchant", 404, (page) => page.goto("/merchants/no-such-merchant")],
      ["rejected merchant", 422, (page) => send(page, "/new-merchant", { "[name=identifier]": "Not valid", "[name=name]": "" }, "Create")],
      ["invited person", 200, async (page) => {
        await page.goto("/people/new");
        await page.getByLabel("E-mail address").fill(`result-${suffix}@example.com`);
        await page.getByLabel("Role").selectOption("support");
        await page.getByRole("button", { name: "Make an invitation link" }).click();
        await page.waitForLoadState();
      }],
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
});
