// The merchant's side of the portal's tests: orders from the catalogue of the sandbox, deep links, settings, the
// messages that the merchant received, and the carrier.

import assert from "node:assert/strict";
import { call, eventually, inParallel, token } from "./browser.mjs";

const { AUTH_URL, RMA_URL, SANDBOX_URL, ORDERS_URL, MERCHANT_ID, CLIENT_ID, CLIENT_SECRET } = process.env;
const DAY = 24 * 60 * 60 * 1000;
export const ZIP_CODE = "12207";

const suffix = Date.now().toString(36).toUpperCase();
let number = 0;

/** A client of a merchant. */
export const DEMO = { merchant: MERCHANT_ID, id: CLIENT_ID, secret: CLIENT_SECRET };

const shop = ({ id, secret }) => token(id, secret);
const operator = () => shop({ id: process.env.OPERATOR_CLIENT_ID, secret: process.env.OPERATOR_CLIENT_SECRET });

const { products } = await call(`${SANDBOX_URL}/catalogue`);
/** The number of requests that the sandbox received before this test. */
const { total: earlier } = await call(`${SANDBOX_URL}/journal?limit=1`);
const catalogue = new Map(products.flatMap(({ variants }) => variants.map((variant) => [variant.sku, variant])));

/** A line as the merchant sends it. @param {string | { sku: string }} line */
function item(line) {
  const { sku, quantity = 1, discount = 0, daysAgo = 4, tags = [], ...others } = typeof line === "string" ? { sku: line } : line;
  const variant = catalogue.get(sku);
  assert.ok(variant, `the catalogue has no SKU ${sku}`);
  const product = variant.unit_price_amount_cents * quantity;
  return {
    identifier: sku, sku, title: variant.title, quantity, quantity_shipped: quantity, quantity_canceled: 0,
    shipped_date: new Date(Date.now() - daysAgo * DAY).toISOString(), variant_identifier: variant.product_identifier,
    unit_price_amount_cents: variant.unit_price_amount_cents, product_amount_cents: product,
    tax_amount_cents: Math.floor(((product - discount) * 8) / 100), discount_amount_cents: discount,
    image_url: variant.image_url, weight: variant.weight, tags, ...others,
  };
}

/** An order as the merchant sends it. */
function snapshot(identifier, email, items, text) {
  const sum = (key) => items.reduce((total, it) => total + it[key], 0);
  const now = new Date().toISOString();
  const [product, tax, discount] = ["product_amount_cents", "tax_amount_cents", "discount_amount_cents"].map(sum);
  const address = { name: text ?? "Mia Moreau", street1: text ?? "12 Mill Road", city: "Albany", state: "NY", zip_code: ZIP_CODE, country_code: "US" };
  return {
    identifier, status: "Shipped", currency: "USD", product_amount_cents: product, tax_amount_cents: tax,
    total_amount_cents: product + tax - discount, discount_amount_cents: discount, shipping_amount_cents: 0,
    shipping_tax_amount_cents: 0, created_at: now, updated_at: now, refunds: [], items, transactions: [], discounts: [],
    customer: { identifier: email, email }, shipping_address: address, billing_address: address,
  };
}

/** Sends orders. A new merchant reaches the order intake after a moment. */
async function send(orders, client) {
  const headers = { authorization: `Bearer ${await shop(client)}`, "content-type": "application/json", "api-version": "3" };
  const body = JSON.stringify({ returns_portal_order: { orders } });
  await eventually("the order intake knows the merchant", async () => {
    const response = await fetch(`${ORDERS_URL}/returns_portal_orders`, { method: "POST", headers, body });
    if (response.ok) return true;
    assert.ok([403, 404, 503].includes(response.status), `${response.status} ${await response.text()}`);
    return false;
  });
}

/**
 * Publishes an order and waits until it can be returned. `text` replaces every text that a merchant or shopper
 * controls.
 * @returns {Promise<{ identifier: string, email: string, zipCode: string, items: any[] }>}
 */
export async function publish(lines, { client = DEMO, email, text } = {}) {
  number += 1;
  const identifier = `P-${suffix}-${number}`;
  const shopper = email ?? `shopper-${suffix.toLowerCase()}-${number}@shopper.example`;
  const items = lines.map(item).map((it) => (text ? { ...it, title: text } : it));
  await send([snapshot(identifier, shopper, items, text)], client);
  await eventually(`order ${identifier} is returnable`, () => returnable(identifier, client));
  return { identifier, email: shopper, zipCode: ZIP_CODE, items };
}

/** Publishes small orders. @returns their identifiers */
export async function publishMany(count) {
  number += 1;
  const identifiers = Array.from({ length: count }, (_, index) => `P-${suffix}-${number}-${index}`);
  await send(identifiers.map((identifier) => snapshot(identifier, "many@shopper.example", [item("FELT-HAT-SAND-M")])), DEMO);
  await inParallel(identifiers.map((identifier) => () => eventually(`order ${identifier} is known`, () => returnable(identifier))), 10);
  return identifiers;
}

/** The order's units as the merchant sees them, or null. */
export async function returnable(order, client = DEMO) {
  const headers = { authorization: `Bearer ${await shop(client)}` };
  const response = await fetch(`${RMA_URL}/v1/orders/${encodeURIComponent(order)}/returnable`, { headers });
  return response.ok ? response.json() : null;
}

/** A link to an order. @returns {Promise<{ url: string, gift_code?: string }>} */
export async function deepLink(order, isGift = false, client = DEMO) {
  const body = { order_identifier: order, is_gift: isGift };
  return call(`${RMA_URL}/v1/deep_links`, { token: await shop(client), body });
}

/** Changes settings of a merchant. */
export async function change(merchant, settings) {
  await call(`${AUTH_URL}/v1/merchants/${merchant}`, { method: "PATCH", token: await operator(), body: settings });
}

/** Settings in which mail-back has a cost. */
export const mailBackFor = (cents) => ({ returns: { methods: [{ method: "mail-back", shipping_cost_cents: cents }] } });

/** Changes the cost of mail-back of a merchant and waits until quotes have it. */
export async function setMailBackCost(cents, order, client) {
  await change(client.merchant, mailBackFor(cents));
  await eventually(`mail-back costs ${cents}`, async () => {
    const found = await returnable(order, client);
    return found?.methods.some((offer) => offer.method === "mail-back" && offer.shipping_cost_cents === cents);
  });
}

/** Creates a merchant with a client. */
export async function addMerchant(settings = {}) {
  number += 1;
  const merchant = `portal-${suffix.toLowerCase()}-${number}`;
  const bearer = await operator();
  await call(`${AUTH_URL}/v1/merchants`, { token: bearer, body: { identifier: merchant, name: `Shop ${merchant}` } });
  if (Object.keys(settings).length > 0) await change(merchant, settings);
  const body = { merchant, name: "Shop", scopes: ["orders", "returns"] };
  const client = await call(`${AUTH_URL}/v1/clients`, { token: bearer, body });
  return { merchant, id: client.client_id, secret: client.client_secret };
}

/** Lets a merchant have an endpoint, for example `rma` or `exchange-variants`, at the default path below its base URL. */
export async function setEndpoint(merchant, name) {
  await call(`${AUTH_URL}/v1/merchants/${merchant}/endpoints/${name}`, { method: "PUT", token: await operator(), body: {} });
}

/** The messages of an event that the merchant received during this test. */
async function received(event) {
  return (await call(`${SANDBOX_URL}/journal?event=${event}&after=${earlier}&limit=100000`)).entries;
}

/** The message about a return that the merchant received. */
export async function message(rma, event = "rma.created") {
  return eventually(`the merchant receives ${event} of ${rma}`, async () => {
    const own = (await received(event)).filter((entry) => entry.body.rma_identifier === rma && entry.response === "200");
    return own.at(-1)?.body;
  });
}

/** The exchange order of an order that the merchant received. */
export async function exchangeOrder(order) {
  return eventually(`the merchant receives an exchange order for ${order}`, async () => {
    return (await received("exchange_order.created")).find((entry) => entry.body.original_order_id === order)?.body;
  });
}

/** Reports an event of the carrier. */
export async function carrier(rma, event, others = {}) {
  const body = { event_identifier: `${rma}-${event}`, event, rma_identifier: rma, tracking_number: `1Z-${rma}`, ...others };
  await call(`${RMA_URL}/v1/carrier_events`, { token: await operator(), merchant: MERCHANT_ID, body });
}

/** The returns with units of an order. */
export async function returnsOf(order, client = DEMO) {
  const query = new URLSearchParams({ order_identifier: order });
  return (await call(`${RMA_URL}/v1/returns?${query}`, { token: await shop(client) })).returns;
}

/** The sum of an amount over the items of a message. */
export const total = (body, name) => body.items.reduce((sum, it) => sum + it.refund_financials[name], 0);
