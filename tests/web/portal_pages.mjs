// Checks every page of the portal: accessibility, valid HTML, no sideways scrolling, no text without a translation,
// and markup in every field that a merchant controls.

import assert from "node:assert/strict";
import { call, eventually, launch, require, run } from "./browser.mjs";
import { inPortal } from "./portal_page.mjs";
import { addMerchant, change, deepLink, publish, setEndpoint } from "./portal_shop.mjs";

const { HtmlValidate } = require("html-validate");
const AXE = require.resolve("axe-core/axe.min.js");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const LINES = [{ sku: "COTTON-TEE-RUST-M", quantity: 2 }, "TRAIL-SHOE-NAVY-42", "FAMILY-TENT-OLIVE", { sku: "FELT-HAT-SAND-M", tags: ["FinalSale"] }];
const MONTHS = /\b(Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)[a-z]*\b/g;
const MARKUP = `<script>throw 1</script><img src=x onerror="throw 2">"'&amp;`;

const html = new HtmlValidate({
  extends: ["html-validate:recommended"],
  rules: {
    // Rules of style that our templates do not follow.
    "void-style": "off", "attr-quotes": "off", "no-trailing-whitespace": "off", "no-implicit-button-type": "off",
    "long-title": "off", "prefer-native-element": "off", "no-inline-style": "error", "require-sri": "off",
  },
});
const browser = await launch();

/** The paths of all pages for an order, and a return that was made of it. */
async function paths(portal, order) {
  const item = (sku, ...parts) => new URLSearchParams({ i: [order.identifier, sku, 1, ...parts].join("~") });
  const chosen = item("TRAIL-SHOE-NAVY-42", "TOO_SMALL");
  const exchange = item("TRAIL-SHOE-NAVY-42", "TOO_SMALL", "exchange", "TRAIL-SHOE-NAVY-43");
  const tee = item("COTTON-TEE-RUST-M", "OTHER", "refund");
  await portal.goto(`/check?${tee}&method=mail-back`);
  await portal.page.locator("main form button[type=submit]").last().click();
  await portal.page.waitForURL(/\/returns\/RMA-/);
  const [rma] = portal.page.url().match(/RMA-\w+/);
  return [
    "", "?again=1", "/choose", `/choose?${chosen}`, "/instead?choose=1", `/instead?${chosen}`, `/instead?${chosen}&js=1`,
    `/method?${exchange}`, `/check?${exchange}`, `/check?${exchange}&method=mail-back`, `/returns/${rma}?new=1`, `/returns/${rma}`,
    `/returns/${rma}/cancel`, "/returns", "/returns/RMA-0", "/withdraw",
  ];
}

async function violations(page) {
  await page.addScriptTag({ path: AXE });
  // @ts-ignore axe is added above.
  const { violations } = await page.evaluate((tags) => axe.run({ runOnly: tags }), TAGS);
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}

const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

async function invalidHtml(response) {
  const { results } = await html.validateString(await response.text());
  return results.flatMap((result) => result.messages).map((one) => `HTML ${one.line}:${one.column} ${one.ruleId}: ${one.message}`);
}

/** Every text of the page, also those for screen readers, without the names of languages. */
const texts = (page) => page.evaluate(() => {
  const found = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.closest("script, style, .languages ul")) found.push(node.textContent.trim());
  }
  for (const name of ["aria-label", "alt", "title", "placeholder"]) {
    for (const element of document.querySelectorAll(`[${name}]`)) found.push(element.getAttribute(name));
  }
  return found.filter((text) => text !== "");
});

/** Opens a window that has found the order. */
async function onPages(order, options, test) {
  const { url } = await deepLink(order.identifier);
  await inPortal(browser, options, async (portal) => {
    await portal.page.goto(url);
    await test(portal, await paths(portal, order));
  });
}

async function check(page, response) {
  await page.waitForLoadState("networkidle");
  const found = [...(await violations(page)), ...(await invalidHtml(response))];
  const wide = await overflow(page);
  if (wide > 0) found.push(`scrolls sideways by ${wide} pixels`);
  return found.map((text) => `${new URL(page.url()).pathname}: ${text}`);
}

/** Presses the button of the page's last form. @returns the response with the next page */
async function submit(page) {
  const isPage = (response) => response.request().isNavigationRequest() && (response.status() < 300 || response.status() >= 400);
  const [response] = await Promise.all([page.waitForResponse(isPage), page.locator("main form button[type=submit]").last().click()]);
  await page.waitForLoadState();
  return response;
}

/** Visits all pages in a width and theme. @returns findings */
async function visit(options, { width, language }) {
  const findings = [];
  const order = await publish(LINES);
  // The policy would forbid the script of axe; the journeys run with the policy.
  const window = { bypassCSP: true, reducedMotion: "reduce", ...options };
  await onPages(order, window, async (portal, all) => {
    const { page } = portal;
    await page.setViewportSize({ width, height: 844 });
    for (const path of all) {
      findings.push(...(await check(page, await portal.goto(`${path}${path.includes("?") ? "&" : "?"}lang=${language}`))));
    }
    // The pages of a withdrawal follow from its form, the last of the pages above.
    for (const [id, value] of [["name", "Mia Moreau"], ["order", order.identifier], ["email", order.email]]) await page.locator(`#${id}`).fill(value);
    findings.push(...(await check(page, await submit(page))));
    findings.push(...(await check(page, await submit(page))));
  });
  return findings;
}

await run({
  "pages on a phone": async () => assert.deepEqual(await visit({}, { width: 390, language: "en" }), []),
  "pages in German, 320 pixels wide": async () => assert.deepEqual(await visit({}, { width: 320, language: "de" }), []),
  "pages in the dark": async () => assert.deepEqual(await visit({ colorScheme: "dark" }, { width: 390, language: "en" }), []),
  "pages from right to left": async () => assert.deepEqual(await visit({}, { width: 320, language: "ar-XB" }), []),

  "every text is translated": async () => {
    const order = await publish(LINES);
    const { products } = await call(`${process.env.SANDBOX_URL}/catalogue`);
    const variants = products.flatMap(({ variants }) => variants);
    const labels = ["Too small", "Too large", "Not what I ordered", "Arrived damaged", "I changed my mind", "Another reason"];
    const data = [
      ...variants.flatMap(({ title, sku, attributes }) => [title, sku, ...attributes.map(({ value }) => value)]), ...labels,
      order.identifier, order.email, "help@fern-and-field.example", "Fern & Field",
    ].toSorted((a, b) => b.length - a.length);
    const untranslated = [];
    await onPages(order, { locale: "en-US" }, async (portal, all) => {
      for (const path of all) {
        await portal.goto(`${path}${path.includes("?") ? "&" : "?"}lang=en-XA`);
        for (const text of await texts(portal.page)) {
          const rest = data.reduce((left, known) => left.replaceAll(known, ""), text).replace(/RMA-\w+/g, "").replace(MONTHS, "");
          if (/[A-Za-z]{2}/.test(rest)) untranslated.push(`${path}: ${text}`);
        }
      }
    });
    assert.deepEqual([...new Set(untranslated)], []);
  },

  "markup in every field is shown as text": async () => {
    const shop = await addMerchant({
      base_url: `${process.env.SANDBOX_URL}/markup`,
      returns: { reasons: [{ code: "M", label: MARKUP, offers_exchange: true }] },
      appearance: { name: MARKUP, reason_labels: { M: { en: MARKUP } }, withdrawal: true },
    });
    await setEndpoint(shop.merchant, "variants");
    const attributes = (value) => [{ name: MARKUP, value }];
    const body = ["1", "2"].map((number) => ({ sku: `${MARKUP}${number}`, title: MARKUP, attributes: attributes(MARKUP + number), unit_price_amount_cents: 4500, quantity_in_stock: 5 }));
    const steps = [{ do: "respond", body, times: "always" }];
    await call(`${process.env.SANDBOX_URL}/behaviour`, { method: "PUT", body: { path: "/markup/sku/*", steps } });
    const order = await publish([{ sku: "FELT-HAT-SAND-M", image_url: `javascript:alert("${MARKUP}")` }], { client: shop, text: MARKUP });
    const { url } = await deepLink(order.identifier, false, shop);
    const query = new URLSearchParams({ i: `${order.identifier}~FELT-HAT-SAND-M~1~M` });
    await inPortal(browser, { merchant: shop.merchant }, async (portal) => {
      await eventually("the portal of the new merchant opens", async () => (await portal.page.goto(url)).ok());
      for (const path of ["", "/choose", `/choose?${query}`, `/instead?${query}`, `/method?${query}~refund`, `/check?${query}~refund&method=mail-back`, "/withdraw"]) {
        await portal.goto(path);
        assert.equal(await portal.page.locator("main img, body script, [onerror]").count(), 0, path);
        assert.ok((await portal.page.locator("body").innerText()).includes("<script>throw 1</script>"), path);
      }
    });
    await call(`${process.env.SANDBOX_URL}/behaviour?path=${encodeURIComponent("/markup/sku/*")}`, { method: "DELETE" });
  },

  "a change of the appearance shows": async () => {
    const shop = await addMerchant();
    await inPortal(browser, { merchant: shop.merchant }, async (portal) => {
      await eventually("the portal of the new merchant opens", async () => (await portal.goto()).ok());
      await change(shop.merchant, { appearance: { name: "Another name", colors: { primary: "#7a1f5c" } } });
      await eventually("the portal has the new look", async () => {
        await portal.goto();
        const color = await portal.page.getByRole("button", { name: portal.t("find-submit") }).evaluate((it) => getComputedStyle(it).backgroundColor);
        return color === "rgb(122, 31, 92)" && /Another name/.test(await portal.page.title());
      });
    });
  },
});
await browser.close();
