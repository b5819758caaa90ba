"""The rules that hold after every campaign. Each function gets plain data and returns the violations as
(kind, text)."""

import collections
import dataclasses

# A message that was accepted this long before a fault began or after it ended may be sent again: its result was in
# flight. The first is the timeout of an attempt.
IN_FLIGHT_BEFORE, IN_FLIGHT_AFTER = 5, 10
# Faults of a merchant do not lose results, so they excuse no repeated message.
NO_EXCUSE = ("merchant",)
# Outcomes that end a message before the sixth attempt.
FINAL_OUTCOMES = ("gone", "already_exists")
ATTEMPTS = 6
# An exchange succeeds or fails at the merchant, and its deadline passes before or after a scan, so the number of these
# messages is not known in advance.
UNRETURNED = "rma.exchange_unreturned"
EXCHANGE_EVENTS = ("rma.exchange_placed", "rma.exchange_failed", UNRETURNED)


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """A message that a service has committed."""

    id: str
    merchant: str
    key: str
    sequence: int
    event: str


@dataclasses.dataclass(frozen=True, slots=True)
class Settled:
    """The end of a message in the log of attempts: `state` is "delivered", "dead" or empty."""

    state: str
    attempts: int
    outcome: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Guarantee:
    """The guarantee of an exchanged unit as its return shows it."""

    merchant: str
    rma: str
    # Order, line and number.
    unit: tuple
    state: str
    amount: int
    is_reported: bool


def check_orders(acknowledged, found, place):
    """Every acknowledged order is there with the version of its last acknowledged snapshot, and no other."""
    for order, version in acknowledged.items():
        if order not in found:
            yield "lost", f"order {'/'.join(order)} is not {place}"
        elif found[order] != version:
            yield "lost", f"order {'/'.join(order)} is {place} with version {found[order]} instead of {version}"
    for order in found.keys() - acknowledged.keys():
        yield "extra", f"order {'/'.join(order)} is {place}, but nobody sent it"


def check_events(expected, service, messages):
    """The messages under an ordering key are those of the acknowledged changes: each once, none other."""
    found = collections.defaultdict(collections.Counter)
    for message in messages:
        found[message.merchant, message.key][message.event] += 1
    wanted = {(merchant, key): events for (of, merchant, key), events in expected.items() if of == service}
    for place in wanted.keys() | found.keys():
        if service == "exchange":
            continue
        events = {event: count for event, count in found[place].items() if event not in EXCHANGE_EVENTS}
        for event in wanted.get(place, {}).keys() | events.keys():
            before, after = wanted.get(place, {}).get(event, 0), events.get(event, 0)
            if after < before:
                yield "lost", f"{service} {'/'.join(place)} has {after} messages {event} for {before} changes"
            if after > before:
                yield "repeated change", f"{service} {'/'.join(place)} has {after} messages {event} for {before} changes"


def acceptances(arrivals):
    """Message id -> times at which the merchant accepted it."""
    accepted = collections.defaultdict(list)
    for arrival in arrivals:
        if 200 <= arrival.status < 300:
            accepted[arrival.id].append(arrival.responded_at)
    return accepted


def check_deliveries(messages, settled, pending, accepted):
    """Every message was delivered, is dead after six attempts, or is pending."""
    for message in messages:
        name = f"{message.merchant}/{message.key} {message.event} {message.id}"
        end = settled.get(message.id, Settled("", 0))
        if message.id in pending:
            continue
        if end.state == "delivered" and message.id not in accepted:
            yield "lost", f"{name} is delivered, but the merchant has not accepted it"
        elif end.state == "dead" and end.attempts != ATTEMPTS and end.outcome not in FINAL_OUTCOMES:
            yield "lost", f"{name} is dead after {end.attempts} attempts"
        elif end.state not in ("delivered", "dead"):
            yield "lost", f"{name} is neither delivered nor dead nor pending"


def check_committed(messages, arrivals):
    """Merchants received only messages that are committed."""
    known = {message.id for message in messages}
    for arrival in arrivals:
        if arrival.id not in known:
            yield "never committed", f"{arrival.merchant} received {arrival.event} {arrival.id}"
            known.add(arrival.id)


def check_order_of_delivery(messages, settled, arrivals, accepted):
    """A message arrives after all before it of its ordering key were accepted or are dead."""
    first_accepted = {id: min(times) for id, times in accepted.items()}
    keys = collections.defaultdict(list)
    for message in messages:
        keys[message.merchant, message.key].append(message)
    before = {}
    for found in keys.values():
        found.sort(key=lambda message: message.sequence)
        for position, message in enumerate(found):
            before[message.id] = found[:position]
    for arrival in arrivals:
        for earlier in before.get(arrival.id, ()):
            if settled.get(earlier.id, Settled("", 0)).state == "dead":
                continue
            if first_accepted.get(earlier.id, float("inf")) > arrival.arrived_at:
                yield "overtaken", f"{earlier.merchant}/{earlier.key}: {arrival.event} arrived before {earlier.event} was accepted"


def check_repeats(accepted, faults):
    """A merchant accepts a message twice only if the first result was in flight when a fault happened. The faults
    are (kind, begin, end)."""
    windows = [(begin - IN_FLIGHT_BEFORE, end + IN_FLIGHT_AFTER) for kind, begin, end in faults if kind not in NO_EXCUSE]
    for id, times in accepted.items():
        times = sorted(times)
        for first, second in zip(times, times[1:]):
            if not any(begin <= first <= end for begin, end in windows):
                yield "repeated", f"{id} was accepted {second - first:.1f} s after it had been, without a fault"


def repeats(accepted):
    """How many times a message was accepted again."""
    return sum(len(times) - 1 for times in accepted.values())


def check_exchange_requests(requested, confirmed):
    """The exchange service has every return that requests an exchange."""
    for request in requested - confirmed:
        yield "lost", f"the exchange of {'/'.join(request)} did not reach the exchange service"


def check_exchange_orders(accepted_by_order, placed, projected):
    """There is one exchange order for each original order, and the RMA engine knows all that were placed."""
    for order, ids in accepted_by_order.items():
        if len(ids) > 1:
            yield "two exchange orders", f"order {'/'.join(order)} has {len(ids)}"
    for order in placed ^ projected:
        service = "exchange" if order in placed else "the RMA engine"
        yield "lost", f"only {service} knows the exchange order of {'/'.join(order)}"


def check_guarantees(guarantees, expected, reports, messages, sums):
    """Each exchanged unit whose deadline passed was reported once, or never if it came back or was waived before. The
    reports are (merchant, return, order, line, number) from the timelines, and the sums (merchant, state) -> (units, amount)."""
    reported = collections.Counter((merchant, rma, tuple(unit)) for merchant, rma, *unit in reports)
    for guarantee in guarantees:
        name = f"{guarantee.merchant}/{guarantee.rma} {'/'.join(guarantee.unit)}"
        state = expected.get((guarantee.merchant, guarantee.rma), "due")
        times = reported.pop((guarantee.merchant, guarantee.rma, guarantee.unit), 0)
        if times > 1:
            yield "due twice", f"{name} was reported {times} times"
        if guarantee.state != state:
            yield "guarantee", f"{name} is {guarantee.state} instead of {state}"
        if guarantee.is_reported != (times > 0) or (state == "due" and not times):
            yield "lost", f"{name} is {guarantee.state}, but was reported {times} times"
    for merchant, rma, unit in reported:
        yield "extra", f"{merchant}/{rma} {'/'.join(unit)} was reported without a guarantee"
    yield from check_unreturned_messages(reports, messages)
    yield from check_sums(guarantees, sums)


def check_unreturned_messages(reports, messages):
    """The merchant gets one message for each return with a report; a return of the campaign has one unit."""
    told = collections.Counter((message.merchant, message.key) for message in messages if message.event == UNRETURNED)
    noted = collections.Counter((merchant, f"rma:{rma}") for merchant, rma, *_unit in reports)
    for place in told.keys() | noted.keys():
        if told[place] != noted[place]:
            yield "lost", f"{'/'.join(place)} has {told[place]} messages {UNRETURNED} for {noted[place]} reports"


def check_sums(guarantees, sums):
    """The sums by state are those of the units."""
    wanted = collections.defaultdict(lambda: (0, 0))
    for one in guarantees:
        units, amount = wanted[one.merchant, one.state]
        wanted[one.merchant, one.state] = units + 1, amount + one.amount
    for place in wanted.keys() | sums.keys():
        if wanted[place] != sums.get(place, (0, 0)):
            yield "sum", f"{' '.join(place)}: {sums.get(place, (0, 0))} instead of {wanted[place]}"
