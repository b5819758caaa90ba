"""PostgreSQL with its standby and RabbitMQ, which faults kill, wipe, fill, isolate and fail over."""

import asyncio
import os

# A standby that does not follow after this time is a violation.
STANDBY_SECONDS = 240


class CommandFailed(Exception):
    pass


async def run(command, environment=None):
    """Runs a command and returns its output."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), env=os.environ | (environment or {}), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    if process.returncode:
        raise CommandFailed(f"{' '.join(map(str, command))}: {errors.decode()[-600:].strip()}")
    return output.decode()


class Postgres:
    """The primary and, if the campaign has fail-overs, its synchronous standby."""

    def __init__(self, settings, proxy):
        self.settings, self.proxy = settings, proxy
        self.ports = {"postgres-a": settings.primary_port, "postgres-b": settings.standby_port}
        self.primary, self.standby = "postgres-a", "postgres-b" if settings.standby_port else None

    async def start(self):
        await self.proxy.do("postgres", "targets", ports=[self.ports[self.primary]])

    async def control(self, action, name, *flags, **environment):
        command = [self.settings.servers_script, action, "postgres", "--dir", self.settings.folder / name, *flags]
        await run(command, environment)

    async def sql(self, statement, database="postgres", name=None):
        """Runs a statement at the primary, or at the named server, and returns its output."""
        port = self.ports[name or self.primary]
        url = f"postgres://backhaul@127.0.0.1:{port}/{database}?connect_timeout=5"
        command = [self.settings.psql, "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", statement, url]
        return await run(command, {"PGPASSWORD": self.settings.postgres_password})

    async def kill(self):
        await self.control("kill", self.primary)

    async def restart(self):
        await self.control("start", self.primary)

    async def fail_over(self):
        """Kills the primary and promotes the standby."""
        await self.kill()
        await self.sql("SELECT pg_promote()", name=self.standby)
        self.primary, self.standby = self.standby, self.primary
        await self.wait_for_standby(False)
        await self.proxy.do("postgres", "targets", ports=[self.ports[self.primary]])
        await self.proxy.do("postgres", "reset")

    async def rebuild_standby(self):
        """Copies the primary to the other server, which had been the primary. Commits then wait for it again."""
        primary_port = str(self.ports[self.primary])
        await self.control("start", self.standby, "--wipe", BACKHAUL_POSTGRES_PRIMARY=primary_port)
        await self.wait_for_standby(True)

    async def wait_for_standby(self, is_wanted):
        await self.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{'*' if is_wanted else ''}'")
        await self.sql("SELECT pg_reload_conf()")

    async def await_standby(self):
        """Waits until every commit is on the standby."""
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
        async with asyncio.timeout(STANDBY_SECONDS):
            while True:
                try:
                    if (await self.sql(query)).strip() == "1":
                        return
                except CommandFailed:
                    pass
                await asyncio.sleep(0.5)


class Broker:
    def __init__(self, settings, proxy):
        self.settings, self.proxy = settings, proxy

    async def start(self):
        await self.proxy.do("broker", "targets", ports=self.settings.broker_ports)

    async def control(self, action, node, *flags):
        folder = self.settings.folder / f"rabbitmq-{node}"
        command = [self.settings.servers_script, action, "rabbitmq", "--dir", folder, *flags]
        await run(command, {"BACKHAUL_RABBITMQ_NODE": node})

    def nodes(self, target):
        return self.settings.nodes if target == "all" else (target,)

    async def kill(self, target):
        await asyncio.gather(*(self.control("kill", node) for node in self.nodes(target)))

    async def restart(self, target, *flags):
        """Starts the nodes at the same time, because each waits for the others after a crash of all."""
        await asyncio.gather(*(self.control("start", node, *flags) for node in self.nodes(target)))

    async def wipe(self):
        """Deletes all data. The nodes start one after the other, so that each finds the ones before it."""
        await self.kill("all")
        for node in self.settings.nodes:
            await self.control("start", node, "--wipe")
