"""Compares decisions about returns with a second, slow implementation, for random rules and orders.

  return_policies.py PROGRAM [CASES] [SEED]

PROGRAM is the example `decide_returns` of the crate `domain`. Each case is a return of one to three units. The quote (the
decision about the return) and the list (the choices of each unit) have to agree with this file, and with each other.
"""

import fnmatch
import hashlib
import json
import math
import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

METHODS = ["mail-back", "express-returns", "customer-keep"]
OUTCOMES = ["refund", "exchange", "gift_card"]
REASONS = {"SMALL": True, "DAMAGED": True, "OTHER": False}
TAGS = ["sale", "Sale ", "bulky", "vip", "FinalSale", " GRÖẞE", "ΟΔΟΣ"]
EMAILS = ["ada@shop.example", "Eve@shop.example", None]
ZONES = ["UTC", "America/New_York", "Asia/Tokyo"]
ADDRESS = {"name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501"}
WAREHOUSES = {"reno": {"address": ADDRESS}, "west": {"address": ADDRESS}}
CASES_OF_A_POLICY = 20
# Cases of one call of the program.
CASES_OF_A_PART = 5000
BUILT_IN_TAGS = ["finalsale", "gift-card", "thirdparty"]


def digest(email):
    return hashlib.sha256(email.strip().lower().encode()).hexdigest()


# ---- random policies and orders ----

def some(rng, values):
    return rng.sample(values, rng.randint(1, len(values)))


def bounds(rng, values, low="min", high="max"):
    first, second = sorted(rng.choices(values, k=2))
    return rng.choice([{low: first}, {high: second}, {low: first, high: second}])


def random_conditions(rng):
    makers = {
        "line_tags": lambda: some(rng, ["sale", "bulky", "new", "Größe", "οδος"]),
        "order_tags": lambda: some(rng, ["VIP", "gift"]),
        "skus": lambda: some(rng, ["TENT-*", "*-M", "SHIRT-L", "*H*R*", "*"]),
        "unit_price": lambda: bounds(rng, [999, 1000, 2500, 6000], "min_cents", "max_cents")
        | rng.choice([{}, {"currency": "EUR"}, {"currency": "USD"}]),
        "weight": lambda: bounds(rng, [0, 1, 2.5]),
        "countries": lambda: some(rng, ["US", "DE", "AT"]),
        "ordered": lambda: bounds(rng, ["2026-10-31", "2026-11-01", "2026-11-10"], "from", "until"),
        "days_since_order": lambda: bounds(rng, [0, 5, 14, 30]),
        "days_since_shipping": lambda: bounds(rng, [0, 5, 14, 30]),
        "days_since_delivery": lambda: bounds(rng, [0, 5, 14, 30]),
        "reasons": lambda: some(rng, [*REASONS]),
        "methods": lambda: some(rng, METHODS),
        "outcomes": lambda: some(rng, OUTCOMES),
        "concepts": lambda: some(rng, ["Outlet", "Main"]),
        "returns_of_shopper": lambda: {"days": rng.choice([1, 30])} | bounds(rng, [0, 1, 2]),
        "shoppers": lambda: some(rng, ["blocked", "trusted"]),
    }
    return {name: makers[name]() for name in rng.sample([*makers], rng.choice([0, 1, 1, 2, 3]))}


def random_effects(rng):
    def costs():
        pairs = {(rng.choice([None, *METHODS]), rng.choice([None, "USD", "EUR"])) for _ in range(rng.randint(1, 3))}
        return [{"method": method, "currency": currency, "shipping_cost_cents": rng.choice([0, 300, 900])}
                for method, currency in sorted(pairs, key=str)]

    makers = {
        "returnable": lambda: rng.random() < 0.5,
        "window": lambda: rng.choice([
            {"days": rng.choice([0, 10, 20])},
            {"days": 10, "from": rng.choice(["order", "shipping", "delivery"])},
            {"until": rng.choice(["2026-11-05", "2026-11-20"])},
            {"days": 14, "until": "2026-11-19"},
        ]),
        "costs": costs,
        "methods": lambda: some(rng, METHODS),
        "outcomes": lambda: some(rng, OUTCOMES),
        "keep": lambda: {"up_to_cents": rng.choice([0, 1500, 6000])} | rng.choice([{}, {"currency": "EUR"}]),
        "gift_card_bonus_percent": lambda: rng.choice([0, 10]),
        "exchange_bonus_percent": lambda: rng.choice([0, 5]),
        "review": lambda: rng.choice([{"required": False}, {"within_days": rng.choice([1, 3]), "then": rng.choice(["approve", "decline"])}]),
        "return_to": lambda: rng.choice([*WAREHOUSES]),
    }
    return {name: makers[name]() for name in rng.sample([*makers], rng.choice([1, 1, 2, 4]))}


def random_settings(rng):
    settings = {
        "time_zone": rng.choice(ZONES), "currency": rng.choice(["USD", "EUR"]), "return_window_days": rng.choice([5, 14]),
        "final_sale_tags": rng.choice([[], ["bulky"]]), "express_max_weight": rng.choice([None, 2]),
        "concept": rng.choice([None, "Main"]),
        "returns": {
            "reasons": [{"code": code, "label": code, "offers_exchange": offers} for code, offers in REASONS.items()],
            "methods": [{"method": method, "shipping_cost_cents": cents} for method, cents in zip(METHODS, [700, 300, 0])],
            "free_exchange_shipping": rng.random() < 0.5, "gift_card": {"sku": "GIFT"},
        },
        "policy": {
            "rules": [{"id": f"r{index}", "when": random_conditions(rng), "then": random_effects(rng)}
                      for index in range(rng.choice([0, 1, 3, 6]))],
            "shoppers": {"blocked": [digest("eve@shop.example")], "trusted": [digest("ada@shop.example")]},
        },
    }
    return {name: value for name, value in settings.items() if value is not None}


def random_time(rng, until):
    return until - timedelta(minutes=rng.randint(0, 40 * 24 * 60))


def text_of(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def random_line(rng, number, now):
    price = rng.choice([999, 1000, 2500, 6000])
    return {
        "identifier": f"L{number}", "sku": rng.choice(["TENT-M", "SHIRT-L", "SHIRT-M", None]), "upc": "0123",
        "quantity": 1, "quantity_shipped": 1, "quantity_canceled": 0,
        "shipped_date": rng.choice([None, text_of(random_time(rng, now))]),
        "delivered_date": rng.choice([None, text_of(random_time(rng, now))]),
        "product_identifier": "P", "title": "Product", "tags": rng.choice([[], [], some(rng, TAGS)]),
        "product_amount_cents": price, "tax_amount_cents": 0, "discount_amount_cents": 0,
        "unit_price_amount_cents": price, "weight": rng.choice([None, 0.5, 2, 2.5]),
        "concept": rng.choice([None, "", "Outlet"]),
    }


def random_case(rng):
    now = datetime(2026, 11, 19, tzinfo=timezone.utc) + timedelta(minutes=rng.randint(-3000, 3000))
    email = rng.choice(EMAILS)
    address = {"name": "A", "street1": "S", "city": "C", "country_code": rng.choice(["US", "DE", "FR"])}
    lines = [random_line(rng, number, now) for number in range(rng.randint(1, 2))]
    order = {
        "identifier": "A-1", "status": rng.choice(["Shipped"] * 9 + ["Cancelled"]), "currency": rng.choice(["USD", "EUR"]),
        "tags": rng.choice([[], ["vip"], ["gift", "x"]]), "concept": rng.choice([None, "Outlet", "Main"]),
        "created_at": text_of(random_time(rng, now)), "updated_at": text_of(now), "items": lines,
        "customer": {"identifier": "c-1", "email": email}, "shipping_address": address, "billing_address": address,
        "refunds": [],
    } | {name: 0 for name in ["total_amount_cents", "product_amount_cents", "tax_amount_cents", "discount_amount_cents",
                              "shipping_amount_cents", "shipping_tax_amount_cents"]}
    exchanged = rng.random() < 0.1
    units = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        line = rng.randrange(len(lines))
        reason = rng.choice([*REASONS])
        possible = ["refund", *(["exchange"] if REASONS[reason] else []), "gift_card"]
        units.append({
            "line": line, "is_shipped": rng.random() < 0.95, "rma_identifier": "RMA-1" if rng.random() < 0.05 else None,
            "is_refunded": rng.random() < 0.05, "is_order_exchanged": exchanged,
            "paid_amount_cents": lines[line]["unit_price_amount_cents"] - rng.choice([0, 1]), "has_variants": True,
            "reason": reason, "outcome": rng.choice(possible),
        })
    returned_at = [text_of(random_time(rng, now)) for _ in range(rng.choice([0, 1, 2]))] if email else None
    return {"now": text_of(now), "order": order, "returned_at": returned_at, "method": rng.choice(METHODS),
            "order_kept_cents": rng.choice([0, 0, 1, 1500]), "units": units}


# ---- the second implementation ----

@lru_cache(maxsize=1000)
def parse_time(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


class Decider:
    def __init__(self, settings, case):
        self.settings, self.case, self.order = settings, case, case["order"]
        self.zone, self.now = ZoneInfo(settings["time_zone"]), parse_time(case["now"])
        self.rules = settings["policy"]["rules"]

    def day(self, time):
        return (parse_time(time) if isinstance(time, str) else time).astimezone(self.zone).date()

    def holds(self, when, line, reason, method, outcome):
        order, settings = self.order, self.settings
        email = order["customer"]["email"]
        tags = [{tag.strip().lower() for tag in tags} for tags in (line["tags"], order["tags"])]
        concept = next((it for it in (line["concept"], order["concept"], settings.get("concept")) if it), None)

        def within(value, low="min", high="max", of=None):
            limits = of if of is not None else limit
            return value is not None and limits.get(low, value) <= value <= limits.get(high, value)

        def days_since(time):
            return None if time is None else (self.day(self.now) - self.day(time)).days

        for name, limit in when.items():
            match name:
                case "line_tags" | "order_tags":
                    ok = bool({it.strip().lower() for it in limit} & tags[name == "order_tags"])
                case "skus":
                    ok = any(fnmatch.fnmatchcase(line["sku"] or line["upc"], it) for it in limit)
                case "unit_price":
                    ok = (order["currency"] == limit.get("currency", settings["currency"])
                          and within(line["unit_price_amount_cents"], "min_cents", "max_cents"))
                case "weight":
                    ok = within(line["weight"])
                case "countries":
                    ok = order["shipping_address"]["country_code"] in limit
                case "ordered":
                    ok = within(self.day(order["created_at"]).isoformat(), "from", "until")
                case "days_since_order":
                    ok = within(days_since(order["created_at"]))
                case "days_since_shipping":
                    ok = within(days_since(line["shipped_date"]))
                case "days_since_delivery":
                    ok = within(days_since(line["delivered_date"]))
                case "reasons":
                    ok = reason in limit
                case "methods":
                    ok = method in limit
                case "outcomes":
                    ok = outcome in limit
                case "concepts":
                    ok = concept in limit
                case "returns_of_shopper":
                    times = self.case["returned_at"]
                    since = self.now - timedelta(days=limit["days"])
                    ok = times is not None and within(sum(since < parse_time(it) <= self.now for it in times))
                case "shoppers":
                    lists = settings["policy"]["shoppers"]
                    ok = email is not None and any(digest(email) in lists[it] for it in limit)
            if not ok:
                return False
        return True

    def first(self, matching, effect):
        """The effect of the first matching rule that names it, and the rule."""
        return next(((rule["then"][effect], rule["id"]) for rule in matching if effect in rule["then"]), (None, None))

    def rule_cost(self, rule, method):
        for cost in rule["then"].get("costs", []):
            cents, own = cost["shipping_cost_cents"], cost["currency"]
            is_currency = own == self.order["currency"] if own else (
                cents == 0 or self.order["currency"] == self.settings["currency"])
            if is_currency and cost["method"] in (None, method):
                return cents
        return None

    def end_of(self, day):
        midnight = datetime(day.year, day.month, day.day, tzinfo=self.zone) + timedelta(days=1)
        return midnight.astimezone(timezone.utc)

    def window_end(self, window, line):
        starts = [self.order["created_at"], line["shipped_date"], line["delivered_date"]]
        ends = []
        if "days" in window:
            last = ["order", "shipping", "delivery"].index(window.get("from", "shipping"))
            start = next(it for it in reversed(starts[:last + 1]) if it is not None)
            ends.append(self.end_of(self.day(start) + timedelta(days=window["days"])))
        if "until" in window:
            ends.append(self.end_of(date.fromisoformat(window["until"])))
        return max(ends)

    def unit(self, unit, reason, method, outcome, paid):
        line = self.order["items"][unit["line"]]
        matching = [rule for rule in self.rules if self.holds(rule["when"], line, reason, method, outcome)]
        window, window_rule = self.first(matching, "window")
        end = self.window_end(window or {"days": self.settings["return_window_days"]}, line)
        costs = ((self.rule_cost(rule, method), rule["id"]) for rule in matching)
        cost = next(((cents, rule) for cents, rule in costs if cents is not None), None)
        bonus = {"gift_card": "gift_card_bonus_percent", "exchange": "exchange_bonus_percent"}.get(outcome)
        percent, bonus_rule = self.first(matching, bonus)
        review, review_rule = self.first(matching, "review")
        keep, _ = self.first(matching, "keep")
        warehouse, warehouse_rule = self.first(matching, "return_to")
        code, rule = self.refusal(unit, line, matching, method, outcome, paid, end, window_rule)
        return {
            "code": code, "rule": rule, "window_ends_at": int(end.timestamp()), "cost": cost,
            "keep_up_to": keep["up_to_cents"] if keep and method == "customer-keep" else None,
            "bonus": [percent, bonus_rule] if bonus_rule else None,
            "review": [review["within_days"], review["then"], review_rule] if review and "then" in review else None,
            "return_to": {"warehouse": warehouse, "rule": warehouse_rule} if warehouse and method != "customer-keep" else None,
        }

    def refusal(self, unit, line, matching, method, outcome, paid, end, window_rule):
        settings = self.settings
        facts = [
            ("order_cancelled", self.order["status"] == "Cancelled"),
            ("not_shipped", not unit["is_shipped"]),
            ("already_returned", unit["rma_identifier"]),
            ("already_refunded", unit["is_refunded"]),
            ("already_exchanged", unit["is_order_exchanged"] and outcome != "refund"),
            ("too_heavy_for_express", method == "express-returns" and line["weight"] is not None
             and line["weight"] > settings.get("express_max_weight", 1e9)),
        ]
        for code, is_so in facts:
            if is_so:
                return code, None
        returnable, rule = self.first(matching, "returnable")
        if rule and not returnable:
            return "not_returnable", rule
        forbidden = {tag.strip().lower() for tag in BUILT_IN_TAGS + settings["final_sale_tags"]}
        if not rule and forbidden & {tag.strip().lower() for tag in line["tags"]}:
            return "final_sale", None
        if self.now >= end:
            return "window_expired", window_rule
        for code, effect, choice in [("outcome_not_offered", "outcomes", outcome), ("method_not_offered", "methods", method)]:
            offered, rule = self.first(matching, effect)
            if rule and choice not in offered:
                return code, rule
        if method == "customer-keep":
            keep, rule = self.first(matching, "keep")
            if not rule:
                return "keep_not_allowed", None
            if self.order["currency"] != keep.get("currency", settings["currency"]) or paid > keep["up_to_cents"]:
                return "keep_not_allowed", rule
        return None, None

    def settings_cost(self, method, is_free):
        is_own = self.order["currency"] == self.settings["currency"]
        return 0 if is_free or not is_own else {"mail-back": 700, "express-returns": 300, "customer-keep": 0}[method]

    def decide(self):
        method, units = self.case["method"], self.case["units"]
        paid = self.case["order_kept_cents"] + sum(unit["paid_amount_cents"] for unit in units)
        decided = [self.unit(unit, unit["reason"], method, unit["outcome"], paid) for unit in units]
        is_free = self.settings["returns"]["free_exchange_shipping"] and all(it["outcome"] != "refund" for it in units)
        costs = [unit.pop("cost") or (self.settings_cost(method, is_free), None) for unit in decided]
        highest = max(cents for cents, _ in costs)
        order = [rule["id"] for rule in self.rules]
        reviews = [review for review in (unit.pop("review") for unit in decided) if review]
        for unit in decided:
            unit.pop("keep_up_to")
        return_to = self.destination(decided)
        # The first rule with the highest cost.
        rule = next((rule for cents, rule in costs if cents == highest and rule), None)
        for own, unit in zip(decided, units):
            own["choices"] = self.choices(unit)
            own["is_returnable"] = any(it["ineligible"] is None for it in own["choices"].values())
        return {"cost": [highest, rule], "review": min(reviews, key=lambda it: order.index(it[2]), default=None),
                "return_to": return_to, "units": decided}

    def destination(self, decided):
        """The place of the first unit that can be returned. Refuses the units that go elsewhere."""
        places = [unit.pop("return_to") for unit in decided]
        possible = [(unit, place) for unit, place in zip(decided, places) if unit["code"] is None]
        first = possible[0][1] if possible else None
        for unit, place in possible:
            if (place or {}).get("warehouse") != (first or {}).get("warehouse"):
                unit["code"], unit["rule"] = "other_warehouse", (place or first)["rule"]
        return first

    def choices(self, unit):
        """By reason, outcome and method: the terms if the unit is returned alone."""
        choices = {}
        for reason, offers_exchange in REASONS.items():
            for outcome in OUTCOMES:
                if outcome == "exchange" and not offers_exchange or outcome != "refund" and unit["is_order_exchanged"]:
                    continue
                for method in METHODS:
                    kept = self.case["order_kept_cents"]
                    one = self.unit(unit, reason, method, outcome, kept + unit["paid_amount_cents"])
                    is_free = self.settings["returns"]["free_exchange_shipping"] and outcome != "refund"
                    cents, rule = one["cost"] or (self.settings_cost(method, is_free), None)
                    choices[reason, outcome, method] = {
                        "ineligible": (one["code"], one["rule"]) if one["code"] else None, "cost": [cents, rule],
                        "bonus": one["bonus"] and one["bonus"][0],
                        "keep_up_to": None if one["keep_up_to"] is None else max(0, one["keep_up_to"] - kept),
                        "return_to": one["return_to"],
                    }
        return choices


def expand(unit, has_rules):
    """The choices of a list by reason, outcome and method. `None` without rules, which need no choices."""
    if not has_rules:
        return None
    choices = {}
    named = {reason for entry in unit["choices"] for reason in entry.get("reasons", [])}
    for entry in unit["choices"]:
        for reason in entry.get("reasons") or [reason for reason in REASONS if reason not in named]:
            for option in entry["options"]:
                refusal = option.get("ineligible")
                if option["outcome"] == "exchange" and not REASONS[reason]:
                    continue
                choices[reason, option["outcome"], option["method"]] = {
                    "ineligible": (refusal["code"], refusal.get("rule")) if refusal else None,
                    "cost": [option["return_shipping_cost_cents"], option.get("cost_rule")],
                    "bonus": option.get("bonus_percent"), "keep_up_to": option.get("keep_up_to_cents"),
                    "return_to": option.get("return_to"),
                }
    return choices


def compare(settings, case, found):
    expected = Decider(settings, case).decide()
    has_rules = bool(settings["policy"]["rules"])
    for unit, wanted in zip(found["units"], expected["units"]):
        unit["choices"] = expand(unit, has_rules)
        if not has_rules:
            wanted["choices"] = None
    if found != expected:
        sys.exit(f"the decisions differ\nsettings: {json.dumps(settings)}\ncase: {json.dumps(case)}\n"
                 f"found:    {found}\nexpected: {expected}")


def check(program, cases, seed):
    """Compares random cases. Returns the number of them, and of those that were refused."""
    rng = random.Random(seed)
    refused = decided = 0
    groups = []
    for _ in range(max(1, cases // CASES_OF_A_POLICY)):
        groups.append({"settings": random_settings(rng), "warehouses": WAREHOUSES, "cases": [random_case(rng) for _ in range(CASES_OF_A_POLICY)]})
    lines = "\n".join(json.dumps(group) for group in groups)
    process = subprocess.run([program], input=lines, capture_output=True, text=True, check=False)
    if process.returncode:
        sys.exit(f"{program} failed: {process.stderr}")
    for group, decisions in zip(groups, process.stdout.splitlines(), strict=True):
        for case, found in zip(group["cases"], json.loads(decisions), strict=True):
            compare(group["settings"], case, found)
            decided += 1
            refused += any(unit["code"] for unit in found["units"])
    return decided, refused


def main(program, cases="2000", seed="1"):
    """Every core checks one part after the other. The random numbers of a part depend on the seed and its place."""
    parts = math.ceil(int(cases) / CASES_OF_A_PART)
    size = math.ceil(int(cases) / parts)
    with ProcessPoolExecutor() as pool:
        results = [pool.submit(check, program, size, f"{seed}/{part}") for part in range(parts)]
        counts = [result.result() for result in results]
    decided, refused = map(sum, zip(*counts))
    print(f"{decided} returns were decided alike, {refused} of them refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
