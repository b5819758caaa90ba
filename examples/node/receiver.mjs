// A complete receiver of Backhaul's messages: node:http and the package `standardwebhooks`.
//
// It verifies each message, stores it once under its webhook-id, responds, and processes it afterwards.
// Replace the functions under "Your shop" with your own code.
//
// Environment:
//   SIGNING_SECRETS  the signing secrets of your endpoints (whsec_...), separated by commas
//   PORT             the port to listen on; 3000 by default
//   JOURNAL          the file with the messages; messages.ndjson by default
import { appendFile, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const MAX_BODY_BYTES = 10 * 1024 * 1024;
const journal = process.env.JOURNAL ?? "messages.ndjson";
const webhooks = process.env.SIGNING_SECRETS.split(",").map((secret) => new Webhook(secret.trim()));

// ---- Your shop -------------------------------------------------------------------------------------------

/** The newest state of each return and shipment, by kind and number. */
const documents = new Map();

/** A message about a return or an outbound ASN is its complete state. An older one that arrives later, because
 * it was replayed, is ignored. */
function saveDocument(kind, number, sequence, body) {
  const known = documents.get(`${kind}:${number}`);
  if (!known || known.sequence < sequence) documents.set(`${kind}:${number}`, { sequence, body });
}

const handlers = {
  "/rmas"({ event, sequence, body }) {
    saveDocument("rma", body.rma_identifier, sequence, body);
    console.log(`${event}: return ${body.rma_identifier} is ${body.status}`);
  },
  "/exchange_orders"({ event, body }) {
    console.log(`${event}: pack ${body.items.map((item) => item.sku).join(", ")} for ${body.original_order_id}`);
  },
  "/outbound_asn"({ event, sequence, body }) {
    saveDocument("asn", body.asn_number, sequence, body);
    console.log(`${event}: shipment ${body.asn_number} is ${body.status}`);
  },
  "/inventory_receipt"({ event, body }) {
    // A rejected unit has a reason and no condition.
    const result = body.initial_condition ? `condition ${body.initial_condition}` : body.reject_reason;
    console.log(`${event}: unit ${body.unit_identifier} of ${body.asn_number}, ${result}`);
  },
  "/drop_shipment_confirmation"({ event, body }) {
    console.log(`${event}: order ${body.shipment.client_identifier}, parcel ${body.shipment.tracking_number}`);
  },
  "/drop_shipment_cancellation": onCancellation,
  "/drop_shipment_partial_cancellation": onCancellation,
  "/notices"({ event, body }) {
    console.log(`${event}: ${body.text} ${body.console_url}`);
  },
};

function onCancellation({ event, body }) {
  console.log(`${event}: order ${body.order.client_identifier} is ${body.order.status}`);
}

/** The response names your new order. There is one exchange order for each original order. */
function placeExchangeOrder(body) {
  return { order_identifier: `EX-${body.original_order_id}` };
}

/** The variants of a product that a shopper can choose instead. Use your catalogue here. */
function listVariants(variant) {
  return ["S", "M", "L"].map((size) => ({
    sku: `${variant}-${size}`,
    title: `${variant}, ${size}`,
    quantity_in_stock: 5,
    attributes: [{ name: "size", value: size }],
  }));
}

// ---- The receiver ----------------------------------------------------------------------------------------

/** The response to each message that is stored, by webhook-id. */
const stored = new Map();
/** Messages are processed and stored one after the other. */
let processing = Promise.resolve();

function isAuthentic(body, headers) {
  return webhooks.some((webhook) => {
    try {
      // Also refuses a timestamp that is more than five minutes away.
      webhook.verify(body, headers);
      return true;
    } catch {
      return false;
    }
  });
}

/** Stores a message once and resolves with the response; a repeated message gets the first one. */
function store(path, headers, body) {
  const id = headers["webhook-id"];
  if (!stored.has(id)) {
    const response = path === "/exchange_orders" ? placeExchangeOrder(body) : {};
    const [event, sequence] = [headers["x-service-event"], Number(headers["x-service-sequence"])];
    const message = { id, path, event, sequence, body, response };
    // A repeated message that arrives meanwhile waits for the same promise.
    const written = appendFile(journal, `${JSON.stringify(message)}\n`, { flush: true });
    stored.set(id, written.then(() => response));
    written.then(
      () => enqueue(message),
      () => stored.delete(id),
    );
  }
  return stored.get(id);
}

/** Processes a message after the ones before it. Backhaul has your 2xx: a failure here is yours to repair. */
function enqueue(message) {
  processing = processing
    .then(() => handlers[message.path](message))
    .catch((error) => console.error(`message ${message.id} failed: ${error}`));
}

/** Reads the messages of earlier runs, which builds the documents again. */
async function readJournal() {
  const text = await readFile(journal, "utf8").catch(() => "");
  for (const line of text.split("\n").filter(Boolean)) {
    const message = JSON.parse(line);
    stored.set(message.id, Promise.resolve(message.response));
    if (message.path === "/rmas") saveDocument("rma", message.body.rma_identifier, message.sequence, message.body);
    if (message.path === "/outbound_asn") saveDocument("asn", message.body.asn_number, message.sequence, message.body);
  }
}

async function readBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function respondTo(request) {
  const variants = request.url.match(/^\/sku\/([^/?]+)\/variants$/);
  // Requests for variants are not signed: protect them with the authentication of the endpoint.
  if (request.method === "GET" && variants) return [200, { variants: listVariants(decodeURIComponent(variants[1])) }];
  if (request.method !== "POST" || !Object.hasOwn(handlers, request.url)) return [404, { message: "unknown path" }];
  const body = await readBody(request);
  if (body === undefined) return [413, { message: "the body is too large" }];
  const text = body.toString("utf8");
  if (!isAuthentic(text, request.headers)) return [401, { message: "the signature is invalid or too old" }];
  if (request.headers["x-service-event"] === "sample") {
    // A check of the endpoint. It needs a success response and is not real.
    return [200, request.url === "/exchange_orders" ? { order_identifier: "SAMPLE" } : {}];
  }
  return [200, await store(request.url, request.headers, JSON.parse(text))];
}

const server = createServer(async (request, response) => {
  const [status, body] = await respondTo(request).catch((error) => [500, { message: String(error) }]);
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
});
await readJournal();
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
