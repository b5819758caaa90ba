"""Reads the databases and compares them with the journal and with the messages that merchants received."""

import asyncio
import collections
import time

import checks
from checks import Message, Settled
from merchants import PROBE
from servers import CommandFailed
from settings import DELIVERING, SERVICES

# The stack must have done everything this long after the last fault and the last change.
DRAIN_SECONDS = 300

ORDERS = f"""SELECT merchant, identifier, round(extract(epoch FROM updated_at) * 1000)::bigint
FROM orders WHERE merchant <> '{PROBE}'"""
VERSIONS = f"SELECT count(*), sum(extract(epoch FROM updated_at)) FROM orders WHERE merchant <> '{PROBE}'"
MESSAGES = "SELECT id, merchant, coalesce(ordering_key, ''), sequence, event FROM delivery_messages"
SETTLED = """SELECT delivery, coalesce(max(settled), ''), max(number),
    coalesce(max(outcome) FILTER (WHERE settled = 'dead'), '') FROM delivery_attempts GROUP BY delivery"""
UNITS = """SELECT merchant, order_identifier, line_identifier, unit, count(*) FROM return_units WHERE held
GROUP BY 1, 2, 3, 4 HAVING count(*) > 1"""
PLACED = "SELECT merchant, original_order_id FROM exchange_orders WHERE state = 'placed'"
CONFIRMATIONS = "SELECT merchant, original_order_id, rma_identifier FROM confirmations"
PROJECTED_EXCHANGES = "SELECT merchant, original_order_identifier FROM exchange_orders"
GUARANTEES = """SELECT merchant, rma_identifier, unit ->> 'order_identifier', unit ->> 'order_line_item_identifier',
    unit ->> 'unit', unit -> 'guarantee' ->> 'state', unit -> 'guarantee' ->> 'amount_cents',
    (unit -> 'guarantee' ->> 'unreturned_at') IS NOT NULL
FROM returns, jsonb_array_elements(document::jsonb -> 'units') AS unit WHERE unit ? 'guarantee'"""
REPORTS = f"""SELECT merchant, rma_identifier, unit ->> 'order_identifier', unit ->> 'order_line_item_identifier',
    unit ->> 'unit' FROM timeline, jsonb_array_elements(detail -> 'units') AS unit WHERE event = '{checks.UNRETURNED}'"""
SUMS = """SELECT merchant, state, sum(units), sum(amount_cents) FROM (
    SELECT merchant, state, units, amount_cents FROM guarantee_totals
    UNION ALL SELECT merchant, state, units, amount_cents FROM guarantee_changes
) AS counted GROUP BY 1, 2 HAVING sum(units) <> 0"""
# Lets the deadlines of exchanged units pass. Locked ones follow the next time.
PASS_DEADLINES = """UPDATE return_deadlines SET started_at = started_at - interval '60 days', due_at = now()
WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM return_deadlines WHERE kind = 'exchange' AND due_at > now() FOR UPDATE SKIP LOCKED
))"""
# Work that is not done yet, by the service whose database has it.
BACKLOGS = {
    "outbox": (SERVICES, "SELECT count(*) FROM outbox"),
    "deliveries": (DELIVERING, "SELECT count(*) FROM deliveries"),
    "confirmations": (("exchange",), "SELECT count(*) FROM confirmations WHERE state = 'waiting'"),
    "exchange deadlines": (("rma-engine",), "SELECT count(*) FROM return_deadlines WHERE kind = 'exchange'"),
}


class Reconciliation:
    def __init__(self, stack, journal, violations, say):
        self.stack, self.journal, self.violations, self.say = stack, journal, violations, say
        self.totals = {}
        self.samples = 0

    async def rows(self, service, query):
        output = await self.stack.postgres.sql(query, f"campaign_{service.replace('-', '_')}")
        return [tuple(line.split("\t")) for line in output.splitlines()]

    async def count(self, service, query):
        return int((await self.rows(service, query))[0][0])

    async def sample(self):
        """Compares counts while the load runs. A database that a fault has stopped is not sampled."""
        acknowledged = len(self.journal.orders)
        try:
            stored = await self.count("order-intake", f"SELECT count(*) FROM orders WHERE merchant <> '{PROBE}'")
            projected = await self.count("rma-engine", f"SELECT count(*) FROM orders WHERE merchant <> '{PROBE}'")
            twice = await self.rows("rma-engine", UNITS)
        except CommandFailed:
            return
        self.samples += 1
        if stored < acknowledged:
            self.violations.add("lost", f"{acknowledged} orders were acknowledged, {stored} are stored (sample)")
        self.check_units(twice)
        self.say(f"{self.journal.total} changes acknowledged; {stored} orders stored, {stored - projected} not projected yet")

    async def pass_deadlines(self):
        """A database that a fault has stopped is tried again later."""
        try:
            await self.rows("rma-engine", PASS_DEADLINES)
        except CommandFailed:
            pass

    async def backlog(self):
        """The work that is not done yet, for example {"deliveries of exchange": 3}."""
        found = {}
        for name, (services, query) in BACKLOGS.items():
            for service in services:
                found[f"{name} of {service}"] = await self.count(service, query)
        # Counts and sums of versions: reading all orders again and again would be a load of its own.
        if await self.rows("order-intake", VERSIONS) != await self.rows("rma-engine", VERSIONS):
            found["orders to project"] = 1
        found["exchange requests"] = len(self.journal.exchanges - set(await self.rows("exchange", CONFIRMATIONS)))
        placed, known = await self.exchange_orders()
        found["exchange orders to project"] = len(placed - known)
        return {name: count for name, count in found.items() if count}

    async def drain(self):
        """Waits until everything is done."""
        deadline, left = time.monotonic() + DRAIN_SECONDS, {"not read": 1}
        while left and time.monotonic() < deadline:
            try:
                left = await self.backlog()
            except CommandFailed as error:
                left = {f"the database: {error}": 1}
            if left:
                await asyncio.sleep(2)
        for name, count in left.items():
            self.violations.add("not done", f"{name} ({count}) after {DRAIN_SECONDS} s without faults")

    async def orders(self, service):
        return {(merchant, order): int(version) for merchant, order, version in await self.rows(service, ORDERS)}

    async def exchange_orders(self):
        placed = set(await self.rows("exchange", PLACED))
        return placed, set(await self.rows("rma-engine", PROJECTED_EXCHANGES))

    def add(self, violations):
        for kind, text in violations:
            self.violations.add(kind, text)

    def check_units(self, twice):
        for unit in twice:
            self.violations.add("unit in two returns", " ".join(unit))

    async def close(self, faults):
        """The checks at the end. The faults are (kind, begin, end)."""
        self.add(checks.check_orders(self.journal.orders, await self.orders("order-intake"), "stored"))
        self.add(checks.check_orders(self.journal.orders, await self.orders("rma-engine"), "projected"))
        self.check_units(await self.rows("rma-engine", UNITS))
        confirmed = set(await self.rows("exchange", CONFIRMATIONS))
        self.add(checks.check_exchange_requests(self.journal.exchanges, confirmed))
        self.add(checks.check_exchange_orders(self.stack.receiver.exchange_orders, *await self.exchange_orders()))
        messages, settled, pending = [], {}, set()
        await self.check_guarantees()
        for service in DELIVERING:
            found = [Message(id, merchant, key, int(sequence), event)
                     for id, merchant, key, sequence, event in await self.rows(service, MESSAGES)]
            # Probes are sent once, and not all are acknowledged.
            self.add(checks.check_events(self.journal.events, service, [one for one in found if one.merchant != PROBE]))
            messages += found
            settled |= {id: Settled(state, int(number), outcome)
                        for id, state, number, outcome in await self.rows(service, SETTLED)}
            pending |= {id for (id,) in await self.rows(service, "SELECT id FROM deliveries")}
        self.check_messages(messages, settled, pending, faults)

    async def check_guarantees(self):
        found = [
            checks.Guarantee(merchant, rma, (order, line, unit), state, int(amount), is_reported == "t")
            for merchant, rma, order, line, unit, state, amount, is_reported in await self.rows("rma-engine", GUARANTEES)
        ]
        reports = await self.rows("rma-engine", REPORTS)
        messages = [Message(id, merchant, key, int(sequence), event)
                    for id, merchant, key, sequence, event in await self.rows("rma-engine", MESSAGES)]
        sums = {(merchant, state): (int(units), int(amount))
                for merchant, state, units, amount in await self.rows("rma-engine", SUMS)}
        self.add(checks.check_guarantees(found, self.journal.guarantees, reports, messages, sums))
        states = collections.Counter(one.state for one in found)
        self.totals = {f"exchanged units: {state}": count for state, count in states.items()}
        self.totals["exchanged units that were reported"] = len(reports)

    def check_messages(self, messages, settled, pending, faults):
        arrivals = self.stack.receiver.arrivals
        accepted = checks.acceptances(arrivals)
        self.add(checks.check_deliveries(messages, settled, pending, accepted))
        self.add(checks.check_committed(messages, arrivals))
        self.add(checks.check_order_of_delivery(messages, settled, arrivals, accepted))
        self.add(checks.check_repeats(accepted, faults))
        states = [end.state for end in settled.values()]
        self.totals |= {
            "messages": len(messages), "delivered": states.count("delivered"), "dead": states.count("dead"),
            "pending": len(pending), "repeated": checks.repeats(accepted), "attempts": len(arrivals),
        }
