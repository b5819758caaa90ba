// Checks every page of the portal: accessibility in both themes, valid HTML, no sideways scrolling on narrow screens,
// with large text and from right to left, no text without a translation, a journey with the keyboard alone, and markup
// in every field that a merchant controls. A page is loaded once in each language and checked in several looks.

import assert from "node:assert/strict";
import { call, eventually, launch, run } from "./browser.mjs";
import { checkLooks, invalidHtml } from "./page_checks.mjs";
import { inPortal } from "./portal_page.mjs";
import { addMerchant, change, deepLink, publish, returnsOf, setEndpoint } from "./portal_shop.mjs";

const LINES = [{ sku: "COTTON-TEE-RUST-M", quantity: 2 }, "TRAIL-SHOE-NAVY-42", "FAMILY-TENT-OLIVE", { sku: "FELT-HAT-SAND-M", tags: ["FinalSale"] }];
const SHOE = "Trail running shoe, Navy, 42";
const MARKUP = `<script>throw 1</script><img src=x onerror="throw 2">"'&amp;`;
/** The looks of a page by its language. */
const SCREENS = {
  en: [{ width: 390 }, { width: 390, colorScheme: "dark", onlyColors: true }, { width: 390, textSize: 200, onlyWidth: true }],
  de: [{ width: 320 }],
  "ar-XB": [{ width: 320 }],
};

const browser = await launch();

/** The paths of all pages for an order, and a return that was made of it. */
async function paths(portal, order) {
  const item = (sku, ...parts) => new URLSearchParams({ i: [order.identifier, sku, 1, ...parts].join("~") });
  const chosen = item("TRAIL-SHOE-NAVY-42", "TOO_SMALL");
  const exchange = item("TRAIL-SHOE-NAVY-42", "TOO_SMALL", "exchange", "TRAIL-SHOE-RUST-43");
  const tee = item("COTTON-TEE-RUST-M", "OTHER", "refund");
  await portal.goto(`/check?${tee}&method=mail-back`);
  await portal.isAt("check-title");
  const rma = await portal.confirm();
  return [
    "", "?again=1", "/choose", `/choose?${chosen}`, "/resolution?choose=1", `/resolution?${chosen}`, `/resolution?${chosen}&js=1`,
    `/method?${exchange}`, `/check?${exchange}`, `/check?${exchange}&method=mail-back`, `/returns/${rma}?new=1`, `/returns/${rma}`,
    `/returns/${rma}/cancel`, "/returns", "/returns/RMA-0", "/withdraw",
  ];
}

const inLanguage = (path, language) => `${path}${path.includes("?") ? "&" : "?"}lang=${language}`;

/** Waits until the parts that scripts load are there, and checks the open page. @returns findings */
async function check(page, response, language) {
  await page.locator("[aria-busy=true]").waitFor({ state: "detached" });
  const [looks, markup] = await Promise.all([checkLooks(page, SCREENS[language]), invalidHtml(await response.text())]);
  return [...markup, ...looks].map((text) => `${language} ${new URL(page.url()).pathname}: ${text}`);
}

/** Presses the button of the page's last form. @returns the response with the next page */
async function submit(page) {
  const isPage = (response) => response.request().isNavigationRequest() && (response.status() < 300 || response.status() >= 400);
  const [response] = await Promise.all([
    page.waitForResponse(isPage), page.waitForEvent("load"), page.locator("main form button[type=submit]").last().click(),
  ]);
  return response;
}

/** Opens a window that has found the order. */
async function onPages(order, test) {
  const { url } = await deepLink(order.identifier);
  // The policy would forbid the script of axe; the journeys run with the policy.
  await inPortal(browser, { bypassCSP: true, reducedMotion: "reduce" }, async (portal) => {
    await portal.page.goto(url);
    await test(portal, await paths(portal, order));
  });
}

/** Visits all pages in a language. The pages of a withdrawal follow from its form. */
async function visit(language) {
  const findings = [];
  const order = await publish(LINES);
  await onPages(order, async (portal, all) => {
    const { page } = portal;
    for (const path of all) findings.push(...(await check(page, await portal.goto(inLanguage(path, language)), language)));
    for (const [id, value] of [["name", "Mia Moreau"], ["order", order.identifier], ["email", order.email]]) await page.locator(`#${id}`).fill(value);
    findings.push(...(await check(page, await submit(page), language)));
    findings.push(...(await check(page, await submit(page), language)));
  });
  assert.deepEqual(findings, []);
}

/** Every text of a page, also those for screen readers, without the names of languages. The page is not shown. */
const texts = (page, source) => page.evaluate((source) => {
  const parsed = new DOMParser().parseFromString(source, "text/html");
  const found = [];
  const walker = parsed.createTreeWalker(parsed.documentElement, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.closest("script, style, .languages ul")) found.push(node.textContent.trim());
  }
  for (const name of ["aria-label", "alt", "title", "placeholder"]) {
    for (const element of parsed.querySelectorAll(`[${name}]`)) found.push(element.getAttribute(name));
  }
  return found.filter((text) => text !== "");
}, source);

/** Texts of the merchant and the shopper, which are not translated. The longest are first. */
async function data(order) {
  const { products } = await call(`${process.env.SANDBOX_URL}/catalogue`);
  const variants = products.flatMap(({ variants }) => variants);
  const labels = ["Too small", "Too large", "Not what I ordered", "Arrived damaged", "I changed my mind", "Another reason"];
  return [
    ...variants.flatMap(({ title, sku, attributes }) => [title, sku, ...attributes.map(({ value }) => value)]), ...labels,
    order.identifier, order.email, "help@fern-and-field.example", "Fern & Field",
    // The merchant's words about its rule.
    "Items up to 15.00 USD can stay with you.",
  ].toSorted((a, b) => b.length - a.length);
}

/** Presses Tab until an element has the focus, which must be visible. */
async function reach(page, locator) {
  await locator.waitFor();
  const hasFocus = () => locator.evaluate((element) => element === document.activeElement);
  for (let steps = 0; !(await hasFocus()); steps += 1) {
    assert.ok(steps < 100, `Tab does not reach ${locator}`);
    await page.keyboard.press("Tab");
  }
  const outline = await locator.evaluate((element) => getComputedStyle(element).outlineStyle);
  assert.notEqual(outline, "none", `the focus is not visible on ${locator}`);
}

await run({
  "pages on a phone, in the dark and with large text": () => visit("en"),
  "pages in German, 320 pixels wide": () => visit("de"),
  "pages from right to left, 320 pixels wide": () => visit("ar-XB"),

  "every text is translated": async () => {
    const order = await publish(LINES);
    const known = await data(order);
    const untranslated = [];
    await onPages(order, async (portal, all) => {
      for (const path of all) {
        const response = await portal.page.request.get(`${process.env.PORTAL_URL}/${portal.merchant}${inLanguage(path, "en-XA")}`);
        for (const text of await texts(portal.page, await response.text())) {
          const rest = known.reduce((left, one) => left.replaceAll(one, ""), text.replace(/RMA-\w+/g, ""));
          if (/[A-Za-z]{2}/.test(rest)) untranslated.push(`${path}: ${text}`);
        }
      }
    });
    assert.deepEqual([...new Set(untranslated)], []);
  },

  "a journey with the keyboard alone": async () => {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await inPortal(browser, {}, async (portal) => {
      const { page } = portal;
      const enter = async (locator) => {
        await reach(page, locator);
        await page.keyboard.press("Enter");
      };
      const press = (id) => enter(page.getByRole("button", { name: portal.t(id), exact: true }));
      const type = async (locator, text) => {
        await reach(page, locator);
        await page.keyboard.type(text);
      };
      await portal.goto();
      await portal.isAt("find-title");
      await page.keyboard.press("Tab");
      const skip = page.getByRole("link", { name: portal.t("skip-to-content") });
      assert.equal(await skip.evaluate((element) => element === document.activeElement), true);
      await page.keyboard.press("Enter");
      await type(page.getByLabel(portal.t("find-order")), order.identifier);
      await type(page.getByLabel(portal.t("find-key-both")), order.email);
      await press("find-submit");
      await portal.isAt("choose-title");
      await reach(page, portal.row(SHOE).getByRole("checkbox"));
      await page.keyboard.press("Space");
      await reach(page, portal.row(SHOE).getByRole("combobox"));
      await page.keyboard.press("ArrowDown");
      assert.notEqual(await portal.row(SHOE).getByRole("combobox").inputValue(), "");
      await press("form-continue");
      await portal.isAt("resolution-title");
      await reach(page, portal.group(SHOE).getByRole("radio", { checked: true }));
      await press("form-continue");
      await portal.isAt("method-title");
      const chosen = page.getByRole("radio", { checked: true });
      await reach(page, (await chosen.count()) > 0 ? chosen : page.getByRole("radio").first());
      await page.keyboard.press("Space");
      await press("form-continue");
      await portal.isAt("check-title");
      await press("check-confirm");
      const rma = await portal.rma();
      assert.deepEqual((await returnsOf(order.identifier)).map((it) => it.rma_identifier), [rma]);
      await enter(page.getByRole("link", { name: portal.t("return-cancel"), exact: true }));
      await portal.isAt("cancel-title", { rma });
      await press("cancel-submit");
      await page.getByText(portal.t("track-canceled")).first().waitFor();
    });
  },

  "markup in every field is shown as text": async () => {
    const shop = await addMerchant({
      base_url: `${process.env.SANDBOX_URL}/markup`,
      returns: { reasons: [{ code: "M", label: MARKUP, offers_exchange: true }] },
      appearance: { name: MARKUP, reason_labels: { M: { en: MARKUP } }, withdrawal: true },
    });
    await setEndpoint(shop.merchant, "exchange-variants");
    const attributes = (value) => [{ name: MARKUP, value }];
    const body = ["1", "2"].map((number) => ({ sku: `${MARKUP}${number}`, title: MARKUP, attributes: attributes(MARKUP + number), unit_price_amount_cents: 4500, quantity_in_stock: 5 }));
    const steps = [{ do: "respond", body, times: "always" }];
    await call(`${process.env.SANDBOX_URL}/behaviour`, { method: "PUT", body: { path: "/markup/sku/*", steps } });
    const order = await publish([{ sku: "FELT-HAT-SAND-M", image_url: `javascript:alert("${MARKUP}")` }], { client: shop, text: MARKUP });
    const { url } = await deepLink(order.identifier, false, shop);
    const query = new URLSearchParams({ i: `${order.identifier}~FELT-HAT-SAND-M~1~M` });
    await inPortal(browser, { merchant: shop.merchant }, async (portal) => {
      await eventually("the portal of the new merchant opens", async () => (await portal.page.goto(url)).ok());
      for (const path of ["", "/choose", `/choose?${query}`, `/resolution?${query}`, `/method?${query}~refund`, `/check?${query}~refund&method=mail-back`, "/withdraw"]) {
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
}, 2);
await browser.close();
