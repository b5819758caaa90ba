"""Probes: small requests that run all the time and show when the stack works again after a fault."""

import asyncio
import time

import documents
from http_client import NoResponse

PAUSE = 0.2
TIMEOUT = 2
# A probe that takes longer is given up and a new one is started.
LONGEST = 5
NAMES = ("accept", "project", "deliver")


class Probes:
    def __init__(self, client, receiver, merchant):
        self.client, self.receiver, self.merchant = client, receiver, merchant
        # Probe -> (start, end) of those that succeeded.
        self.successes = {name: [] for name in NAMES}
        self.number = 0
        self.tasks = []

    def start(self):
        self.tasks = [asyncio.create_task(self.repeat(name)) for name in NAMES]

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def repeat(self, name):
        while True:
            began_at = time.time()
            try:
                async with asyncio.timeout(LONGEST):
                    await getattr(self, name)()
                self.successes[name].append((began_at, time.time()))
            except (NoResponse, TimeoutError):
                pass
            await asyncio.sleep(PAUSE)

    async def send(self, service, method, path, body=None, **headers):
        content = documents.json.dumps(body).encode() if body is not None else None
        sent = self.merchant.headers(9) | headers
        try:
            response = await self.client.send(service, method, path, content, sent, TIMEOUT)
        except NoResponse:
            self.client.turn[service] += 1
            raise
        if response.status >= 400:
            self.client.turn[service] += 1
            raise NoResponse(f"{response.status}")
        return response

    async def publish(self, identifier):
        version = time.time_ns() // 1_000_000
        at = documents.timestamp(version)
        body = documents.order_message([documents.order(identifier, at, at)])
        await self.send("order-intake", "POST", "/returns_portal_orders", body, **{"Api-Version": "3"})
        return at

    async def accept(self):
        await self.publish("accept")

    async def project(self):
        self.number += 1
        identifier = f"project-{self.number}"
        await self.publish(identifier)
        while True:
            try:
                await self.send("rma-engine", "GET", f"/v1/orders/{identifier}/returnable")
                return
            except NoResponse:
                await asyncio.sleep(PAUSE)

    async def deliver(self):
        self.number += 1
        order = f"deliver-{self.number}"
        arrival = self.receiver.expect(order)
        body = documents.confirmation(order, self.number)
        try:
            await self.send("warehouse-notifier", "POST", "/v1/drop_shipments/confirmations", body, **{"Idempotency-Key": order})
            await arrival
        finally:
            self.receiver.awaited.pop(order, None)

    def last_projected_at(self):
        """A time before which all events were applied."""
        found = self.successes["project"]
        return found[-1][0] if found else 0.0

    def longest_gap(self, name):
        """The longest time without a success of a probe, with all faults."""
        ends = [end for _begin, end in self.successes[name]]
        return max((after - before for before, after in zip(ends, ends[1:])), default=0.0)


def recovery(successes, ended_at, others):
    """Seconds from the end of a fault to the first success of a probe that began after it; nothing if there was none.
    The time in which other faults were active does not count. They are (begin, end)."""
    recovered_at = next((end for began_at, end in successes if began_at >= ended_at), None)
    if recovered_at is None:
        return None
    seconds, at = 0.0, ended_at
    for begin, end in sorted(others):
        if end > at and begin < recovered_at:
            seconds += max(begin - at, 0)
            at = end
    return seconds + max(recovered_at - at, 0)
