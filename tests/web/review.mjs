// Journeys of returns through their review: the shopper sends them with the portal, and a person of the merchant decides
// about them in the console. On a phone and on a desktop, and without JavaScript.

import assert from "node:assert/strict";
import { eventually, launch, open, run } from "./browser.mjs";
import { person, signIn } from "./people.mjs";
import { inPortal } from "./portal_page.mjs";
import { addMerchant, message, publish, returnable, returnsOf, setEndpoint } from "./portal_shop.mjs";

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };
const SHOE = "Trail running shoe, Navy, 42";
const HAT = "Felt hat, Sand, M";
const COMMENT = "The sole came off after a day";
const NOTE = "Worn shoes cannot be returned.";

const suffix = Date.now();
let reviewers = 0;
const browser = await launch();

/** A merchant that looks at returns of shoppers who changed their mind. */
async function addReviewingMerchant() {
  const look = { id: "look", when: { reasons: ["CHANGED_MIND"] }, then: { review: { within_days: 3, then: "approve" } } };
  const shop = await addMerchant({
    base_url: process.env.SANDBOX_URL, appearance: { languages: ["en", "de"] }, policy: { rules: [look] },
  });
  await setEndpoint(shop.merchant, "rma");
  return shop;
}

/** Publishes an order, and waits until the rule is about it. */
async function publishReviewed(shop) {
  const order = await publish(["TRAIL-SHOE-NAVY-42", "FELT-HAT-SAND-M"], { client: shop });
  await eventually("the rule is known", async () => (await returnable(order.identifier, shop))?.units.every((unit) => unit.choices));
  return order;
}

/** Fails if the page scrolls sideways. */
async function fits(page) {
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), page.url());
}

/** Sends a request for an item with the portal. @returns its RMA identifier */
async function request(portal, title, comment) {
  await portal.goOn([{ title, reason: "CHANGED_MIND" }]);
  await portal.shows("check-next-review");
  if (comment) await portal.page.getByLabel(portal.t("check-comment", { title })).fill(comment);
  await portal.confirmButton().click();
  await portal.isAt("return-review-title");
  await portal.shows("track-approved");
  assert.equal(await portal.page.locator(".qr").count(), 0, "nothing is sent before the approval");
  await fits(portal.page);
  return portal.page.locator("#rma").innerText();
}

/** Declines a return from the work list with a note, and approves another one on its page. */
async function decide(page, declined, approved) {
  const row = (rma) => page.getByRole("row").filter({ hasText: rma });
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  await page.goto("/reviews");
  assert.ok((await row(declined).innerText()).includes(`“${COMMENT}”`));
  await fits(page);
  await row(declined).getByRole("link", { name: /^Review …/ }).click();
  await page.getByRole("heading", { level: 1, name: `Review return ${declined}` }).waitFor();
  await fits(page);
  await page.getByLabel("Note", { exact: true }).fill(NOTE);
  await press("Decline");
  await page.getByText("The return is declined.").waitFor();
  assert.ok((await page.locator("main").innerText()).includes(`declined: ${NOTE}`));

  await page.goto("/reviews");
  assert.equal(await row(declined).count(), 0);
  await row(approved).getByRole("link", { name: approved, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: `Return ${approved}` }).waitFor();
  await fits(page);
  await press("Approve");
  await page.getByText("The return is approved.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
  await page.goto("/reviews");
  await page.getByText("No return waits for review.").waitFor();
}

/** From two requests of a shopper to the decisions about them, which the portal shows. */
async function review({ language = "en", ...options }) {
  const shop = await addReviewingMerchant();
  const order = await publishReviewed(shop);
  reviewers += 1;
  const { session } = await person(`reviewer-${reviewers}-${suffix}@example.com`, "merchant-admin", shop.merchant);
  await inPortal(browser, { language, merchant: shop.merchant, ...options }, async (portal) => {
    await portal.find(order);
    const declined = await request(portal, SHOE, COMMENT);
    await portal.goto("/choose");
    await portal.isAt("choose-title");
    assert.equal(await portal.row(SHOE).getByRole("checkbox").count(), 0, "the request holds the item");
    const approved = await request(portal, HAT);
    await portal.goto("/returns");
    await portal.shows("returns-state-review");

    const { page, context, problems } = await open(browser, options);
    await signIn(context, session);
    await decide(page, declined, approved);
    assert.deepEqual(problems, []);
    await context.close();

    await portal.goto(`/returns/${declined}`);
    await portal.shows("return-declined");
    await portal.shows("return-declined-reason", { reason: NOTE });
    await fits(portal.page);
    await portal.goto(`/returns/${approved}`);
    await portal.page.getByRole("heading", { level: 2, name: portal.t("return-send") }).waitFor();
    assert.equal(await portal.page.locator(".qr").count(), 1);
    await fits(portal.page);
    assert.equal((await message(approved)).status, "CREATED");
    const states = (await returnsOf(order.identifier, shop)).map((it) => [it.rma_identifier, it.status]);
    assert.deepEqual(new Map(states), new Map([[declined, "DECLINED"], [approved, "CREATED"]]));
    // The declined item is free again.
    await portal.goto("/choose");
    await portal.isAt("choose-title");
    assert.equal(await portal.row(SHOE).getByRole("checkbox").count(), 1);
  });
}

await run({
  "returns are reviewed on a phone": () => review({ language: "de", viewport: PHONE }),
  "the same without JavaScript": () => review({ viewport: PHONE, javaScriptEnabled: false }),
  "the same on a desktop": () => review({ viewport: DESKTOP, deviceScaleFactor: 1 }),
}, 2);
await browser.close();
