"""A complete receiver of Backhaul's messages: Python's standard library and the package `standardwebhooks`.

It verifies each message, stores it once under its webhook-id, responds, and processes it afterwards. Replace
the functions under "Your shop" with your own code.

Environment:
  SIGNING_SECRETS  the signing secrets of your endpoints (whsec_...), separated by commas
  PORT             the port to listen on; 3000 by default
  DATABASE         the SQLite file; messages.db by default
"""

import json
import os
import queue
import re
import signal
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

MAX_BODY_BYTES = 10 * 1024 * 1024
SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    id TEXT PRIMARY KEY, path TEXT NOT NULL, event TEXT NOT NULL, sequence INTEGER NOT NULL,
    body TEXT NOT NULL, response TEXT NOT NULL, processed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS documents (
    kind TEXT NOT NULL, number TEXT NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (kind, number)
);
"""


# ---- Your shop -------------------------------------------------------------------------------------------


def save_document(database, kind, number, sequence, body):
    """A message about a return or an outbound ASN is its complete state. An older one that arrives later,
    because it was replayed, is ignored."""
    database.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?) ON CONFLICT (kind, number) DO UPDATE "
        "SET sequence = excluded.sequence, body = excluded.body WHERE excluded.sequence > documents.sequence",
        (kind, number, sequence, json.dumps(body)),
    )


def on_rma(database, event, sequence, body):
    save_document(database, "rma", body["rma_identifier"], sequence, body)
    print(f"{event}: return {body['rma_identifier']} is {body['status']}")


def on_outbound_asn(database, event, sequence, body):
    save_document(database, "asn", body["asn_number"], sequence, body)
    print(f"{event}: shipment {body['asn_number']} is {body['status']}")


def on_inventory_receipt(_database, event, _sequence, body):
    # A rejected unit has a reason and no condition.
    result = f"condition {body['initial_condition']}" if "initial_condition" in body else body.get("reject_reason")
    print(f"{event}: unit {body['unit_identifier']} of {body['asn_number']}, {result}")


def on_exchange_order(_database, event, _sequence, body):
    skus = ", ".join(str(item.get("sku")) for item in body["items"])
    print(f"{event}: pack {skus} for {body['original_order_id']}")


def on_drop_shipment(_database, event, _sequence, body):
    print(f"{event}: order {body['shipment']['client_identifier']}, parcel {body['shipment']['tracking_number']}")


def on_cancellation(_database, event, _sequence, body):
    print(f"{event}: order {body['order']['client_identifier']} is {body['order']['status']}")


def on_notice(_database, event, _sequence, body):
    print(f"{event}: {body['text']} {body['console_url']}")


def place_exchange_order(body):
    """The response names your new order. There is one exchange order for each original order."""
    return {"order_identifier": f"EX-{body['original_order_id']}"}


def list_variants(variant_identifier):
    """The variants of a product that a shopper can choose instead. Use your catalogue here."""
    return [
        {"sku": f"{variant_identifier}-{size}", "title": f"{variant_identifier}, {size}", "quantity_in_stock": 5,
         "attributes": [{"name": "size", "value": size}]}
        for size in ["S", "M", "L"]
    ]


HANDLERS = {
    "/rmas": on_rma,
    "/exchange_orders": on_exchange_order,
    "/outbound_asn": on_outbound_asn,
    "/inventory_receipt": on_inventory_receipt,
    "/drop_shipment_confirmation": on_drop_shipment,
    "/drop_shipment_cancellation": on_cancellation,
    "/drop_shipment_partial_cancellation": on_cancellation,
    "/notices": on_notice,
}

# ---- The receiver ----------------------------------------------------------------------------------------

DATABASE = os.environ.get("DATABASE", "messages.db")
WEBHOOKS = [Webhook(secret.strip()) for secret in os.environ["SIGNING_SECRETS"].split(",")]
new_messages = queue.Queue()


def connect():
    database = sqlite3.connect(DATABASE, timeout=10)
    database.row_factory = sqlite3.Row
    return database


def is_authentic(body, headers):
    """Whether one of the secrets signed the message in the last five minutes."""
    for webhook in WEBHOOKS:
        try:
            webhook.verify(body, headers)
            return True
        except WebhookVerificationError:
            continue
    return False


def store(path, headers, body):
    """Stores a message once. Returns the response; a repeated message gets the first one."""
    response = place_exchange_order(body) if path == "/exchange_orders" else {}
    database = connect()
    with database:
        database.execute(
            "INSERT OR IGNORE INTO messages (id, path, event, sequence, body, response) VALUES (?, ?, ?, ?, ?, ?)",
            (headers["webhook-id"], path, headers["x-service-event"], int(headers["x-service-sequence"]),
             json.dumps(body), json.dumps(response)),
        )
        stored = database.execute("SELECT response FROM messages WHERE id = ?", (headers["webhook-id"],)).fetchone()
    database.close()
    return json.loads(stored["response"])


def process_messages():
    """Processes stored messages one after the other, also those that a crash left behind."""
    database = connect()
    while True:
        waiting = database.execute("SELECT rowid, * FROM messages WHERE processed = 0 ORDER BY rowid").fetchall()
        for message in waiting:
            try:
                with database:
                    handler = HANDLERS[message["path"]]
                    handler(database, message["event"], message["sequence"], json.loads(message["body"]))
                    database.execute("UPDATE messages SET processed = 1 WHERE id = ?", (message["id"],))
            except Exception as error:  # Backhaul has your 2xx: a failure here is yours to repair.
                print(f"message {message['id']} failed: {error!r}", file=sys.stderr)
                with database:
                    database.execute("UPDATE messages SET processed = -1 WHERE id = ?", (message["id"],))
        sys.stdout.flush()
        new_messages.get()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        # Requests for variants are not signed: protect them with the authentication of the endpoint.
        found = re.fullmatch(r"/sku/([^/?]+)/variants", self.path)
        if found:
            self.respond(200, {"variants": list_variants(found[1])})
        else:
            self.respond(404, {"message": "unknown path"})

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            return self.respond(413, {"message": "the body is too large"})
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path not in HANDLERS:
            return self.respond(404, {"message": "unknown path"})
        if not is_authentic(body, headers):
            return self.respond(401, {"message": "the signature is invalid or too old"})
        if headers.get("x-service-event") == "sample":
            # A check of the endpoint. It needs a success response and is not real.
            sample = {"order_identifier": "SAMPLE"} if self.path == "/exchange_orders" else {}
            return self.respond(200, sample)
        response = store(self.path, headers, json.loads(body))
        self.respond(200, response)
        new_messages.put(True)

    def respond(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments):
        """Requests are not logged one by one."""


def main():
    database = connect()
    database.executescript("PRAGMA journal_mode = WAL;" + SCHEMA)
    database.close()
    threading.Thread(target=process_messages, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()
