"""The journal: every acknowledged change, appended to a file before it counts."""

import collections
import json
import time


class Journal:
    """Keeps the totals that the checks compare with the databases."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        # (merchant, order) -> version of the newest acknowledged snapshot, in milliseconds.
        self.orders = {}
        # (service, merchant, ordering key) -> how many messages of each event the changes cause.
        self.events = collections.defaultdict(collections.Counter)
        # (merchant, order, line, unit) -> the return that has the unit.
        self.units = {}
        # (merchant, order, return) of every return that requests an exchange.
        self.exchanges = set()
        # (merchant, return) -> the state that the guarantees of exchanged units must have in the end; "due" without one.
        self.guarantees = {}
        self.changes = collections.Counter()

    def write(self, change, count=1, **fields):
        line = {"at": round(time.time(), 3), "change": change, "count": count, **fields}
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self.file.flush()
        self.changes[change] += count

    @property
    def total(self):
        return self.changes.total()

    def order_batch(self, merchant, orders, version):
        self.write("order", len(orders), merchant=merchant, orders=orders, version=version)
        for order in orders:
            self.orders[merchant, order] = version

    def message(self, change, service, merchant, key, *events):
        """A change that causes messages under an ordering key."""
        self.write(change, merchant=merchant, key=key, events=events)
        self.events[service, merchant, key].update(events)

    def caused(self, service, merchant, key, *events):
        """Messages that another service sends because of a change that is in the journal already."""
        self.events[service, merchant, key].update(events)

    def new_return(self, merchant, rma, units):
        """Returns the units that are in another return already, which must not happen."""
        self.message("return", "rma-engine", merchant, f"rma:{rma}", "rma.created")
        taken = [unit for unit in units if self.units.get((merchant, *unit), rma) != rma]
        self.units.update({(merchant, *unit): rma for unit in units})
        return taken

    def canceled(self, merchant, rma, units):
        self.message("cancellation", "rma-engine", merchant, f"rma:{rma}", "rma.canceled")
        for unit in units:
            self.units.pop((merchant, *unit), None)
