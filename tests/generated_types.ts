// Calls auth and order-intake with the types that openapi-typescript generated. The compiler rejects paths,
// fields and responses that the OpenAPI documents do not have. Reads AUTH_URL, ORDERS_URL, CLIENT_ID and
// CLIENT_SECRET of a merchant's client from the environment.

import type { components as Auth, paths as AuthPaths } from "./types/auth.js";
import type { paths as OrderPaths } from "./types/order-intake.js";
import type { components as Returns } from "./types/rma-engine.js";
import type { components as Exchange } from "./types/exchange.js";
import type { components as Warehouse } from "./types/warehouse-notifier.js";

declare const process: { env: Record<string, string> };

// Not used: the compiler checks that these types exist.
export type Checked =
  | Returns["schemas"]["Rma"]
  | Exchange["schemas"]["ExchangeOrder"]
  | Warehouse["schemas"]["InboundAsn"];

type TokenPath = Extract<keyof AuthPaths, "/oauth/token">;
type OrdersPath = Extract<keyof OrderPaths, "/v1/orders">;
type Orders = OrderPaths[OrdersPath]["get"]["responses"][200]["content"]["application/json"];

const { AUTH_URL, ORDERS_URL, CLIENT_ID, CLIENT_SECRET } = process.env;
const tokenPath: TokenPath = "/oauth/token";
const request: Auth["schemas"]["TokenRequest"] = {
  grant_type: "client_credentials",
  client_id: CLIENT_ID,
  client_secret: CLIENT_SECRET,
};
const issued = await fetch(`${AUTH_URL}${tokenPath}`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(request),
});
if (!issued.ok) throw new Error(`no token: ${issued.status} ${await issued.text()}`);
const token: Auth["schemas"]["TokenResponse"] = await issued.json();

const ordersPath: OrdersPath = "/v1/orders";
const listed = await fetch(`${ORDERS_URL}${ordersPath}`, {
  headers: { Authorization: `Bearer ${token.access_token}` },
});
if (!listed.ok) throw new Error(`no orders: ${listed.status} ${await listed.text()}`);
const page: Orders = await listed.json();
const identifiers: string[] = page.orders.map((order) => order.identifier);
if (identifiers.length === 0) throw new Error("there are no orders");
console.log(`ok   the TypeScript program lists ${identifiers.length} orders`);
