"""The schedule of the faults: a pure function of the seed, the minutes, the kinds and the targets."""

import dataclasses
import random

# Faults of PostgreSQL and RabbitMQ take long to recover from, so they have a sequence of their own. The two
# sequences run at the same time.
SERVER_KINDS = (
    "broker-kill", "broker-wipe", "broker-alarm", "postgres-kill", "postgres-fail-over", "partition",
)
OTHER_KINDS = ("service-kill", "service-pause", "reset", "stall", "merchant", "clock")
KINDS = SERVER_KINDS + OTHER_KINDS

# Seconds between the starts of two faults of a sequence, at least and at most.
GAPS = {SERVER_KINDS: (18, 30), OTHER_KINDS: (5, 10)}
# Seconds that a fault lasts, at least and at most. A wipe and a fail-over last as long as they take.
DURATIONS = {
    "broker-kill": (0, 5), "broker-wipe": (0, 0), "broker-alarm": (3, 10), "postgres-kill": (0, 3),
    "postgres-fail-over": (0, 0), "partition": (5, 15), "service-kill": (0, 5), "service-pause": (2, 10),
    "reset": (0, 0), "stall": (5, 5), "merchant": (5, 15), "clock": (5, 20),
}
# The clock of a service jumps by this many seconds, forwards or backwards.
CLOCK_JUMPS = (-60, -20, 20, 60)
# Load runs without faults at the beginning and at the end.
LEAD_IN = 5
LEAD_OUT = 10


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    # The replica, server, node or merchant.
    target: str
    # Seconds after the beginning.
    at: float
    # Seconds that it lasts.
    duration: float
    # The jump of a clock in seconds, or the behaviour of a merchant.
    detail: str = ""

    def describe(self):
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.at:7.1f} s  {self.kind:<18} {self.target}{detail}, {self.duration:.1f} s"


@dataclasses.dataclass(frozen=True)
class Targets:
    replicas: tuple
    merchants: tuple
    nodes: tuple


def parse_kinds(text):
    """The kinds of a list such as "stall,reset", in a fixed order."""
    wanted = KINDS if text == "all" else tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in wanted if name not in KINDS]
    if unknown or not wanted:
        raise ValueError(f"unknown faults: {', '.join(unknown) or 'none given'}; known are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in wanted)


def make_schedule(seed, minutes, kinds, targets):
    """All faults, ordered by time."""
    faults = []
    for group in (SERVER_KINDS, OTHER_KINDS):
        # A text as the seed of each sequence: the choice in one does not change the other.
        generator = random.Random(f"{seed} {group[0]}")
        faults += sequence(generator, minutes * 60, [kind for kind in group if kind in kinds], GAPS[group], targets)
    return sorted(faults, key=lambda fault: fault.at)


def sequence(generator, seconds, kinds, gaps, targets):
    """The faults of one sequence. Each round has every kind once, so that a short campaign has many kinds."""
    at, left = float(LEAD_IN), []
    while kinds:
        left = left or generator.sample(kinds, len(kinds))
        kind = left.pop()
        duration = round(generator.uniform(*DURATIONS[kind]), 1)
        if at + duration > seconds - LEAD_OUT:
            return
        target, detail = choose(generator, kind, targets)
        yield Fault(kind, target, round(at, 1), duration, detail)
        at += max(duration, generator.uniform(*gaps))


def choose(generator, kind, targets):
    """The target and the detail of a fault."""
    if kind in ("service-kill", "service-pause"):
        return generator.choice(targets.replicas), ""
    if kind == "clock":
        # Only second replicas run with the library that changes their clock.
        seconds = generator.choice([name for name in targets.replicas if name.endswith(".2")])
        return seconds, str(generator.choice(CLOCK_JUMPS))
    if kind == "merchant":
        return generator.choice(targets.merchants), generator.choice(("failing", "hanging", "slow"))
    if kind in ("reset", "stall"):
        return generator.choice(("postgres", "broker")), ""
    if kind == "broker-kill":
        return generator.choice(targets.nodes + ("all",) if len(targets.nodes) > 1 else ("all",)), ""
    if kind == "partition":
        return generator.choice(targets.nodes), ""
    return ("postgres" if kind.startswith("postgres") else "broker"), ""
