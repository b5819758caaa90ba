// Shoppers who mistype, wait too long, click twice, go back or use two tabs: nothing is lost and nothing happens twice.

import assert from "node:assert/strict";
import { expireCookie } from "./portal_cookie.mjs";
import { runJourneys } from "./portal_page.mjs";
import { publish, returnable, returnsOf } from "./portal_shop.mjs";

const SHOE = "Trail running shoe, Navy, 42";
const TEE = "Heavy cotton T-shirt, Rust, M";

await runJourneys({
  async "a wrong look-up"(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await portal.find(order, "wrong@shopper.example");
    await portal.alert("find-wrong");
    assert.ok((await portal.page.title()).startsWith(portal.t("title-error")));
    assert.equal(await portal.page.evaluate(() => document.activeElement?.getAttribute("role")), "alert");
    assert.equal(await portal.page.getByLabel(portal.t("find-order")).inputValue(), order.identifier);
    await portal.fillFind(order.identifier, order.email);
    await portal.isAt("choose-title");
    await portal.press("form-continue");
    await portal.alert("choose-nothing");
  },

  async "a wrong order to add"(portal) {
    const [first, second] = await Promise.all([publish(["TRAIL-SHOE-NAVY-42"]), publish(["COTTON-TEE-RUST-M"])]);
    await portal.find(first);
    await portal.isAt("choose-title");
    await portal.choose(SHOE, 1, "OTHER");
    await portal.addOrder(second.identifier, "wrong@shopper.example");
    // The page is the same one, with the typed number, the reason beside the field and a link to it.
    await portal.alert("find-wrong");
    await portal.isAt("choose-title");
    const field = portal.page.getByLabel(portal.t("find-order"));
    assert.equal(await field.inputValue(), second.identifier);
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    assert.equal(await portal.page.locator("#order-error").innerText(), portal.t("find-wrong"));
    // Without scripts, the form of the items is not sent.
    if (portal.hasScripts) assert.equal(await portal.row(SHOE).getByRole("checkbox").isChecked(), true);
    await portal.addOrder(second.identifier, second.email);
    await portal.row(TEE).waitFor();
    if (portal.hasScripts) assert.equal(await portal.row(SHOE).getByRole("checkbox").isChecked(), true);
    await portal.page.reload();
    await portal.isAt("choose-title");
  },

  async "an expired proof"(portal, context) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await portal.find(order);
    await portal.choose(SHOE, 1, "OTHER");
    await portal.press("form-continue");
    await portal.isAt("resolution-title");
    await expireCookie(context);
    await portal.page.reload();
    await portal.isAt("find-title");
    await portal.page.getByText(portal.t("find-again")).waitFor();
    assert.equal(await portal.page.getByLabel(portal.t("find-order")).inputValue(), order.identifier);
    await portal.fillFind(order.identifier, order.email);
    // The choices are kept.
    await portal.isAt("resolution-title");
    await portal.group(SHOE).waitFor();
  },

  async "expired proofs of two orders"(portal, context) {
    const email = `expired-${Math.random().toString(36).slice(2)}@shopper.example`;
    const orders = await Promise.all([publish(["TRAIL-SHOE-NAVY-42"], { email }), publish(["COTTON-TEE-RUST-M"], { email })]);
    await portal.find(orders[0]);
    await portal.isAt("choose-title");
    await portal.addOrder(orders[1].identifier, email);
    await portal.row(TEE).waitFor();
    await portal.choose(SHOE, 1, "OTHER");
    await portal.choose(TEE, 1, "OTHER");
    await portal.press("form-continue");
    await portal.isAt("resolution-title");
    await expireCookie(context);
    await portal.page.reload();
    // The page asks for one order after the other.
    for (const order of orders) {
      await portal.isAt("find-title");
      const field = portal.page.getByLabel(portal.t("find-order"));
      await field.and(portal.page.locator(`[value="${order.identifier}"]`)).waitFor();
      await portal.fillFind(order.identifier, email);
    }
    await portal.isAt("resolution-title");
    await portal.group(TEE).waitFor();
  },

  async "two tabs"(portal, context) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await portal.find(order);
    await portal.goOn([{ title: SHOE }]);
    const second = await context.newPage();
    await second.goto(portal.page.url());
    const rma = await portal.confirm();
    await second.getByRole("button", { name: portal.t("check-confirm"), exact: true }).click();
    await second.getByRole("alert").filter({ hasText: portal.t("check-refused") }).waitFor();
    assert.deepEqual((await returnsOf(order.identifier)).map((it) => it.rma_identifier), [rma]);
  },

  async "a double click"(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await portal.find(order);
    await portal.goOn([{ title: SHOE }]);
    await portal.confirmButton().dblclick({ noWaitAfter: true });
    const rma = await portal.rma();
    assert.deepEqual((await returnsOf(order.identifier)).map((it) => it.rma_identifier), [rma]);
  },

  async "the back button"(portal) {
    const order = await publish(["TRAIL-SHOE-NAVY-42"]);
    await portal.find(order);
    await portal.goOn([{ title: SHOE }]);
    await portal.page.goBack();
    await portal.isAt("method-title");
    // Without scripts, the browser decides whether it keeps the choice.
    if (portal.hasScripts) assert.equal(await portal.method("mail-back").isChecked(), true);
    await portal.press("form-continue");
    const rma = await portal.confirm();
    await portal.page.goBack();
    if (await portal.confirmButton().isVisible()) await portal.confirmButton().click();
    await portal.page.waitForLoadState();
    assert.deepEqual((await returnsOf(order.identifier)).map((it) => it.rma_identifier), [rma]);
    assert.equal((await returnable(order.identifier)).units[0].returnable, false);
  },

  async "the back button after one unit and one more"(portal) {
    const order = await publish([{ sku: "TRAIL-SHOE-NAVY-42", quantity: 3 }]);
    await portal.find(order);
    await portal.goOn([{ title: SHOE }]);
    /** Back from a new return leads to it, and to no further one. */
    const goBack = async (rma) => {
      await portal.page.goBack();
      // A browser may show the page that it kept; the same form leads to the same return.
      if (await portal.confirmButton().isVisible()) await portal.confirmButton().click();
      await portal.page.getByText(rma).first().waitFor();
    };
    const identifiers = async () => (await returnsOf(order.identifier)).map((it) => it.rma_identifier).sort();
    const check = portal.page.url();
    const first = await portal.confirm();
    await goBack(first);
    assert.deepEqual(await identifiers(), [first]);
    await portal.page.goto(check);
    await portal.isAt("confirmed-title", { rma: first });
    await portal.press("confirmed-more");
    await portal.isAt("check-title");
    const second = await portal.confirm();
    await goBack(second);
    assert.deepEqual(await identifiers(), [first, second].sort());
  },

  async "the back button to the items"(portal) {
    const order = await publish([{ sku: "TRAIL-SHOE-NAVY-42", quantity: 3 }, "COTTON-TEE-RUST-M"]);
    await portal.find(order);
    await portal.isAt("choose-title");
    await portal.choose(SHOE, 2, "OTHER");
    await portal.choose(TEE, 1, "OTHER");
    await portal.press("form-continue");
    await portal.isAt("resolution-title");
    await portal.page.goBack();
    await portal.isAt("choose-title");
    assert.equal(await portal.row(SHOE).getByRole("spinbutton").inputValue(), "2");
    assert.equal(await portal.row(TEE).getByRole("checkbox").isChecked(), true);
    for (const title of [SHOE, TEE]) assert.equal(await portal.row(title).getByRole("combobox").inputValue(), "OTHER");
  },

  async "the back button with 120 lines"(portal) {
    const lines = 120;
    const order = await publish(Array.from({ length: lines }, (_, line) => ({ sku: "COTTON-TEE-RUST-M", identifier: `L-${line}` })));
    await portal.find(order);
    await portal.isAt("choose-title");
    const form = portal.page.locator("#items");
    await form.evaluate((element) => {
      for (const box of element.querySelectorAll("input[type=checkbox]")) box.checked = true;
      for (const reason of element.querySelectorAll("select")) reason.value = "OTHER";
    });
    await form.getByRole("button", { name: portal.t("form-continue"), exact: true }).click();
    await portal.isAt("resolution-title");
    const refunds = portal.page.getByRole("radio", { name: portal.t("resolution-refund") });
    assert.equal(await refunds.count(), lines);
    await refunds.evaluateAll((radios) => radios.forEach((radio) => radio.click()));
    await portal.press("form-continue");
    await portal.isAt("method-title");
    await portal.page.goBack();
    await portal.isAt("resolution-title");
    assert.equal(await refunds.count(), lines);
    await portal.page.goForward();
    await portal.isAt("method-title");
    await portal.press("form-continue");
    await portal.isAt("check-title");
  },
});
