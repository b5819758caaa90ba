"""The documents that merchants, carriers and warehouses send."""

import datetime
import json

ADDRESS = {"name": "Ada Adler", "street1": "1 Elm Street", "city": "Albany", "zip_code": "12207", "country_code": "US"}

WAREHOUSE = {
    "identifier": "WH-WEST", "type": "warehouse",
    "address": {
        "name": "Receiving", "company": "Acme Outdoor", "street": "12 Dock Road", "street2": "Gate 4", "city": "Reno",
        "state": "NV", "zip": "89501",
    },
}


def timestamp(milliseconds):
    at = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03}Z"


def line(identifier, at):
    return {
        "identifier": identifier, "sku": "BOOT-M", "variant_identifier": "BOOT", "title": "Boot, M", "quantity": 2,
        "quantity_shipped": 2, "quantity_canceled": 0, "product_amount_cents": 5000, "tax_amount_cents": 0,
        "discount_amount_cents": 0, "unit_price_amount_cents": 2500, "shipped_date": at,
    }


def order(identifier, created_at, updated_at, lines=("A",), refunds=()):
    amount = 5000 * len(lines)
    return {
        "identifier": identifier, "status": "Shipped", "currency": "USD", "total_amount_cents": amount,
        "product_amount_cents": amount, "tax_amount_cents": 0, "discount_amount_cents": 0, "shipping_amount_cents": 0,
        "shipping_tax_amount_cents": 0, "created_at": created_at, "updated_at": updated_at,
        "items": [line(name, created_at) for name in lines], "customer": {"email": "ada@shopper.example"},
        "shipping_address": ADDRESS, "billing_address": ADDRESS, "discounts": [], "transactions": [],
        "refunds": list(refunds),
    }


# Most orders differ in these places only, so they are not serialised one by one.
ORDER_TEMPLATE = json.dumps(order("@identifier@", "@created_at@", "@updated_at@"), separators=(",", ":"))


def order_message(orders):
    return {"returns_portal_order": {"orders": orders}}


def order_batch(identifiers, version):
    """The body of a message with many orders, as bytes."""
    at = timestamp(version)
    template = ORDER_TEMPLATE.replace("@created_at@", at).replace("@updated_at@", at)
    orders = ",".join(template.replace("@identifier@", identifier) for identifier in identifiers)
    return f'{{"returns_portal_order":{{"orders":[{orders}]}}}}'.encode()


def refund(order_identifier, rma, created_at):
    return {
        "identifier": f"{order_identifier}-R", "total_refund_amount_cents": 2500, "created_at": created_at,
        "rma_identifier": rma,
        "refund_line_items": [{"identifier": f"{order_identifier}-RL", "quantity": 1, "order_item_identifier": "A"}],
    }


def new_return(units, is_exchange):
    resolution = {"resolution": "refund"}
    if is_exchange:
        variant = {"sku": "BOOT-S", "title": "Boot, S", "unit_price_amount_cents": 2500}
        resolution = {"resolution": "exchange", "variant": variant}
    return {
        "return_method": "mail-back",
        "units": [
            {"order_identifier": order, "order_line_item_identifier": line, "unit": unit, "return_reason": "TOO_SMALL"} | resolution
            for order, line, unit in units
        ],
    }


def inbound_asn(number, order_identifier, rma):
    detail = {
        "line_identifier": "A", "reference_line_identifier": "A", "unit_identifier": f"{order_identifier}-A", "sku": "BOOT-M",
    }
    return {
        "asn_number": number, "shipment_identifier": rma, "from": {"identifier": "ada", "type": "customer"},
        "to": {"identifier": 12, "type": "warehouse"},
        "cartons": [{"reference": {"type": "RMA", "identifier": rma}, "details": [detail]}],
    }


def receipt(number):
    receipt = {
        "asn_number": number, "line_identifier": "A", "initial_condition": "A", "initial_channel": "Outlet",
        "user_login": "mwagner",
    }
    return {"receipts": [receipt]}


def findings(units, finding):
    """A receipt with a finding about each unit of a return."""
    names = ("order_identifier", "order_line_item_identifier", "unit")
    return {"findings": [{"finding": finding} | {name: unit[name] for name in names} for unit in units]}


def outbound_shipment(number):
    return {
        "shipment_type": "freight", "asn_number": number, "channel": "Outlet", "shipment_identifier": "SO-1001",
        "from": {"identifier": "WH-EAST", "type": "warehouse"}, "to": WAREHOUSE,
        "tracking_number": "PRO-778", "carrier": "Saia", "carrier_payment_type": "prepaid",
        "ship_date": "2026-03-02T16:00:00Z", "status": "pending", "details_type": "unit", "bol_number": "BOL-9",
        "timestamp": "2026-03-01T08:00:00Z",
        "cartons": [{
            "identifier": "PALLET-1", "sorting_template_name": "Outlet A",
            "reference": {"type": "RA", "identifier": "RA-5", "alternate_identifier": "ALT-5"},
            "details": [{
                "line_identifier": "L-1", "program_identifier": "outlet-east", "unit_identifier": f"{number}-1",
                "client_unit_identifier": "C-1", "inbound_received_asn": "IN-77", "sku": "TENT-001", "upc": "036000291452",
                "quantity": 1, "vendor_identifier": "V-12", "serial_number": "SN-1", "condition": "A",
                "eligibility_flags": ["resale"], "merchant": "Acme Outdoor",
            }],
        }],
    }


def confirmation(order_identifier, number):
    return {"shipment": {
        "id": number, "client_identifier": order_identifier, "channel": "Dropship", "carrier": "UPS",
        "shipping_method": "Ground", "tracking_number": f"1Z{number}",
        "shipment_items": [{"id": 9001, "client_identifier": "LINE-1", "quantity": 2}],
    }}


def cancellation(order_identifier, number):
    return {"order": {
        "id": number, "client_identifier": order_identifier, "status": "cancelled", "reject_reason": "inventory not found",
        "order_items": [{"id": 9001, "client_identifier": "LINE-1", "quantity": 2, "status": "cancelled"}],
    }}


def partial_cancellation(order_identifier, number):
    return {"order": {
        "id": number, "client_identifier": order_identifier, "status": "shipped",
        "order_items": [{
            "id": 9001, "client_identifier": "LINE-1", "status": "cancelled", "quantity": 2, "cancelled_quantity": 1,
        }],
    }}
