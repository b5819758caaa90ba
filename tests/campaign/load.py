"""The load: merchants import orders in batches, and play returns, exchanges and shipments step by step."""

import asyncio
import random
import time
import zlib

import documents
from http_client import NoResponse

BATCH = 60
WORKERS = 2
# Each fourth batch of a merchant repeats orders of the one before with a newer version.
REPEAT_EVERY = 4
# A change of one service that another does not show after this time is a violation.
WAIT_SECONDS = 240
SCANS = (("label", "rma.tracking_updated"), ("accepted", "rma.dropped_off"), ("in_transit", "rma.in_transit"))
SCENARIOS = ("refund", "refund", "refund", "exchange", "exchange", "cancel", "drop_shipment", "drop_cancellation", "outbound")
# The ends of an exchanged unit.
ENDS = ("wait", "scan", "return_to_warehouse", "return_by_mistake", "waive")


class Stopped(Exception):
    """The campaign ends; the steps so far are complete."""


class Load:
    def __init__(self, client, journal, violations, seed, rate):
        self.client, self.journal, self.violations = client, journal, violations
        self.seed, self.rate = seed, rate
        self.is_stopping = False
        self.tasks = []

    def start(self, merchants):
        for merchant in merchants:
            self.tasks.append(asyncio.create_task(self.import_orders(merchant, self.rate / len(merchants))))
            for worker in range(1, WORKERS + 1):
                self.tasks.append(asyncio.create_task(self.run_scenarios(merchant, worker)))

    async def stop(self):
        """Ends after the current steps, so that every change that was sent is also acknowledged."""
        self.is_stopping = True
        for result in await asyncio.gather(*self.tasks, return_exceptions=True):
            if isinstance(result, Exception):
                self.violations.add("load", f"a worker failed: {result!r}")

    async def import_orders(self, merchant, rate):
        number, began_at, done, batch = 0, time.monotonic(), 0, []
        while not self.is_stopping:
            number += 1
            if number % REPEAT_EVERY or not batch:
                batch = [f"{merchant.name}-{number}-{position}" for position in range(BATCH)]
            version = time.time_ns() // 1_000_000
            try:
                await self.publish(merchant, 0, batch, documents.order_batch(batch, version), version)
            except NoResponse:
                continue
            done += len(batch)
            # After an outage the import is faster until it is on time again, at most twenty batches.
            late = max(time.monotonic() - began_at - done / rate, 0) - 20 * BATCH / rate
            began_at += max(late, 0)
            await asyncio.sleep(max(0, began_at + done / rate - time.monotonic()))

    async def publish(self, merchant, worker, identifiers, body, version):
        headers = merchant.headers(worker) | {"Api-Version": "3"}
        response = await self.client.call("order-intake", "POST", "/returns_portal_orders", body, headers)
        for order in response.json()["orders"]:
            if order["result"] not in ("stored", "unchanged"):
                self.violations.add("order", f"{merchant.name} {order['identifier']} is {order['result']}")
        self.journal.order_batch(merchant.name, identifiers, version)

    async def run_scenarios(self, merchant, worker):
        generator, number = random.Random(f"{self.seed} {merchant.name} {worker}"), 0
        while not self.is_stopping:
            number += 1
            scenario = Scenario(self, merchant, worker, f"{merchant.name}-w{worker}-{number}")
            try:
                await getattr(scenario, generator.choice(SCENARIOS))()
            except NoResponse:
                # The client has recorded the violation.
                continue
            except Stopped:
                return


class Scenario:
    """One order of a merchant, from its publication to the last message about it, step by step."""

    def __init__(self, load, merchant, worker, order):
        self.load, self.journal, self.client = load, load.journal, load.client
        self.merchant, self.worker, self.order = merchant, worker, order
        self.number = zlib.crc32(order.encode())
        self.created_at = time.time_ns() // 1_000_000

    async def post(self, service, path, body, key=None, method="POST", expect=(200, 201)):
        if self.load.is_stopping:
            raise Stopped
        return await self.client.call(service, method, path, body, self.merchant.headers(self.worker, key), expect)

    def record(self, change, service, key, event):
        self.journal.message(change, service, self.merchant.name, key, event)

    async def publish(self, refunds=()):
        if self.load.is_stopping:
            raise Stopped
        version = max(time.time_ns() // 1_000_000, self.created_at + bool(refunds))
        created_at = documents.timestamp(self.created_at)
        order = documents.order(self.order, created_at, documents.timestamp(version), ("A", "B"), refunds)
        await self.load.publish(self.merchant, self.worker, [self.order], documents.order_message([order]), version)

    async def eventually(self, service, path, holds, expected):
        """Repeats a read until the other service shows the change."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            response = await self.post(service, path, None, method="GET", expect=(200, 404))
            if response.status == 200 and holds(response.json()):
                return
            await asyncio.sleep(0.4)
        self.load.violations.add("not projected", f"{self.merchant.name} {self.order}: {expected}")
        raise NoResponse(expected)

    async def orderable(self):
        await self.publish()
        path = f"/v1/orders/{self.order}/returnable"
        await self.eventually("rma-engine", path, lambda _order: True, "the order is returnable")

    async def start_return(self, key, units, is_exchange):
        """The new return, or nothing if a unit cannot be returned."""
        units = [(self.order, *unit) for unit in units]
        body = documents.new_return(units, is_exchange)
        response = await self.post("rma-engine", "/v1/returns", body, f"{self.order}-{key}", expect=(201, 409))
        if response.status == 409:
            return None
        rma = response.json()["rma_identifier"]
        for unit in self.journal.new_return(self.merchant.name, rma, units):
            self.load.violations.add("unit in two returns", f"{self.merchant.name} {unit}")
        if is_exchange:
            self.journal.exchanges.add((self.merchant.name, self.order, rma))
        return rma

    async def start_two_returns(self, first, second, is_exchange):
        """Two requests at the same time. Returns those that succeeded, at least one."""
        requests = [self.start_return("1", first, is_exchange), self.start_return("2", second, is_exchange)]
        results = await asyncio.gather(*requests, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        started = [rma for rma in results if rma]
        if not started:
            self.load.violations.add("no return", f"{self.merchant.name} {self.order}: both requests were refused")
            raise NoResponse("no return")
        return started

    async def refund(self):
        await self.orderable()
        rma = (await self.start_two_returns([("A", 1)], [("A", 1)], False))[0]
        for event, message in SCANS:
            report = {
                "event_identifier": f"{self.order}-{event}", "event": event, "rma_identifier": rma,
                "tracking_number": f"1Z-{self.order}",
            }
            await self.post("rma-engine", "/v1/carrier_events", report)
            self.record("scan", "rma-engine", f"rma:{rma}", message)
        await self.receive(rma)
        await self.publish([documents.refund(self.order, rma, documents.timestamp(self.created_at))])
        self.journal.caused("rma-engine", self.merchant.name, f"rma:{rma}", "rma.refunded")

    async def receive(self, rma):
        asn = f"IN-{self.order}"
        body = documents.inbound_asn(asn, self.order, rma)
        await self.post("warehouse-notifier", "/v1/inbound_asns", body, asn)
        self.journal.write("inbound ASN", merchant=self.merchant.name, asn=asn)
        await self.post("warehouse-notifier", "/v1/receipts", documents.receipt(asn), f"{asn}-receipt")
        self.record("receipt", "warehouse-notifier", f"inbound_asn:{asn}/{self.order}-A", "inventory_receipt.received")
        self.journal.caused("rma-engine", self.merchant.name, f"rma:{rma}", "rma.received")
        path = f"/v1/returns/{rma}"
        await self.eventually("rma-engine", path, is_received, f"{rma} is received")

    async def exchange(self):
        """Two exchanges; of each unit that the merchant replaced, one of ENDS happens while its deadline passes."""
        await self.orderable()
        for rma in await self.start_two_returns([("B", 1)], [("B", 2)], True):
            await self.eventually("rma-engine", f"/v1/returns/{rma}", is_exchange_decided, f"{rma} is exchanged or not")
            await getattr(self, ENDS[zlib.crc32(rma.encode()) % len(ENDS)])(rma)

    async def wait(self, rma):
        """The unit does not come back."""

    async def scan(self, rma):
        report = {
            "event_identifier": f"{rma}-scan", "event": "in_transit", "rma_identifier": rma,
            "tracking_number": f"1Z-{rma}",
        }
        await self.post("rma-engine", "/v1/carrier_events", report)
        self.record("scan", "rma-engine", f"rma:{rma}", "rma.in_transit")
        self.journal.guarantees[self.merchant.name, rma] = "met"

    async def return_to_warehouse(self, rma):
        await self.find(rma, "received")
        self.journal.guarantees[self.merchant.name, rma] = "met"

    async def return_by_mistake(self, rma):
        await self.return_to_warehouse(rma)
        await self.find(rma, "undo")
        self.journal.guarantees[self.merchant.name, rma] = "due"

    async def find(self, rma, finding):
        response = await self.post("rma-engine", f"/v1/returns/{rma}", None, method="GET")
        body = documents.findings(response.json()["units"], finding)
        await self.post("rma-engine", f"/v1/returns/{rma}/receipts", body, f"{rma}-{finding}")
        self.record("receipt", "rma-engine", f"rma:{rma}", "rma.received")

    async def waive(self, rma):
        body = {"note": "The carrier lost the parcel"}
        response = await self.post("rma-engine", f"/v1/returns/{rma}/waive", body, expect=(200, 409))
        if response.status == 200:
            self.record("waiver", "rma-engine", f"rma:{rma}", "rma.guarantee_waived")
            self.journal.guarantees[self.merchant.name, rma] = "waived"

    async def cancel(self):
        await self.orderable()
        rma = await self.start_return("1", [("A", 1), ("B", 1)], False)
        await self.post("rma-engine", f"/v1/returns/{rma}/cancel", {})
        self.journal.canceled(self.merchant.name, rma, [(self.order, "A", 1), (self.order, "B", 1)])

    async def drop_shipment(self):
        body = documents.confirmation(self.order, self.number)
        await self.post("warehouse-notifier", "/v1/drop_shipments/confirmations", body, self.order)
        self.record("drop shipment", "warehouse-notifier", f"order:{self.order}", "drop_shipment.confirmed")

    async def drop_cancellation(self):
        for path, event, document in (
            ("partial_cancellations", "drop_shipment.partially_cancelled", documents.partial_cancellation),
            ("cancellations", "drop_shipment.cancelled", documents.cancellation),
        ):
            body = document(self.order, self.number)
            await self.post("warehouse-notifier", f"/v1/drop_shipments/{path}", body, f"{self.order}-{path}")
            self.record("drop shipment", "warehouse-notifier", f"order:{self.order}", event)

    async def outbound(self):
        asn = f"OUT-{self.order}"
        path = "/v1/outbound_shipments"
        await self.post("warehouse-notifier", path, documents.outbound_shipment(asn), asn)
        self.record("outbound ASN", "warehouse-notifier", f"asn:{asn}", "outbound_asn.pending")
        await self.post("warehouse-notifier", f"{path}/{asn}", {"status": "shipped"}, method="PATCH")
        self.record("outbound ASN", "warehouse-notifier", f"asn:{asn}", "outbound_asn.shipped")


def is_exchange_decided(rma):
    return all(unit["exchange_status"] in ("placed", "failed", "undeliverable") for unit in rma["units"])


def is_received(rma):
    return all(unit.get("receiving_status") == "RECEIVED" for unit in rma["units"])
