"""The table that a campaign prints, as Markdown."""

import collections

from probes import NAMES
from schedule import KINDS


def fault_rows(injected):
    """One row for each kind: how often, the longest fault, and the slowest recovery of each probe."""
    by_kind = collections.defaultdict(list)
    for one in injected:
        by_kind[one.fault.kind].append(one)
    for kind in KINDS:
        if found := by_kind[kind]:
            longest = max(one.ended_at - one.began_at for one in found)
            slowest = [slowest_recovery([one.recovery.get(name) for one in found]) for name in NAMES]
            yield [kind, str(len(found)), f"{longest:.1f}", *slowest]


def slowest_recovery(seconds):
    """The longest time, or "none" if the stack did not recover from one of the faults."""
    return "none" if None in seconds else f"{max(seconds):.1f}"


def table(heading, rows):
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_figure(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}" if isinstance(value, float) else value


def make_report(injected, figures):
    """The whole report."""
    faults = table(["fault", "times", "longest, s", *(f"{name}, s" for name in NAMES)], list(fault_rows(injected)))
    return "\n\n".join([
        "Recovery: seconds without a fault from the end of a fault to the first success of a probe; the slowest of each kind.",
        faults,
        table(["figure", "value"], [[name, format_figure(value)] for name, value in figures.items()]),
    ])
