// Journeys of shoppers through the portal, on a phone, in two languages, with and without JavaScript. After each
// one, the message that the merchant received has what the page showed, to the cent.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { runJourneys } from "./portal_page.mjs";
import { addMerchant, carrier, deepLink, exchangeOrder, mailBackFor, message, publish, returnsOf, setEndpoint, setMailBackCost, total } from "./portal_shop.mjs";

const TEES = { sku: "COTTON-TEE-RUST-M", quantity: 2, discount: 333 };
const TEE = "Heavy cotton T-shirt, Rust, M";
const SHOE = "Trail running shoe, Navy, 42";
const TENT = "Tent for four, Olive";
const HAT = "Felt hat, Sand, M";
const SWEATER = "Merino sweater, Berry, M";
const MAIL_BACK_COST = 495;
const BONUS = 500;

/** The message of a return has the refund and the shipping cost of the page. */
async function checkMessage(rma, refund, shipping) {
  const body = await message(rma);
  assert.equal(total(body, "shopper_refund_amount_cents"), refund);
  assert.equal(body.return_shipping_cost_cents, shipping);
  return body;
}

const journeys = {
  async refund(portal) {
    const order = await publish([TEES, "FELT-HAT-SAND-M"]);
    await portal.find(order);
    await portal.goOn([{ title: TEE, count: 2, reason: "TOO_LARGE" }]);
    // The next page refreshes itself every five seconds. The clock of the window jumps over them.
    if (portal.hasScripts) await portal.page.clock.install();
    const [refund, shipping, back] = await portal.amounts("check-items-refund", "check-shipping", "check-total");
    assert.deepEqual([shipping, back], [MAIL_BACK_COST, refund - MAIL_BACK_COST]);
    const rma = await portal.confirm();
    const body = await checkMessage(rma, refund, shipping);
    assert.deepEqual(body.items.map((it) => [it.sku, it.return_reason, it.refund_type]), Array(2).fill(["COTTON-TEE-RUST-M", "TOO_LARGE", "REFUND"]));
    assert.deepEqual(await portal.amounts("return-refund", "return-shipping", "return-total"), [refund, shipping, back]);
    assert.equal(await portal.qrCode(), rma);
    await carrier(rma, "label", { label_url: "https://carrier.example/label.pdf" });
    const label = portal.page.getByRole("link", { name: portal.t("return-label-pdf") });
    if (portal.hasScripts) await portal.page.clock.fastForward(6_000);
    else await portal.page.reload();
    await label.waitFor();
    await carrier(rma, "accepted");
    await portal.page.reload();
    assert.equal(await portal.page.locator("#progress [aria-current=step] strong").innerText(), portal.t("track-dropped-off"));
  },

  async exchange(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42", TEES]);
    await portal.find(order, order.zipCode);
    await portal.goOn([
      { title: SHOE, reason: "TOO_SMALL", resolution: "exchange", color: "Navy", size: "43" },
      { title: TEE, reason: "CHANGED_MIND" },
    ]);
    const [refund, shipping] = await portal.amounts("check-items-refund", "check-shipping");
    const rma = await portal.confirm();
    const body = await checkMessage(rma, refund, shipping);
    assert.deepEqual(body.items.map((it) => it.refund_type), ["EVEN_EXCHANGE", "REFUND"]);
    const placed = await exchangeOrder(order.identifier);
    assert.equal(placed.items[0].sku, "TRAIL-SHOE-NAVY-43");
    const { items } = await message(rma, "rma.exchange_placed");
    await portal.page.reload();
    assert.match(await portal.main(), new RegExp(items[0].exchange_order_identifier));
    // The order can have no further exchange, and says so first.
    await portal.goto("/choose");
    await portal.shows("choose-no-exchange");
  },

  async "an uneven exchange"(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42", "COTTON-TEE-RUST-M"]);
    await portal.find(order);
    await portal.goOn([
      { title: SHOE, reason: "TOO_SMALL", resolution: "exchange", color: "Rust", size: "42", shown: ["exchange-more", 1500] },
      { title: TEE, reason: "TOO_SMALL", resolution: "exchange", color: "Grey", size: "M", shown: ["exchange-less", 500] },
    ]);
    await portal.shows("check-more", { amount: portal.money(1500) });
    await portal.shows("check-less", { amount: portal.money(500) });
    await portal.shows("check-next-difference");
    const [refund, shipping] = await portal.amounts("check-items-refund", "check-shipping");
    assert.equal(refund, 0);
    await portal.shows("check-next-not-cancelable");
    const rma = await portal.confirm();
    // The page of the return says the same as the page before.
    await portal.shows("check-more", { amount: portal.money(1500) });
    await portal.shows("check-less", { amount: portal.money(500) });
    assert.deepEqual(await portal.amounts("return-refund", "return-shipping"), [refund, shipping]);
    await portal.shows("cancel-late-exchange");
    const body = await checkMessage(rma, 0, shipping);
    assert.deepEqual(body.items.map((it) => it.refund_type), ["UNEVEN_EXCHANGE", "UNEVEN_EXCHANGE"]);
    // The merchant gets its own price, and computes discount and tax itself.
    const { items } = await exchangeOrder(order.identifier);
    const amounts = items.map((it) => [it.sku, it.unit_price_amount_cents, it.product_amount_cents, it.discount_amount_cents, it.tax_amount_cents]);
    assert.deepEqual(amounts.toSorted(), [["COTTON-TEE-GREY-M", 2495, 2495, 0, 0], ["TRAIL-SHOE-RUST-42", 13495, 13495, 0, 0]]);
  },

  async "gift card"(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await portal.find(order);
    await portal.goOn([{ title: SHOE, resolution: "gift_card" }], "express-returns");
    const [value, bonus, refund, shipping] = await portal.amounts("check-card-value", "check-card-bonus", "check-items-refund", "check-shipping");
    assert.deepEqual([bonus, refund], [BONUS, 0]);
    const rma = await portal.confirm();
    const body = await checkMessage(rma, 0, shipping);
    assert.equal(total(body, "service_refund_amount_cents"), value);
    const [card] = (await exchangeOrder(order.identifier)).items;
    assert.deepEqual([card.sku, card.bonus_credit_amount_cents], ["GIFT", bonus]);
    assert.equal(await portal.qrCode(), rma);
  },

  async "gift return"(portal) {
    const order = await publish(["WOOL-SWEATER-BERRY-M"]);
    const { gift_code } = await deepLink(order.identifier, true);
    await portal.findGift(order.identifier, gift_code.toLowerCase().replaceAll("-", ""));
    await portal.isAt("choose-title");
    assert.doesNotMatch(await portal.main(), /\$|\d[.,]\d\d/);
    await portal.goOn([{ title: SWEATER, reason: "TOO_SMALL", resolution: "exchange", color: "Grey", size: "L" }]);
    assert.equal(await portal.page.locator("dl.amounts").count(), 0);
    assert.doesNotMatch(await portal.main(), /\$/);
    await portal.page.getByLabel(portal.t("check-email"), { exact: true }).fill("giftee@shopper.example");
    const rma = await portal.confirm();
    assert.doesNotMatch(await portal.main(), /\$/);
    const body = await message(rma);
    assert.deepEqual([body.gift_refund_only, body.giftee_email], [true, "giftee@shopper.example"]);
    // The buyer learns nothing of it.
    await portal.press("sign-out");
    await portal.find(order);
    await portal.goto("/returns");
    await portal.shows("returns-none");
    assert.doesNotMatch(await portal.main(), new RegExp(rma));
  },

  async keep(portal) {
    // The demo merchant's rule lets shoppers keep items up to 15.00 USD.
    const dear = await publish(["COTTON-TEE-RUST-M"]);
    await portal.find(dear);
    await portal.choose(TEE, 1, "DAMAGED");
    await portal.press("form-continue");
    await portal.chooseResolution(TEE, "refund");
    await portal.press("form-continue");
    await portal.isAt("method-title");
    assert.equal(await portal.method("customer-keep").isDisabled(), true);
    assert.match(await portal.main(), /15[.,]00/);
    await portal.press("sign-out");
    const order = await publish([{ sku: "COTTON-TEE-RUST-M", discount: 1700 }]);
    await portal.find(order);
    await portal.goOn([{ title: TEE, reason: "DAMAGED" }], "customer-keep");
    const [refund, shipping] = await portal.amounts("check-items-refund", "check-shipping");
    const rma = await portal.confirm();
    const body = await checkMessage(rma, refund, shipping);
    assert.equal(body.return_method, "customer-keep");
    assert.equal(await portal.page.locator(".qr").count(), 0);
  },

  async "items that cannot be returned, and a drop-off refused by weight"(portal) {
    const order = await publish(["FAMILY-TENT-OLIVE", { sku: "FELT-HAT-SAND-M", tags: ["FinalSale"] }, { sku: "RAIN-JACKET-RUST-L", daysAgo: 60 }]);
    await portal.find(order);
    assert.ok((await portal.row(HAT).innerText()).includes(portal.t("ineligible-final-sale")));
    assert.equal(await portal.row(HAT).getByRole("checkbox").count(), 0);
    assert.equal(await portal.row("Rain jacket, Rust, L").getByRole("checkbox").count(), 0);
    await portal.choose(TENT, 1, "OTHER");
    await portal.press("form-continue");
    await portal.chooseResolution(TENT, "refund");
    await portal.press("form-continue");
    await portal.isAt("method-title");
    assert.equal(await portal.method("express-returns").isDisabled(), true);
    await portal.shows("ineligible-too-heavy-for-express");
    // An address that names the drop-off all the same leads nowhere.
    const query = new URLSearchParams({ i: `${order.identifier}~FAMILY-TENT-OLIVE~1~OTHER~refund`, method: "express-returns" });
    await portal.goto(`/check?${query}`);
    await portal.isAt("method-title");
    await portal.method("mail-back").check();
    await portal.press("form-continue");
    const [refund, shipping] = await portal.amounts("check-items-refund", "check-shipping");
    await checkMessage(await portal.confirm(), refund, shipping);
  },

  async "a changed quote"(window) {
    // A merchant of its own, because other journeys run with the demo merchant's costs.
    const client = await addMerchant({
      base_url: process.env.SANDBOX_URL, appearance: { languages: ["en", "de"] }, ...mailBackFor(MAIL_BACK_COST),
    });
    await setEndpoint(client.merchant, "rma");
    const portal = window.at(client.merchant);
    const order = await publish(["TRAIL-SHOE-NAVY-42"], { client });
    await portal.find(order);
    await portal.goOn([{ title: SHOE }]);
    assert.deepEqual(await portal.amounts("check-shipping"), [MAIL_BACK_COST]);
    await setMailBackCost(695, order.identifier, client);
    await portal.confirmButton().click();
    await portal.alert("check-changed");
    const [refund, shipping] = await portal.amounts("check-items-refund", "check-shipping");
    assert.equal(shipping, 695);
    assert.deepEqual(await returnsOf(order.identifier, client), []);
    await checkMessage(await portal.confirm(), refund, 695);
  },

  async "a label"(window) {
    // A merchant of its own, because the carrier of other journeys reports its labels itself.
    const client = await addMerchant({
      base_url: process.env.SANDBOX_URL, appearance: { languages: ["en", "de"] }, ...mailBackFor(MAIL_BACK_COST),
    });
    for (const name of ["rma", "label-request"]) await setEndpoint(client.merchant, name);
    const portal = window.at(client.merchant);
    const order = await publish(["TRAIL-SHOE-NAVY-42"], { client });
    await portal.find(order);
    await portal.goOn([{ title: SHOE }]);
    const rma = await portal.confirm();
    const { items } = await message(rma, "rma.tracking_updated");
    await portal.page.reload();
    await portal.shows("return-tracking-number", { number: items[0].tracking_number });
    const label = portal.page.getByRole("link", { name: portal.t("return-label-save", { format: "PDF" }) });
    const [download] = await Promise.all([portal.page.waitForEvent("download"), label.click()]);
    assert.equal(download.suggestedFilename(), `${rma}-1.pdf`);
    assert.match(await readFile(await download.path(), "latin1"), /^%PDF-1\.4[^]*%%EOF\n$/);
  },

  async cancel(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await portal.find(order);
    await portal.goOn([{ title: SHOE }]);
    const rma = await portal.confirm();
    await portal.follow("return-cancel");
    await portal.isAt("cancel-title", { rma });
    await portal.press("cancel-submit");
    assert.equal((await message(rma, "rma.canceled")).status, "CANCELED");
    await portal.goto(`/returns/${rma}`);
    await portal.shows("track-canceled");
    assert.equal(await portal.page.locator("dl.amounts").count(), 0);
    await portal.goto("/choose");
    assert.equal(await portal.row(SHOE).getByRole("checkbox").count(), 1);
  },

  async "a deep link"(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    const { url } = await deepLink(order.identifier);
    await portal.page.goto(url);
    await portal.goOn([{ title: SHOE }]);
    const [refund, shipping] = await portal.amounts("check-items-refund", "check-shipping");
    await checkMessage(await portal.confirm(), refund, shipping);
    await portal.press("sign-out");
    await portal.page.goto(`${url.slice(0, -4)}AAAA`);
    await portal.alert("find-link-over");
  },

  async "two orders in one return"(portal) {
    const email = `two-orders-${Math.random().toString(36).slice(2)}@shopper.example`;
    const [first, second] = await Promise.all([publish(["TRAIL-SHOE-NAVY-42"], { email }), publish(["COTTON-TEE-RUST-M"], { email })]);
    await portal.find(first);
    await portal.isAt("choose-title");
    await portal.addOrder(second.identifier, second.email);
    await portal.row(TEE).waitFor();
    await portal.goOn([{ title: SHOE }, { title: TEE }]);
    const [refund, shipping] = await portal.amounts("check-items-refund", "check-shipping");
    const body = await checkMessage(await portal.confirm(), refund, shipping);
    assert.deepEqual(body.items.map((it) => it.order_identifier).toSorted(), [first.identifier, second.identifier].toSorted());
  },
};

await runJourneys(journeys);
