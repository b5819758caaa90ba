"""Plants a marker in every personal field and checks where it is found.

usage: privacy.py plant | quiet FILE... | exported < EXPORT | erase | gone < DUMP

  plant  publishes an order, starts returns with an exchange, and reports a drop shipment, an outbound shipment and a
         receipt, all with the marker; fails if the list of personal fields has a field without the marker
  quiet  fails if the marker is in one of the files (logs, traces), in metrics, in names of queues or in the
         audit log
  exported  fails if `backhaul shopper export` left out a personal field
  erase  erases the shopper and waits until all services have confirmed
  gone   fails if the marker is in the dump of a database on standard input, as text or in hexadecimal

Expects AUTH_URL, ORDERS_URL, RMA_URL, EXCHANGE_URL, WAREHOUSE_URL, CLIENT_ID and CLIENT_SECRET of the demo merchant,
OPERATOR_CLIENT_ID and OPERATOR_CLIENT_SECRET, and for `quiet` RABBITMQ_API_URL, RABBITMQ_USER and RABBITMQ_PASSWORD.
"""

import base64
import datetime
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request

# In lower case, because e-mail addresses are stored in lower case.
MARKER = "qzplanted"
ORDER = "PRIVACY-1"
EMAIL = f"{MARKER}@mail.example"
WAIT = 120
# The list is generated from the rules by which services erase.
LIST = pathlib.Path(__file__).parent.parent / "proto-schemas/personal-fields.txt"
# Fields that this script does not plant.
NOT_PLANTED = {
    "the service": "an alias of customer",
    "customer_email": "made from the customer's address",
    "detail": "carriers report it; a test of rma-engine plants it",
    "label_url": "carriers report it; a test of rma-engine plants it",
    "to": "in mails, which Backhaul writes; a test of rma-engine plants it",
    "html": "like `to`",
    "subject": "like `to`",
    "text": "like `to`",
}
planted = []


def fetch(url, body=None, headers=None, basic=None):
    headers = dict(headers or {})
    if basic:
        headers["Authorization"] = "Basic " + base64.b64encode(basic.encode()).decode()
    data = None
    if body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        sys.exit(f"{url}: {error.code} {error.read().decode()}")


def token(role=""):
    client = f"{os.environ[role + 'CLIENT_ID']}:{os.environ[role + 'CLIENT_SECRET']}"
    request = urllib.request.Request(
        os.environ["AUTH_URL"] + "/oauth/token",
        b"grant_type=client_credentials",
        {"Authorization": "Basic " + base64.b64encode(client.encode()).decode()},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["access_token"]


def call(service, path, body=None):
    headers = {"Authorization": f"Bearer {token()}", "Api-Version": "3"}
    planted.append(body)
    text = fetch(os.environ[service] + path, body, headers)
    return json.loads(text) if text else {}


def operate(service, path, body=None):
    """Calls a service as the operator, for the demo merchant."""
    headers = {"Authorization": f"Bearer {token('OPERATOR_')}", "X-Service-Id": "demo"}
    return json.loads(fetch(os.environ[service] + path, body, headers))


def eventually(what, check):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.2)
    sys.exit(f"not within {WAIT} s: {what}")


def address():
    fields = ["name", "street1", "street2", "city", "state", "zip_code", "phone"]
    return {field: f"{MARKER} {field}"[:32] for field in fields} | {"country_code": "US"}


def order():
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = {
        "identifier": f"{ORDER}-L1", "sku": "BOOT-M", "variant_identifier": "BOOT", "title": "Boot, M", "quantity": 3, "quantity_shipped": 3,
        "quantity_canceled": 0, "product_amount_cents": 7500, "tax_amount_cents": 0, "discount_amount_cents": 0,
        "unit_price_amount_cents": 2500, "shipped_date": now, "engraving": f"for {MARKER}",
    }
    return {
        "identifier": ORDER, "status": "Shipped", "currency": "USD", "total_amount_cents": 7500,
        "product_amount_cents": 7500, "tax_amount_cents": 0, "discount_amount_cents": 0,
        "shipping_amount_cents": 0, "shipping_tax_amount_cents": 0, "created_at": now, "updated_at": now,
        "note": f"ring at {MARKER}", "items": [line],
        "customer": {
            "email": EMAIL, "identifier": EMAIL, "first_name": MARKER, "last_name": MARKER, "phone": MARKER,
        },
        "shipping_address": address(), "billing_address": address(), "discounts": [], "refunds": [],
        "transactions": [{"identifier": "T-1", "amount_cents": 7500, "card_holder": MARKER}],
        "gift_wrap": {"text": MARKER}, "gift_message": MARKER,
    }


def unit(number, resolution):
    return {
        "order_identifier": ORDER, "order_line_item_identifier": f"{ORDER}-L1", "unit": number,
        "return_reason": "TOO_SMALL", "comment": f"{MARKER} feels small",
    } | resolution


def warehouse_address():
    fields = ["name", "company", "telephone_number", "street", "street2", "city", "state", "zip_code"]
    return {field: f"{MARKER} {field}" for field in fields} | {"country": "USA"}


def shipment():
    detail = {
        "line_identifier": "L-1", "program_identifier": "outlet", "unit_identifier": "U-1", "inbound_received_asn": "IN-77",
        "sku": "BOOT-M", "quantity": 1, "condition": "A", "eligibility_flags": ["resale"], "merchant": "Demo",
    }
    fields = ["name", "company", "street", "street2", "city", "state", "zip"]
    receiver = {"identifier": "S-1", "type": "store", "address": {field: f"{MARKER} {field}" for field in fields}}
    return {
        "shipment_type": "freight", "from": {"identifier": "WH-1", "type": "warehouse"}, "to": receiver,
        "asn_number": f"OUT-{ORDER}", "channel": "Outlet", "shipment_identifier": ORDER, "tracking_number": "PRO-1",
        "carrier": "Saia", "carrier_payment_type": "prepaid", "ship_date": "2026-03-02T16:00:00Z", "status": "pending",
        "details_type": "unit", "bol_number": "BOL-1", "timestamp": "2026-03-01T08:00:00Z",
        "cartons": [{"identifier": "BOX-1", "details": [detail]}],
    }


def inbound_asn():
    detail = {
        "line_identifier": "L-1", "unit_identifier": "U-1", "sku": "BOOT-M", "quantity": 1,
        "return_reason": f"{MARKER} gained weight",
    }
    return {
        "asn_number": f"IN-{ORDER}", "shipment_identifier": ORDER, "from": {"identifier": "C-1", "type": "customer"},
        "to": {"identifier": "WH-1", "type": "warehouse"}, "merchant": "Demo", "concept": "Demo",
        "cartons": [{"identifier": "BOX-1", "reference": {"type": "ReturnsPortalOrder", "identifier": ORDER}, "details": [detail]}],
    }


def personal_fields():
    """The names of the personal fields of documents."""
    lines = [line.split(": ", 1) for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return [name for kind, name in lines if kind != "column"]


def has_marker(value, name):
    """Whether a member with this name has the marker, at any depth."""
    if isinstance(value, list):
        return any(has_marker(element, name) for element in value)
    if not isinstance(value, dict):
        return False
    own = name in value and MARKER in json.dumps(value[name]).lower()
    return own or any(has_marker(member, name) for member in value.values())


def plant():
    call("ORDERS_URL", "/returns_portal_orders", {"returns_portal_order": {"orders": [order()]}})
    eventually("the order is projected", is_projected)
    variant = {"resolution": "exchange", "variant": {"sku": "BOOT-S", "title": "Boot, S", "unit_price_amount_cents": 2500}}
    call("RMA_URL", "/v1/returns", {"return_method": "mail-back", "units": [unit(1, variant)]})
    withdrawn = {"resolution": "refund", "return_reason": "withdrawal"}
    person = {"name": MARKER, "email": f"withdrawal-{EMAIL}"}
    body = {"return_method": "mail-back", "units": [unit(2, withdrawn)], "withdrawal": person}
    rma = call("RMA_URL", "/v1/returns", body)["rma_identifier"]
    call("RMA_URL", f"/v1/returns/{rma}/cancel", {"reason": f"{MARKER} keeps it"})
    gift = {
        "return_method": "mail-back", "units": [unit(3, {"resolution": "refund"})],
        "gift_refund_only": True, "giftee_email": f"giftee-{EMAIL}",
    }
    call("RMA_URL", "/v1/returns", gift)
    cancelled = {"order": {
        "id": 1, "client_identifier": ORDER, "status": "cancelled", "comments": MARKER,
        "reject_reason": f"{MARKER} moved", "shipping_address": warehouse_address(),
        "billing_address": warehouse_address(),
        "order_items": [{"id": 1, "quantity": 1, "comments": MARKER}],
    }}
    call("WAREHOUSE_URL", "/v1/drop_shipments/cancellations", cancelled)
    call("WAREHOUSE_URL", "/v1/outbound_shipments", shipment())
    call("WAREHOUSE_URL", "/v1/inbound_asns", inbound_asn())
    received = {
        "asn_number": f"IN-{ORDER}", "line_identifier": "L-1", "to": {"identifier": "WH-1", "type": "warehouse"},
        "initial_condition": "A", "initial_channel": "Outlet", "user_login": "mwagner", "location_identifier": "A-01",
    }
    call("WAREHOUSE_URL", "/v1/receipts", received)
    eventually("the exchange order is sent", has_exchange_order)
    missing = [name for name in personal_fields() if name not in NOT_PLANTED and not has_marker(planted, name)]
    if missing:
        sys.exit(f"fields without the marker: {', '.join(missing)}")


def exported():
    """Checks the list of personal data in an export, which has a path for each value."""
    paths = [it["path"].split("/") for it in json.load(sys.stdin)["personal_data"] if MARKER in str(it["value"]).lower()]
    is_exported = lambda name: any(name in path for path in paths)
    names = [it for it in personal_fields() if it not in NOT_PLANTED]
    if missing := [name for name in names if not is_exported(name)]:
        sys.exit(f"fields that are not exported: {', '.join(missing)}")


def is_projected():
    request = urllib.request.Request(
        os.environ["RMA_URL"] + f"/v1/orders/{ORDER}/returnable", headers={"Authorization": f"Bearer {token()}"}
    )
    try:
        return urllib.request.urlopen(request, timeout=30).status == 200
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return False


def has_exchange_order():
    found = call("EXCHANGE_URL", f"/v1/exchange_orders?original_order_id={ORDER}")["exchange_orders"]
    return any(it.get("delivery") for it in found)


def quiet(files):
    found = []
    for name in files:
        with open(name, encoding="utf-8", errors="replace") as file:
            found += [f"{name}: {line.strip()[:300]}" for line in file if MARKER in line.lower()]
    for service in ["AUTH_URL", "ORDERS_URL", "RMA_URL", "EXCHANGE_URL", "WAREHOUSE_URL"]:
        if MARKER in fetch(os.environ[service] + "/metrics").lower():
            found.append(f"metrics of {service}")
    if MARKER in json.dumps(operate("AUTH_URL", "/v1/audit?limit=100")).lower():
        found.append("audit log")
    queues = fetch(
        os.environ["RABBITMQ_API_URL"] + "/queues?columns=name",
        basic=f"{os.environ['RABBITMQ_USER']}:{os.environ['RABBITMQ_PASSWORD']}",
    )
    if MARKER in queues.lower():
        found.append("names of queues")
    if found:
        sys.exit("personal data was found:\n" + "\n".join(found))


def erase():
    for email in [EMAIL, f"giftee-{EMAIL}"]:
        erasure = operate("ORDERS_URL", "/v1/erasures", {"email": email, "force": True})
        path = f"/v1/erasures/{erasure['id']}"
        eventually("all services confirm", lambda path=path: operate("ORDERS_URL", path)["state"] == "finished")


def gone():
    digits = MARKER.encode().hex()
    lines = [line.strip() for line in sys.stdin if MARKER in line.lower() or digits in line.lower()]
    if lines:
        sys.exit("personal data remains:\n" + "\n".join(line[:300] for line in lines))


match sys.argv[1:]:
    case ["plant"]:
        plant()
    case ["quiet", *files]:
        quiet(files)
    case ["exported"]:
        exported()
    case ["erase"]:
        erase()
    case ["gone"]:
        gone()
    case _:
        sys.exit(__doc__)
