import dataclasses
import unittest
from collections import Counter

import checks
from checks import Guarantee, Message, Settled
from receiver import Arrival


def message(id, sequence, event="rma.created", key="rma:1"):
    return Message(id, "acme", key, sequence, event)


def arrival(id, arrived_at, status=200, took=0.1):
    return Arrival("acme", id, 0, "rma.created", arrived_at, status, arrived_at + took)


def kinds(violations):
    return [kind for kind, _text in violations]


class Orders(unittest.TestCase):
    def test_each_difference_is_found(self):
        sent = {("acme", "1"): 10, ("acme", "2"): 20}
        self.assertEqual(kinds(checks.check_orders(sent, dict(sent), "stored")), [])
        self.assertEqual(kinds(checks.check_orders(sent, {("acme", "1"): 10}, "stored")), ["lost"])
        self.assertEqual(kinds(checks.check_orders(sent, sent | {("acme", "2"): 19}, "stored")), ["lost"])
        self.assertEqual(kinds(checks.check_orders(sent, sent | {("acme", "3"): 1}, "stored")), ["extra"])


class Events(unittest.TestCase):
    expected = {("rma-engine", "acme", "rma:1"): Counter(["rma.created", "rma.canceled"])}

    def check(self, *events):
        messages = [message(str(number), number, event) for number, event in enumerate(events)]
        return kinds(checks.check_events(self.expected, "rma-engine", messages))

    def test_each_change_has_one_message(self):
        self.assertEqual(self.check("rma.created", "rma.canceled"), [])
        self.assertEqual(self.check("rma.created"), ["lost"])
        self.assertEqual(self.check("rma.created", "rma.canceled", "rma.canceled"), ["repeated change"])
        self.assertEqual(self.check("rma.created", "rma.canceled", "rma.refunded"), ["repeated change"])

    def test_the_outcome_of_an_exchange_is_open(self):
        self.assertEqual(self.check("rma.created", "rma.canceled", "rma.exchange_placed"), [])

    def test_other_services_do_not_count(self):
        self.assertEqual(kinds(checks.check_events(self.expected, "warehouse-notifier", [])), [])


class Deliveries(unittest.TestCase):
    def check(self, settled, pending=(), arrivals=()):
        return kinds(checks.check_deliveries([message("a", 1)], settled, set(pending), checks.acceptances(arrivals)))

    def test_a_message_is_delivered_dead_or_pending(self):
        self.assertEqual(self.check({"a": Settled("delivered", 1)}, arrivals=[arrival("a", 1)]), [])
        self.assertEqual(self.check({"a": Settled("dead", 6)}), [])
        self.assertEqual(self.check({"a": Settled("dead", 1, "already_exists")}), [])
        self.assertEqual(self.check({}, pending=["a"]), [])

    def test_any_other_message_is_lost(self):
        self.assertEqual(self.check({}), ["lost"])
        self.assertEqual(self.check({"a": Settled("", 3)}), ["lost"])
        self.assertEqual(self.check({"a": Settled("dead", 5)}), ["lost"])
        self.assertEqual(self.check({"a": Settled("delivered", 1)}), ["lost"])
        self.assertEqual(self.check({"a": Settled("delivered", 1)}, arrivals=[arrival("a", 1, 500)]), ["lost"])

    def test_a_message_that_is_not_in_the_database_is_found_once(self):
        found = kinds(checks.check_committed([message("a", 1)], [arrival("a", 1), arrival("b", 1), arrival("b", 2)]))
        self.assertEqual(found, ["never committed"])


class OrderOfDelivery(unittest.TestCase):
    def check(self, *arrivals, settled=None, other_key=False):
        messages = [message("a", 1), message("b", 2, key="rma:2" if other_key else "rma:1")]
        accepted = checks.acceptances(arrivals)
        return kinds(checks.check_order_of_delivery(messages, settled or {}, arrivals, accepted))

    def test_messages_of_a_key_follow_each_other(self):
        self.assertEqual(self.check(arrival("a", 1), arrival("b", 2)), [])
        self.assertEqual(self.check(arrival("a", 1, 500), arrival("a", 2), arrival("b", 3)), [])

    def test_an_overtaken_message_is_found(self):
        self.assertEqual(self.check(arrival("b", 1), arrival("a", 2)), ["overtaken"])
        self.assertEqual(self.check(arrival("a", 1, 500), arrival("b", 2)), ["overtaken"])
        self.assertEqual(self.check(arrival("a", 1, took=5), arrival("b", 2)), ["overtaken"])

    def test_a_dead_message_holds_no_other(self):
        self.assertEqual(self.check(arrival("a", 1, 500), arrival("b", 2), settled={"a": Settled("dead", 6)}), [])

    def test_other_keys_are_independent(self):
        self.assertEqual(self.check(arrival("b", 1), arrival("a", 2), other_key=True), [])


class Repeats(unittest.TestCase):
    def check(self, faults, *times):
        return kinds(checks.check_repeats({"a": list(times)}, faults))

    def test_a_repeat_needs_a_fault_at_the_first_acceptance(self):
        self.assertEqual(self.check([], 100), [])
        self.assertEqual(self.check([], 100, 101), ["repeated"])
        self.assertEqual(self.check([("service-kill", 101, 102)], 100, 120), [])
        self.assertEqual(self.check([("service-kill", 120, 121)], 100, 121), ["repeated"])
        self.assertEqual(self.check([("service-kill", 101, 102)], 100, 120, 140), ["repeated"])

    def test_a_merchants_fault_is_no_excuse(self):
        self.assertEqual(self.check([("merchant", 99, 101)], 100, 101), ["repeated"])

    def test_they_are_counted(self):
        self.assertEqual(checks.repeats({"a": [1, 2, 3], "b": [1]}), 2)


class ExchangeOrders(unittest.TestCase):
    def test_each_request_reaches_the_exchange_service(self):
        request = ("acme", "1", "RMA-1")
        self.assertEqual(kinds(checks.check_exchange_requests({request}, {request})), [])
        self.assertEqual(kinds(checks.check_exchange_requests({request}, set())), ["lost"])

    def test_an_order_has_one(self):
        order = ("acme", "1")
        self.assertEqual(kinds(checks.check_exchange_orders({order: {"a"}}, {order}, {order})), [])
        self.assertEqual(kinds(checks.check_exchange_orders({order: {"a", "b"}}, {order}, {order})), ["two exchange orders"])
        self.assertEqual(kinds(checks.check_exchange_orders({}, {order}, set())), ["lost"])
        self.assertEqual(kinds(checks.check_exchange_orders({}, set(), {order})), ["lost"])


class Guarantees(unittest.TestCase):
    def check(self, state, expected, reports, messages=None, sums=None, is_reported=None):
        unit = ("A", "L", "1")
        is_reported = bool(reports) if is_reported is None else is_reported
        guarantee = Guarantee("acme", "1", unit, state, 500, is_reported)
        messages = reports if messages is None else messages
        sums = {("acme", state): (1, 500)} if sums is None else sums
        found = checks.check_guarantees(
            [guarantee], expected, [("acme", "1", *unit)] * reports,
            [message(str(number), number, checks.UNRETURNED) for number in range(messages)], sums,
        )
        return kinds(found)

    def test_a_unit_that_does_not_come_back_is_reported_once(self):
        self.assertEqual(self.check("due", {}, 1), [])
        self.assertEqual(self.check("due", {}, 2), ["due twice"])
        self.assertEqual(self.check("due", {}, 0), ["lost"])
        self.assertEqual(self.check("open", {}, 0), ["guarantee", "lost"])
        self.assertEqual(self.check("due", {}, 1, is_reported=False), ["lost"])

    def test_a_unit_that_comes_back_is_reported_before_or_never(self):
        for state in ("met", "waived"):
            expected = {("acme", "1"): state}
            self.assertEqual(self.check(state, expected, 0), [])
            self.assertEqual(self.check(state, expected, 1), [])
            self.assertEqual(self.check("due", expected, 1), ["guarantee"])

    def test_each_report_is_a_message_of_a_guarantee(self):
        self.assertEqual(self.check("due", {}, 1, messages=2), ["lost"])
        self.assertEqual(self.check("due", {}, 1, messages=0), ["lost"])
        found = checks.check_guarantees([], {}, [("acme", "1", "A", "L", "1")], [message("a", 1, checks.UNRETURNED)], {})
        self.assertEqual(kinds(found), ["extra"])

    def test_sums_are_those_of_the_units(self):
        self.assertEqual(self.check("due", {}, 1, sums={("acme", "due"): (1, 499)}), ["sum"])
        self.assertEqual(self.check("due", {}, 1, sums={}), ["sum"])


class Data(unittest.TestCase):
    def test_an_arrival_without_a_response_is_no_acceptance(self):
        gone = dataclasses.replace(arrival("a", 1), status=0)
        self.assertEqual(checks.acceptances([gone]), {})


if __name__ == "__main__":
    unittest.main()
