"""The fault campaign: see README.md. Started by scripts/campaign, which sets up the servers."""

import argparse
import asyncio
import sys
import time

import merchants
import schedule
from faults import Faults
from http_client import Client, Violations
from journal import Journal
from load import Load
from probes import NAMES, Probes, recovery
from processes import Replicas
from proxy import Proxy
from receiver import Receiver, new_generator
from reconciliation import Reconciliation
from report import make_report
from servers import Broker, Postgres
from settings import SERVICES, Settings

SAMPLE_SECONDS = 20
# The deadlines of exchanged units pass at this interval.
PASS_SECONDS = 2
SHOWN_VIOLATIONS = 10


class Stack:
    """Everything that runs: servers, proxy, services and the merchants' endpoints."""

    def __init__(self, settings, violations, seed):
        self.settings = settings
        self.proxy = Proxy()
        self.postgres, self.broker = Postgres(settings, self.proxy), Broker(settings, self.proxy)
        self.replicas = Replicas(settings, violations)
        self.receiver = Receiver(settings.folder / "arrivals.ndjson", violations, new_generator(seed))
        self.client, self.probe_client = (Client(settings.urls(), violations) for _ in range(2))

    async def start(self):
        await self.proxy.start(**self.settings.proxy_ports)
        await self.postgres.start()
        await self.broker.start()
        await self.receiver.start(self.settings.receiver_port)
        await self.replicas.start()
        self.operator_token = await self.client.token(*self.settings.operator)
        *self.merchants, probe = await merchants.create_merchants(
            self.client, self.receiver, self.settings.receiver_port, self.settings.operator,
        )
        await merchants.await_merchants(self.client, [*self.merchants, probe])
        self.probes = Probes(self.probe_client, self.receiver, probe)

    async def stop(self):
        await self.replicas.stop()
        await self.proxy.stop()


def say(text):
    print(f"    {text}", file=sys.stderr, flush=True)


async def sample(reconciliation):
    while True:
        await asyncio.sleep(SAMPLE_SECONDS)
        await reconciliation.sample()


async def pass_deadlines(reconciliation):
    while True:
        await reconciliation.pass_deadlines()
        await asyncio.sleep(PASS_SECONDS)


async def campaign(arguments, settings):
    violations, began = Violations(), time.time()
    stack = Stack(settings, violations, arguments.seed)
    try:
        await stack.start()
        say(f"the stack is ready after {time.time() - began:.0f} s")
        journal = Journal(settings.folder / "journal.ndjson")
        reconciliation = Reconciliation(stack, journal, violations, say)
        faults = Faults(stack, violations, say)
        await run(arguments, stack, journal, reconciliation, faults)
        await reconciliation.close([(one.fault.kind, one.began_at, one.ended_at) for one in faults.injected])
        return violations, make_report(faults.injected, figures(arguments, stack, journal, reconciliation, faults))
    finally:
        await stack.stop()


def figures(arguments, stack, journal, reconciliation, faults):
    """The figures of the report, by name."""
    violations, statuses = faults.violations, stack.client.statuses + stack.probe_client.statuses
    return {
        "seed": str(arguments.seed), "minutes": arguments.minutes, "faults": len(faults.injected),
        "kinds of faults": len({one.fault.kind for one in faults.injected}),
        "acknowledged changes": journal.total,
        **{f"of these: {name}": count for name, count in journal.changes.most_common()},
        **reconciliation.totals,
        **{name: violations.counts[name] for name in ("lost", "overtaken", "5xx")},
        "503": statuses[503], "requests sent again": stack.client.repeated_requests,
        "samples": reconciliation.samples,
        "exits without a fault": sum(len(replica.exits) for replica in stack.replicas.all.values()),
        **{f"longest time without {name}, s": stack.probes.longest_gap(name) for name in NAMES},
        "violations": violations.counts.total(),
    }


async def run(arguments, stack, journal, reconciliation, faults):
    """Load, probes and faults for the given time; then waits until the stack has done everything."""
    load = Load(stack.client, journal, faults.violations, arguments.seed, arguments.rate)
    began_at = time.time()
    stack.probes.start()
    load.start(stack.merchants)
    repeated = [asyncio.create_task(task(reconciliation)) for task in (sample, pass_deadlines)]
    await faults.run(make_schedule(arguments, stack.settings), began_at, arguments.minutes * 60)
    await asyncio.sleep(max(0, began_at + arguments.minutes * 60 - time.time()))
    await load.stop()
    say("the load has stopped; waiting until everything is done")
    await reconciliation.drain()
    for task in repeated:
        task.cancel()
    await stack.probes.stop()
    note_recoveries(faults, stack.probes)


def note_recoveries(faults, probes):
    for injected in faults.injected:
        others = [(other.began_at, other.ended_at) for other in faults.injected if other is not injected]
        for name, successes in probes.successes.items():
            injected.recovery[name] = recovery(successes, injected.ended_at, others)
            if injected.recovery[name] is None:
                faults.violations.add("no recovery", f"{name} after {injected.fault.describe()}")


def make_schedule(arguments, settings=None):
    replicas = settings.replicas if settings else tuple(name + end for name in SERVICES for end in ("", ".2"))
    nodes = ("one", "two", "three") if "partition" in arguments.faults else ("one",)
    targets = schedule.Targets(replicas, tuple(merchants.BEHAVIOUR), nodes)
    return schedule.make_schedule(arguments.seed, arguments.minutes, arguments.faults, targets)


def parse():
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=schedule.parse_kinds, default=schedule.KINDS)
    parser.add_argument("--rate", type=float, default=450)
    parser.add_argument("--schedule", action="store_true", help="print the schedule and exit")
    parser.add_argument("--kinds", action="store_true", help="print the kinds of faults and exit")
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.kinds:
        return print(*arguments.faults)
    if arguments.schedule:
        return print(*(fault.describe() for fault in make_schedule(arguments)), sep="\n")
    settings = Settings()
    violations, report = asyncio.run(campaign(arguments, settings))
    print(report)
    reports = settings.folder / "reports"
    reports.mkdir(exist_ok=True)
    (reports / f"{arguments.seed}.md").write_text(report + "\n")
    (settings.folder / "violations").write_text("".join(f"{text}\n" for text in violations.found))
    for text in violations.found[:SHOWN_VIOLATIONS]:
        print(f"VIOLATION: {text}", file=sys.stderr)
    kinds = ",".join(arguments.faults)
    print(f"seed {arguments.seed}: scripts/campaign --seed {arguments.seed} --minutes {arguments.minutes:g} --faults {kinds}")
    sys.exit(bool(violations.found))


main()
