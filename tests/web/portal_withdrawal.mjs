// Shoppers who withdraw from the contract (Directive (EU) 2023/2673), on a phone, in two languages, with and without
// JavaScript.

import assert from "node:assert/strict";
import { eventually } from "./browser.mjs";
import { person } from "./people.mjs";
import { expireCookie } from "./portal_cookie.mjs";
import { runJourneys } from "./portal_page.mjs";
import { message, publish, returnsOf, total } from "./portal_shop.mjs";

/** The page of a return as an operator sees it in the console. */
async function inConsole(rma) {
  const { session } = await operator();
  const response = await fetch(`${process.env.CONSOLE_URL}/merchants/${process.env.MERCHANT_ID}/returns/${rma}`, {
    headers: { cookie: `__Host-session=${session}` },
  });
  return response.ok && response.text();
}

let invited;
const operator = () => (invited ??= person(`portal-${Date.now()}@example.com`, "operator"));

await runJourneys({
  async withdrawal(portal, context) {
    const order = await publish(["TRAIL-SHOE-NAVY-42", { sku: "COTTON-TEE-RUST-M", quantity: 2, discount: 333 }]);
    await portal.goto();
    await portal.follow("footer-withdraw");
    await portal.isAt("withdraw-title");
    await portal.page.getByLabel(portal.t("withdraw-name"), { exact: true }).fill("Mia Moreau");
    await portal.page.getByLabel(portal.t("withdraw-order"), { exact: true }).fill(order.identifier);
    await portal.page.getByLabel(portal.t("withdraw-email"), { exact: true }).fill(order.email);
    await portal.press("withdraw-submit");
    await portal.isAt("withdraw-confirm-title");
    // A shopper who waits too long finds the order again, and goes on with the same person.
    await expireCookie(context);
    await portal.press("withdraw-confirm");
    await portal.isAt("find-title");
    await portal.fillFind(order.identifier, order.email);
    await portal.isAt("withdraw-confirm-title");
    await portal.press("withdraw-confirm");
    await portal.isAt("withdrawn-title");
    const text = await portal.main();
    const link = await portal.page.getByRole("link", { name: portal.t("withdrawn-download") }).getAttribute("href");
    const saved = await (await portal.page.request.get(new URL(link, portal.page.url()).href)).text();
    for (const part of ["Mia Moreau", order.identifier, order.email]) assert.ok(text.includes(part) && saved.includes(part), part);
    const [rma] = link.match(/RMA-\w+/);
    // The return keeps the person, so that the shop and its support can respond.
    const [{ withdrawal }] = await returnsOf(order.identifier);
    assert.deepEqual(withdrawal, { name: "Mia Moreau", email: order.email });
    const page = await eventually("the console responds", () => inConsole(rma));
    assert.ok(page.includes(`Mia Moreau, ${order.email}`), "the console shows the person");
    // The next person at this device does not see who withdrew.
    await portal.goto("/withdraw");
    for (const id of ["withdraw-name", "withdraw-email"]) {
      assert.equal(await portal.page.getByLabel(portal.t(id), { exact: true }).inputValue(), "");
    }
    // A shopper who finds the order again, in another browser, gets the same acknowledgement.
    await portal.press("sign-out");
    await portal.find(order);
    await portal.isAt("choose-title");
    await portal.goto(`/returns/${rma}/withdrawal`);
    await portal.isAt("withdrawn-title");
    assert.equal(await portal.main(), text);
    const body = await message(rma);
    assert.deepEqual(body.items.map((it) => it.return_reason), Array(3).fill("withdrawal"));
    const paid = order.items.reduce((sum, it) => sum + it.product_amount_cents - it.discount_amount_cents + it.tax_amount_cents, 0);
    assert.equal(total(body, "shopper_refund_amount_cents"), paid);
  },
});
