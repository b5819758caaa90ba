// Visits every kind of page that can be reached by links, as an operator and as a merchant's person, and
// checks each: accessibility in both themes and at 320 pixels, valid HTML, no violation of the content
// security policy, no sideways scrolling.

import assert from "node:assert/strict";
import { launch, open, require, run } from "./browser.mjs";
import { person, signIn } from "./people.mjs";

const { HtmlValidate } = require("html-validate");
const AXE = require.resolve("axe-core/axe.min.js");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Pages of one kind differ only in their data, so a few of each are enough. */
const PER_KIND = 2;

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
  return pathname.replace(/^\/merchants\/[^/]+/, "/merchants/:id").replace(/^\/reference\/.*/, "/reference/:id").replace(/\/[^/]*\d[^/]*/g, "/:id");
}

async function violations(page) {
  await page.addScriptTag({ path: AXE });
  // @ts-ignore axe is added above.
  const { violations } = await page.evaluate((tags) => axe.run({ runOnly: tags }), TAGS);
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}

/** Checks one page in the themes and widths. @returns findings */
async function check(browser, session, url) {
  const findings = [];
  for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 320]]) {
    // The policy would forbid the script of axe; the other tests run with the policy.
    const options = { colorScheme, viewport: { width, height: 800 }, bypassCSP: true, reducedMotion: "reduce" };
    const { page, context } = await open(browser, options);
    if (session) await signIn(context, session);
    const response = await page.goto(url);
    const label = `${colorScheme} ${width}`;
    findings.push(...(await violations(page)).map((text) => `${label}: ${text}`));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 0) findings.push(`${label}: scrolls sideways by ${wide} pixels`);
    if (width === 1280 && colorScheme === "light") {
      const report = await html.validateString(await response.text());
      const messages = report.results.flatMap((result) => result.messages);
      findings.push(...messages.map((one) => `HTML ${one.line}:${one.column} ${one.ruleId}: ${one.message}`));
    }
    await context.close();
  }
  return findings;
}

/** Follows links from `start`. @returns the URLs of a few pages of each kind */
async function crawl(browser, session, start) {
  const { page, context, problems } = await open(browser);
  if (session) await signIn(context, session);
  const queue = [...start];
  const seen = new Set(queue);
  const counts = new Map();
  const urls = [];
  while (queue.length > 0) {
    const path = queue.shift();
    const name = kind(new URL(path, process.env.CONSOLE_URL).href);
    if ((counts.get(name) ?? 0) >= PER_KIND) continue;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const response = await page.goto(path);
    assert.ok(response.status() < 400, `${path}: ${response.status()}`);
    urls.push(path);
    const links = await page.$$eval("a[href]", (anchors) => anchors.map((anchor) => anchor.href));
    for (const link of links) {
      const url = new URL(link);
      const next = url.pathname + url.search;
      if (url.origin === new URL(process.env.CONSOLE_URL).origin && !seen.has(next)) {
        seen.add(next);
        queue.push(next);
      }
    }
  }
  await context.close();
  assert.deepEqual(problems, []);
  return urls;
}

async function everyPage(session, start) {
  const browser = await launch();
  try {
    const urls = await crawl(browser, session, start);
    const findings = [];
    for (const url of urls) findings.push(...(await check(browser, session, url)).map((text) => `${url}: ${text}`));
    console.log(`        ${urls.length} pages`);
    if (process.env.VERBOSE) console.log(urls.join("\n"));
    assert.deepEqual(findings, []);
  } finally {
    await browser.close();
  }
}

const suffix = Date.now();
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
});
