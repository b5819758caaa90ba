import asyncio
import unittest

from proxy import Side, Listener


class Echo(asyncio.Protocol):
    """Sends everything back, with its name first."""

    def __init__(self, name):
        self.name = name

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(self.name + data)
        self.name = b""


class ProxyTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.listener = Listener()
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Side(self.listener), "127.0.0.1", 0)
        self.echoes = [await self.start_echo(name) for name in (b"a", b"b")]
        self.listener.do({"do": "targets", "ports": self.echoes[:1]})

    async def asyncTearDown(self):
        self.server.close()
        for end in list(self.listener.ends):
            end.reset()
        await asyncio.sleep(0)

    async def start_echo(self, name):
        server = await asyncio.get_running_loop().create_server(lambda: Echo(name), "127.0.0.1", 0)
        self.addCleanup(server.close)
        return server.sockets[0].getsockname()[1]

    async def connect(self):
        reader, writer = await asyncio.open_connection(*self.server.sockets[0].getsockname())
        self.addCleanup(writer.close)
        return reader, writer

    async def exchange(self, connection, line=b"hello\n"):
        connection[1].write(line)
        async with asyncio.timeout(10):
            return await connection[0].readline()

    async def test_bytes_are_forwarded_both_ways(self):
        self.assertEqual(await self.exchange(await self.connect()), b"ahello\n")

    async def test_a_large_message_is_complete(self):
        line = b"x" * 60_000 + b"\n"
        self.assertEqual(await self.exchange(await self.connect(), line), b"a" + line)

    async def test_a_stall_holds_old_and_new_connections_and_loses_nothing(self):
        old = await self.connect()
        await self.exchange(old)
        self.listener.do({"do": "stall"})
        new = await self.connect()
        responses = [asyncio.ensure_future(self.exchange(connection)) for connection in (old, new)]
        done, _waiting = await asyncio.wait(responses, timeout=0.2)
        self.assertEqual(done, set())
        self.listener.do({"do": "resume"})
        self.assertEqual(await asyncio.gather(*responses), [b"hello\n", b"ahello\n"])

    async def test_a_reset_closes_connections(self):
        connection = await self.connect()
        self.assertEqual(await self.exchange(connection), b"ahello\n")
        self.listener.do({"do": "reset"})
        with self.assertRaises(ConnectionResetError):
            await connection[0].read()
        self.assertEqual(await self.exchange(await self.connect()), b"ahello\n")

    async def test_new_connections_lead_to_the_new_target(self):
        self.listener.do({"do": "targets", "ports": self.echoes[1:]})
        self.assertEqual(await self.exchange(await self.connect()), b"bhello\n")

    async def test_a_target_that_refuses_is_skipped(self):
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        closed = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        self.listener.do({"do": "targets", "ports": [closed, self.echoes[1]]})
        for _ in range(2):
            self.assertEqual(await self.exchange(await self.connect()), b"bhello\n")


if __name__ == "__main__":
    unittest.main()
