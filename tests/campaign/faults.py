"""Injects the faults of the schedule and records when each began and ended."""

import asyncio
import dataclasses
import datetime
import signal
import time

from http_client import NoResponse
from schedule import OTHER_KINDS, SERVER_KINDS
from servers import CommandFailed
from settings import SERVICES

# Seconds without a fault of the same sequence after one that took longer than the schedule expected, at least and at
# most. They are as long as it took, so that a slow machine can catch up.
REST, LONGEST_REST = 5, 20
# Events are published again from this long before the last probe that was projected.
REPUBLISH_MARGIN = 60
CONSUMED_AFTER = 20
# Times that copying the primary is tried again.
COPIES = 5


@dataclasses.dataclass
class Injected:
    fault: object
    began_at: float
    ended_at: float = 0.0
    # Probe -> seconds until it succeeded after the end; None if it did not.
    recovery: dict = dataclasses.field(default_factory=dict)


class Faults:
    def __init__(self, stack, violations, say):
        self.stack, self.violations, self.say = stack, violations, say
        self.injected = []
        self.background = []
        self.republish_since = None
        self.republishing = None

    async def run(self, schedule, began_at, seconds):
        """Runs both sequences; returns when the last fault has ended. On a slow machine, faults that would begin after
        the end are left out."""
        self.ends_at = began_at + seconds
        groups = [[fault for fault in schedule if fault.kind in group] for group in (SERVER_KINDS, OTHER_KINDS)]
        await asyncio.gather(*(self.run_sequence(group, began_at) for group in groups))
        await asyncio.gather(*self.background)

    async def run_sequence(self, faults, began_at):
        rested_at = 0
        for fault in faults:
            await asyncio.sleep(max(began_at + fault.at, rested_at) - time.time())
            if not await self.is_possible(fault):
                continue
            injected = Injected(fault, time.time())
            self.injected.append(injected)
            try:
                await getattr(self, fault.kind.replace("-", "_"))(fault)
            except Exception as error:
                self.violations.add("fault", f"{fault.describe()} could not be injected: {error!r}")
            injected.ended_at = time.time()
            took = injected.ended_at - injected.began_at
            rested_at = injected.ended_at + rest_after(took - fault.duration)
            self.say(f"{fault.describe()}; took {took:.1f} s")

    async def is_possible(self, fault):
        """A fail-over waits until the standby has every commit, and nothing begins after the end."""
        try:
            if fault.kind == "postgres-fail-over" and time.time() <= self.ends_at:
                await self.stack.postgres.await_standby()
        except TimeoutError:
            self.violations.add("fault", f"{fault.describe()}: the standby does not follow the primary")
            return False
        if time.time() > self.ends_at:
            self.say(f"{fault.describe()}; left out, because the time is over")
            return False
        return True

    async def service_kill(self, fault):
        replica = self.stack.replicas.all[fault.target]
        replica.kill()
        await asyncio.sleep(fault.duration)
        replica.start()

    async def service_pause(self, fault):
        replica = self.stack.replicas.all[fault.target]
        replica.signal(signal.SIGSTOP)
        await asyncio.sleep(fault.duration)
        replica.signal(signal.SIGCONT)

    async def clock(self, fault):
        replica = self.stack.replicas.all[fault.target]
        replica.set_clock(int(fault.detail))
        await asyncio.sleep(fault.duration)
        replica.set_clock(0)

    async def merchant(self, fault):
        self.stack.receiver.faulty[fault.target] = fault.detail
        await asyncio.sleep(fault.duration)
        self.stack.receiver.faulty[fault.target] = None

    async def reset(self, fault):
        await self.stack.proxy.do(fault.target, "reset")

    async def stall(self, fault):
        await self.stack.proxy.do(fault.target, "stall")
        await asyncio.sleep(fault.duration)
        await self.stack.proxy.do(fault.target, "resume")

    async def postgres_kill(self, fault):
        await self.stack.postgres.kill()
        await asyncio.sleep(fault.duration)
        await self.stack.postgres.restart()

    async def postgres_fail_over(self, fault):
        """Services work with the new primary while the old one becomes its standby."""
        await self.stack.postgres.fail_over()
        self.background.append(asyncio.create_task(self.rebuild_standby()))

    async def rebuild_standby(self):
        """Copies the primary, again if a fault ends the copy."""
        for attempt in range(COPIES, -1, -1):
            try:
                return await self.stack.postgres.rebuild_standby()
            except CommandFailed as error:
                if not attempt:
                    self.violations.add("fault", f"the standby could not be copied: {error}")
            await asyncio.sleep(2)

    async def broker_kill(self, fault):
        await self.stack.broker.kill(fault.target)
        await asyncio.sleep(fault.duration)
        await self.stack.broker.restart(fault.target)

    async def broker_alarm(self, fault):
        node = self.stack.settings.nodes[0]
        await self.stack.broker.control("fill", node)
        await asyncio.sleep(fault.duration)
        await self.stack.broker.control("drain", node)

    async def partition(self, fault):
        await self.stack.broker.control("isolate", fault.target)
        await asyncio.sleep(fault.duration)
        await self.stack.broker.control("rejoin", fault.target)

    async def broker_wipe(self, fault):
        """The operator's part follows in the background: publishing events again, as the documentation says."""
        since = self.stack.probes.last_projected_at() - REPUBLISH_MARGIN
        self.republish_since = min(since, self.republish_since or since)
        await self.stack.broker.wipe()
        if self.republishing:
            self.republishing.cancel()
            self.background.remove(self.republishing)
        self.republishing = asyncio.create_task(self.republish(self.republish_since))
        self.background.append(self.republishing)

    async def republish(self, since):
        """Publishes the events of all services again, and waits until that is done. A request that is running
        is stopped: its events were lost with the broker."""
        body = {"since": utc(max(since, 0)), "until": utc(time.time())}
        client = self.stack.client
        headers = {"Authorization": f"Bearer {self.stack.operator_token}"}
        path = "/v1/events/republish"
        try:
            for service in SERVICES:
                while (await client.call(service, "POST", path, body, headers, (202, 409))).status == 409:
                    await client.call(service, "POST", f"{path}/stop", None, headers, (200, 404))
            for service in SERVICES:
                while (await client.call(service, "GET", path, None, headers)).json()["state"] == "running":
                    await asyncio.sleep(1)
        except NoResponse as error:
            self.violations.add("republish", f"{error}")
        # Consumers may not have applied the last events yet; another wipe would lose them again.
        await asyncio.sleep(CONSUMED_AFTER)
        if self.republish_since == since:
            self.republish_since = None


def rest_after(delay):
    """Seconds without a fault after one that took this much longer than the schedule says."""
    return min(max(REST, delay), LONGEST_REST) if delay > 1 else 0


def utc(at):
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
