// A merchant's messages that fail: its sandbox refuses them until they are dead.

import assert from "node:assert/strict";
import { call, eventually, token } from "./browser.mjs";

const { RMA_URL, SANDBOX_URL, ORDERS_URL, MERCHANT_ID, CLIENT_ID, CLIENT_SECRET } = process.env;

/** Lets the endpoint of RMA messages respond with 503, or work again. Meanwhile labels come later: no message follows that of a return. */
export async function setShop(isUp) {
  if (isUp) return call(`${SANDBOX_URL}/behaviour`, { method: "DELETE" });
  const steps = [{ do: "respond", status: 503, times: "always" }];
  const later = [{ do: "respond", status: 202, times: "always" }];
  await call(`${SANDBOX_URL}/behaviour`, { method: "PUT", body: { path: "/label_requests", steps: later } });
  return call(`${SANDBOX_URL}/behaviour`, { method: "PUT", body: { path: "/rmas", steps } });
}

/** Publishes an order with three units. `text` is the value of every text that a merchant or shopper controls. */
export async function publishOrder(identifier, text = "Walking boot") {
  const now = new Date().toISOString();
  const address = { name: text, street1: text, city: text, state: "NY", zip_code: "12207", country_code: "US" };
  const item = {
    identifier: "BOOT", sku: "BOOT-1", title: text, quantity: 3, quantity_shipped: 3, quantity_canceled: 0,
    shipped_date: now, variant_identifier: "BOOT", unit_price_amount_cents: 2500, product_amount_cents: 7500,
    tax_amount_cents: 0, discount_amount_cents: 0,
  };
  const order = {
    identifier, status: "Shipped", currency: "USD", product_amount_cents: 7500, tax_amount_cents: 0,
    total_amount_cents: 7500, discount_amount_cents: 0, shipping_amount_cents: 0, shipping_tax_amount_cents: 0,
    created_at: now, updated_at: now, refunds: [], items: [item], transactions: [], discounts: [],
    customer: { identifier: text, email: "shopper@example.com" }, shipping_address: address, billing_address: address,
  };
  const headers = {
    authorization: `Bearer ${await token(CLIENT_ID, CLIENT_SECRET)}`, "content-type": "application/json", "api-version": "3",
  };
  const body = JSON.stringify({ returns_portal_order: { orders: [order] } });
  const response = await fetch(`${ORDERS_URL}/returns_portal_orders`, { method: "POST", headers, body });
  assert.ok(response.ok, await response.text());
}

/** Starts a return of one unit. @returns its RMA identifier */
export async function startReturn(order, unit, resolution = "refund") {
  const shop = await token(CLIENT_ID, CLIENT_SECRET);
  const units = [{
    order_identifier: order, order_line_item_identifier: "BOOT", unit, return_reason: "OTHER", resolution,
  }];
  const body = { return_method: "mail-back", units };
  const created = await eventually(`order ${order} is returnable`, async () => {
    try {
      return await call(`${RMA_URL}/v1/returns`, { token: shop, body });
    } catch (error) {
      if (/ 404 | 422 /.test(String(error))) return null;
      throw error;
    }
  });
  return created.rma_identifier;
}

/** Starts a return of a unit for a gift card and waits until the merchant has issued it. @returns its RMA identifier */
export async function startExchange(order, unit) {
  const rma = await startReturn(order, unit, "gift_card");
  const shop = await token(CLIENT_ID, CLIENT_SECRET);
  await eventually(`the exchange order of ${rma} is accepted`, async () => {
    const shown = await call(`${RMA_URL}/v1/returns/${rma}`, { token: shop });
    return shown.units[0].guarantee;
  });
  return rma;
}

/** Waits until the message of a return has a state. @returns the delivery */
export async function delivery(rma, state) {
  const operator = await token(process.env.OPERATOR_CLIENT_ID, process.env.OPERATOR_CLIENT_SECRET);
  const query = new URLSearchParams({ state, ordering_key: `rma:${rma}` });
  return eventually(`the message of ${rma} is ${state}`, async () => {
    const page = await call(`${RMA_URL}/v1/deliveries?${query}`, { token: operator });
    return page.deliveries[0];
  });
}
