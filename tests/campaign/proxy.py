"""A TCP proxy between the services and a server, which can stall and reset connections.

usage: proxy.py NAME=PORT..., with one JSON command on each line of standard input:
  {"name": NAME, "do": "targets", "ports": [PORT, ...]}   where new connections lead; the first that accepts
  {"name": NAME, "do": "stall"}    forward nothing until "resume"
  {"name": NAME, "do": "resume"}
  {"name": NAME, "do": "reset"}    close all connections with a TCP reset
Each command is confirmed with a line on standard output. It is a process of its own, because it forwards every byte
between the services and the servers.
"""

import asyncio
import json
import socket
import struct
import sys


class Listener:
    """One listening port."""

    def __init__(self):
        self.ports, self.ends, self.turn = [], set(), 0
        self.flowing = asyncio.Event()
        self.flowing.set()

    def do(self, command):
        match command["do"]:
            case "targets":
                self.ports = command["ports"]
            case "stall":
                self.flowing.clear()
                self.update()
            case "resume":
                self.flowing.set()
                self.update()
            case "reset":
                for end in list(self.ends):
                    end.reset()

    def update(self):
        for end in self.ends:
            end.update()

    async def dial(self, end):
        """Connects a client to the first server that accepts, each time from the next one on."""
        await self.flowing.wait()
        self.turn += 1
        ports = self.ports[self.turn % len(self.ports):] + self.ports[:self.turn % len(self.ports)] if self.ports else []
        loop = asyncio.get_running_loop()
        for port in ports:
            try:
                await loop.create_connection(lambda: Side(self, end), "127.0.0.1", port)
                return
            except OSError:
                continue
        end.reset()


class Side(asyncio.Protocol):
    """One side of a connection. Reads nothing until it has a peer."""

    def __init__(self, listener, peer=None):
        self.listener, self.peer, self.transport, self.is_full = listener, peer, None, False

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.listener.ends.add(self)
        self.update()
        if self.peer is None:
            self.dialing = asyncio.ensure_future(self.listener.dial(self))
        elif self.peer.transport.is_closing():
            transport.abort()
        else:
            self.peer.peer = self
            self.peer.update()

    def update(self):
        """Reads if there is a peer whose buffer is not full and the listener forwards."""
        if self.transport is None or self.transport.is_closing():
            return
        reads = self.peer is not None and not self.peer.is_full and self.listener.flowing.is_set()
        if reads and not self.transport.is_reading():
            self.transport.resume_reading()
        elif not reads and self.transport.is_reading():
            self.transport.pause_reading()

    def data_received(self, data):
        self.peer.transport.write(data)

    def pause_writing(self):
        self.is_full = True
        self.peer.update()

    def resume_writing(self):
        self.is_full = False
        self.peer.update()

    def connection_lost(self, error):
        self.listener.ends.discard(self)
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.close()

    def reset(self):
        """Closes with a reset: lingering for zero seconds discards unsent data."""
        linger = struct.pack("ii", 1, 0)
        try:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        except OSError:
            pass
        self.transport.abort()


async def serve(arguments):
    loop, listeners = asyncio.get_running_loop(), {}
    for argument in arguments:
        name, port = argument.split("=")
        listeners[name] = listener = Listener()
        await loop.create_server(lambda listener=listener: Side(listener), "127.0.0.1", int(port))
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    print("ready", flush=True)
    while line := await commands.readline():
        command = json.loads(line)
        listeners[command["name"]].do(command)
        print("done", flush=True)


class Proxy:
    """The proxy process, as the campaign controls it."""

    async def start(self, **ports):
        arguments = [f"{name}={port}" for name, port in ports.items()]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )
        self.lock = asyncio.Lock()
        await self.process.stdout.readline()

    async def do(self, name, action, **fields):
        async with self.lock:
            self.process.stdin.write(json.dumps({"name": name, "do": action, **fields}).encode() + b"\n")
            if await self.process.stdout.readline() != b"done\n":
                raise RuntimeError("the proxy has exited")

    async def stop(self):
        self.process.stdin.close()
        await self.process.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
