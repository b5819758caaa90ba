"""The replicas of the services as processes, which faults kill, pause and give another clock."""

import asyncio
import os
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request


class Replica:
    def __init__(self, name, settings):
        self.name, self.settings = name, settings
        self.service = name.removesuffix(".2")
        self.url = settings.replica_url(name)
        self.clock = settings.folder / "clocks" / name
        self.process = None
        # A supervisor starts a process again that has exited, unless a fault keeps it down.
        self.is_wanted = False
        self.exits = []

    def environment(self):
        text = (self.settings.folder / "environments" / self.name).read_bytes().decode()
        environment = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
        if self.settings.clock_library and self.name.endswith(".2"):
            environment |= {
                "LD_PRELOAD": self.settings.clock_library, "FAKETIME_TIMESTAMP_FILE": str(self.clock),
                "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
            }
        return environment

    def set_clock(self, seconds):
        self.clock.parent.mkdir(exist_ok=True)
        new = self.clock.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self.clock)

    def start(self):
        self.is_wanted = True
        if self.process and self.process.poll() is None:
            return
        log = open(self.settings.folder / "logs" / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(
            [self.settings.programs / self.service, "serve"], env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, start_new_session=True,
        )
        log.close()
        self.write_pid()

    def write_pid(self):
        """The pid with the time of its start, as scripts/lib/processes.sh does: pids are reused."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        (self.settings.folder / "pids" / self.name).write_text(f"{self.process.pid} {stat[19]} {boot}\n")

    def signal(self, number):
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def kill(self):
        self.is_wanted = False
        self.signal(signal.SIGKILL)
        self.process.wait()

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as response:
                return response.status == 200
        except (OSError, urllib.error.URLError):
            return False


class Replicas:
    def __init__(self, settings, violations):
        self.violations = violations
        self.all = {name: Replica(name, settings) for name in settings.replicas}

    async def start(self):
        for replica in self.all.values():
            replica.set_clock(0)
            replica.start()
        deadline = time.monotonic() + 240
        for replica in self.all.values():
            while not await asyncio.to_thread(replica.is_ready):
                if replica.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{replica.name} does not start: see {replica.settings.folder}/logs/{replica.name}.log")
                await asyncio.sleep(0.2)
        self.supervisor = asyncio.create_task(self.supervise())

    async def supervise(self):
        """Starts replicas again that exited without a fault. Only a crash is a violation: a service may exit while
        its servers are away."""
        while True:
            for replica in self.all.values():
                status = replica.process.poll()
                if replica.is_wanted and status is not None:
                    replica.exits.append(status)
                    if status < 0:
                        self.violations.add("crash", f"{replica.name} ended with signal {-status}")
                    replica.start()
            await asyncio.sleep(1)

    async def stop(self):
        if hasattr(self, "supervisor"):
            self.supervisor.cancel()
        running = [replica for replica in self.all.values() if replica.process and replica.process.poll() is None]
        for replica in running:
            replica.is_wanted = False
            replica.signal(signal.SIGCONT)
            replica.signal(signal.SIGTERM)
        for replica in running:
            try:
                await asyncio.to_thread(replica.process.wait, 30)
            except subprocess.TimeoutExpired:
                replica.kill()
