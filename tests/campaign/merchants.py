"""The merchants of the campaign: created through the API, with a client, endpoints and signing secrets."""

import asyncio
import base64
import dataclasses

# Route of each message kind at the merchant.
ROUTES = {
    "rma": "/rmas", "exchange-order": "/exchange_orders", "outbound-asn": "/outbound_asn",
    "inventory-receipt": "/inventory_receipt", "drop-shipment-confirmation": "/drop_shipment_confirmation",
    "drop-shipment-cancellation": "/drop_shipment_cancellation",
    "drop-shipment-partial-cancellation": "/drop_shipment_partial_cancellation",
}
# Usual behaviour of each merchant. The probe is measured, so faults do not make it slow.
BEHAVIOUR = {
    "acme": "healthy", "birch": "healthy", "cedar": "healthy", "delta": "healthy", "slow": "slow", "flaky": "flaky",
}
PROBE = "probe"


@dataclasses.dataclass
class Merchant:
    name: str
    token: str
    number: int

    def headers(self, worker=0, key=None):
        """The headers of a request. Each worker has an address of its own, because requests per address are limited."""
        headers = {"Authorization": f"Bearer {self.token}", "X-Forwarded-For": f"10.1.{self.number}.{worker + 1}"}
        return headers | ({"Idempotency-Key": key} if key else {})


async def create_merchants(client, receiver, port, operator):
    token = await client.token(*operator)
    names = [*BEHAVIOUR, PROBE]
    merchants = []
    for number, name in enumerate(names, 1):
        merchants.append(await create(client, receiver, port, token, name, number))
    return merchants


async def create(client, receiver, port, token, name, number):
    headers = {"Authorization": f"Bearer {token}"}
    body = {"identifier": name, "name": name, "base_url": f"http://127.0.0.1:{port}/{name}", "managed_receiving": True}
    await client.call("auth", "POST", "/v1/merchants", body, headers)
    scopes = ["orders", "returns", "carrier", "warehouse"]
    created = await client.call("auth", "POST", "/v1/clients", {"merchant": name, "name": name, "scopes": scopes}, headers)
    created = created.json()
    receiver.usual[name] = BEHAVIOUR.get(name, "healthy")
    endpoints = f"/v1/merchants/{name}/endpoints"
    await client.call("auth", "PUT", f"{endpoints}/exchange-variants", {}, headers)
    for kind, route in ROUTES.items():
        endpoint = await client.call("auth", "PUT", f"{endpoints}/{kind}", {}, headers)
        secret = endpoint.json()["signing_secret"].removeprefix("whsec_")
        receiver.secrets[name, route] = base64.b64decode(secret)
    return Merchant(name, await client.token(created["client_id"], created["client_secret"]), number)


async def await_merchants(client, merchants):
    """Waits until every replica of every service knows all merchants."""
    paths = {
        "order-intake": "/v1/orders?limit=1", "rma-engine": "/v1/returns?limit=1",
        "exchange": "/v1/exchange_orders?limit=1", "warehouse-notifier": "/v1/inbound_asns?limit=1",
    }
    for service, path in paths.items():
        for _replica in client.replicas[service]:
            client.turn[service] += 1
            for merchant in merchants:
                while (await client.send(service, "GET", path, None, merchant.headers())).status != 200:
                    await asyncio.sleep(0.2)
