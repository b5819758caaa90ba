"""An HTTP client that behaves as a careful merchant's client: after a lost connection, a timeout, 408, 429 or 503 it sends
the same request again to the other replica."""

import asyncio
import base64
import collections
import json
import time
from urllib.parse import urlsplit

TIMEOUT = 8
# A call that has no final response after this time is a violation: faults last seconds.
RETRY_SECONDS = 300
FIRST_DELAY, LONGEST_DELAY = 0.1, 1.0


class Response:
    def __init__(self, status, body):
        self.status, self.body = status, body

    def json(self):
        return json.loads(self.body) if self.body else {}


class NoResponse(Exception):
    """The connection was refused, closed or silent."""


class Client:
    def __init__(self, urls, violations):
        # Service name -> addresses of its replicas.
        self.replicas = {name: [urlsplit(url) for url in found] for name, found in urls.items()}
        self.idle = collections.defaultdict(list)
        self.turn = collections.Counter()
        self.violations = violations
        self.statuses = collections.Counter()
        self.repeated_requests = 0

    async def call(self, service, method, path, body=None, headers=None, expect=(200, 201, 202)):
        """Sends a request until it has a final response; returns it if its status is expected."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        began_at, delay = time.monotonic(), FIRST_DELAY
        while True:
            failure = "no response"
            try:
                response = await self.send(service, method, path, content, headers)
                failure = f"{response.status} {response.body[:200]!r}"
                if response.status not in (408, 429, 503) and response.status < 500:
                    break
            except NoResponse as error:
                failure = str(error)
            if time.monotonic() - began_at > RETRY_SECONDS:
                self.violations.add("unavailable", f"{service} {method} {path} for {RETRY_SECONDS} s: {failure}")
                raise NoResponse(failure)
            self.turn[service] += 1
            self.repeated_requests += 1
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)
        if response.status not in expect:
            self.violations.add("unexpected status", f"{service} {method} {path}: {failure}")
            raise NoResponse(failure)
        return response

    async def send(self, service, method, path, content=None, headers=None, timeout=TIMEOUT):
        """Sends a request once, to the replica whose turn it is."""
        address = self.replicas[service][self.turn[service] % len(self.replicas[service])]
        lines = [f"{method} {path} HTTP/1.1", f"Host: {address.netloc}", f"Content-Length: {len(content or b'')}"]
        if content is not None and "Content-Type" not in (headers or {}):
            lines.append("Content-Type: application/json")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        request = "\r\n".join([*lines, "", ""]).encode() + (content or b"")
        connection = None
        try:
            async with asyncio.timeout(timeout):
                connection = self.idle[address].pop() if self.idle[address] else await open_connection(address)
                connection[1].write(request)
                response, is_open = await read_response(connection[0])
        except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError) as error:
            if connection:
                connection[1].transport.abort()
            raise NoResponse(f"{type(error).__name__} {error}".strip()) from error
        except asyncio.CancelledError:
            if connection:
                connection[1].transport.abort()
            raise
        self.statuses[response.status] += 1
        if response.status >= 500 and response.status != 503:
            self.violations.add("5xx", f"{service} {method} {path}: {response.status} {response.body[:200]!r}")
        if is_open:
            self.idle[address].append(connection)
        else:
            connection[1].close()
        return response

    async def token(self, client_id, client_secret):
        basic = base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/x-www-form-urlencoded"}
        response = await self.call("auth", "POST", "/oauth/token", b"grant_type=client_credentials", headers)
        return response.json()["access_token"]


async def open_connection(address):
    return await asyncio.open_connection(address.hostname, address.port)


async def read_response(reader):
    """The response, and whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Response(int(head[0].split()[1]), body), headers.get("connection") != "close"


class Violations:
    """Everything that must not happen, in the order in which it was found."""

    def __init__(self):
        self.found = []
        self.counts = collections.Counter()

    def add(self, kind, text):
        self.counts[kind] += 1
        # A fault of the stack can be found thousands of times.
        if self.counts[kind] <= 1000:
            self.found.append(f"{kind}: {text}")
