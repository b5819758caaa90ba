"""The merchants' endpoints: verifies each message, records it and obeys the behaviour of the merchant."""

import asyncio
import base64
import collections
import dataclasses
import hashlib
import hmac
import json
import random
import time

# Seconds that a message may be old, as in Standard Webhooks.
TOLERANCE = 300
SLOW_SECONDS = 2
# Share of the requests that a flaky merchant refuses.
FLAKY_SHARE = 0.1


@dataclasses.dataclass(slots=True)
class Arrival:
    merchant: str
    id: str
    sequence: int
    event: str
    arrived_at: float
    # 0 while there is no response, or if the sender closed the connection before it.
    status: int = 0
    responded_at: float = 0.0


class Receiver:
    def __init__(self, path, violations, generator):
        self.file = open(path, "a", encoding="utf-8")
        self.violations, self.random = violations, generator
        self.secrets = {}
        # Merchant -> "healthy", "slow", "flaky", and during a fault "failing", "hanging" or "slow".
        self.usual, self.faulty = {}, {}
        self.arrivals = []
        # (merchant, original order) -> ids of the exchange orders that were accepted.
        self.exchange_orders = collections.defaultdict(set)
        # Order of a probe -> future.
        self.awaited = {}

    async def start(self, port):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", port, limit=2**20)

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _version = head[0].split()
                headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
                headers = {name.lower(): value for name, value in headers.items()}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                merchant, _, route = path.lstrip("/").partition("/")
                if method == "GET":
                    status, content = await self.variants(merchant)
                else:
                    status, content = await self.accept(merchant, "/" + route, headers, body, reader, writer)
                respond(writer, status, content)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            writer.close()

    async def variants(self, merchant):
        if self.faulty.get(merchant):
            return 503, {}
        return 200, {"variants": [{"sku": "BOOT-S", "title": "Boot, S", "unit_price_amount_cents": 2500, "quantity_in_stock": 5}]}

    async def accept(self, merchant, route, headers, body, reader, writer):
        arrival = Arrival(
            merchant, headers["webhook-id"], int(headers["x-service-sequence"]), headers["x-service-event"], time.time(),
        )
        self.arrivals.append(arrival)
        status = 200 if self.is_authentic(merchant, route, headers, body) else 400
        if status == 400:
            self.violations.add("bad signature", f"{merchant} {arrival.event} {arrival.id}")
        status = await self.behave(merchant, status)
        content = self.process(merchant, route, arrival, body) if status == 200 else {}
        if reader.at_eof() or writer.transport.is_closing():
            status = 0
        arrival.status, arrival.responded_at = status, time.time()
        line = [merchant, arrival.id, arrival.sequence, arrival.event, arrival.arrived_at, arrival.responded_at, status]
        self.file.write(json.dumps(line) + "\n")
        return status or 200, content

    async def behave(self, merchant, status):
        """Waits or fails as the merchant does at present."""
        match self.faulty.get(merchant) or self.usual.get(merchant):
            case "failing":
                return 503
            case "hanging":
                while self.faulty.get(merchant) == "hanging":
                    await asyncio.sleep(0.2)
            case "slow":
                await asyncio.sleep(SLOW_SECONDS if self.faulty.get(merchant) else SLOW_SECONDS / 2)
            case "flaky" if self.random.random() < FLAKY_SHARE:
                return 500
        return status

    def is_authentic(self, merchant, route, headers, body):
        secret = self.secrets.get((merchant, route))
        if secret is None or abs(time.time() - int(headers["webhook-timestamp"])) > TOLERANCE:
            return False
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        digest = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
        return f"v1,{digest}" in headers["webhook-signature"].split()

    def process(self, merchant, route, arrival, body):
        if route == "/exchange_orders":
            order = json.loads(body)["original_order_id"]
            self.exchange_orders[merchant, order].add(arrival.id)
            return {"order_identifier": f"EX-{order}"}
        if route == "/drop_shipment_confirmation" and self.awaited:
            order = json.loads(body)["shipment"]["client_identifier"]
            if (future := self.awaited.pop(order, None)) and not future.done():
                future.set_result(time.time())
        return {}

    def expect(self, order):
        """A future for the arrival of the drop shipment of an order."""
        self.awaited[order] = asyncio.get_running_loop().create_future()
        return self.awaited[order]


def respond(writer, status, content):
    body = json.dumps(content).encode()
    head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


def new_generator(seed):
    return random.Random(f"{seed} receiver")
