"""Asks every process of every service for something, again and again, until it is told to end (SIGTERM).

usage: rolling_restart.py SERVICE=URL..., with AUTH_URL, CLIENT_ID and CLIENT_SECRET of a merchant in the
environment. A process may close a connection, or take none; whoever still gets an answer from it must get a
good one, and soon. Its last line begins with "ok", unless an answer was an error or took ten seconds, or
somebody was never asked.
"""

import base64
import collections
import http.client
import json
import os
import signal
import sys
import threading
import urllib.request
from urllib.parse import urlsplit

PATHS = {
    "auth": "/.well-known/jwks.json",
    "order-intake": "/v1/orders?limit=1",
    "rma-engine": "/v1/returns?limit=1",
    "exchange": "/v1/exchange_orders?limit=1",
    "warehouse-notifier": "/v1/inbound_asns?limit=1",
}
# Within the rate limit of every service.
PAUSE, DEADLINE = 0.1, 10


def token():
    client = f"{os.environ['CLIENT_ID']}:{os.environ['CLIENT_SECRET']}".encode()
    asked = urllib.request.Request(
        os.environ["AUTH_URL"] + "/oauth/token",
        data=b"grant_type=client_credentials",
        headers={"Authorization": "Basic " + base64.b64encode(client).decode()},
    )
    with urllib.request.urlopen(asked, timeout=DEADLINE) as answer:
        return json.load(answer)["access_token"]


class Caller(threading.Thread):
    def __init__(self, service, url, headers, over):
        super().__init__()
        self.name, self.headers, self.over = f"{service} at {url}", headers, over
        self.path, self.address = PATHS[service], urlsplit(url).netloc
        self.answers, self.faults, self.closed = collections.Counter(), collections.Counter(), 0

    def run(self):
        ready = False
        connection = http.client.HTTPConnection(self.address, timeout=DEADLINE)
        while not self.over.is_set():
            try:
                status = self.ask(connection, self.path if ready else "/readyz")
                if ready:
                    self.answers[status] += 1
                    if status >= 400:
                        self.faults[status] += 1
                ready = ready or status == 200
            except http.client.IncompleteRead:
                self.faults["half an answer"] += 1
                connection.close()
            except TimeoutError:
                self.faults["no answer"] += 1
                connection.close()
            except (ConnectionError, http.client.HTTPException, OSError):
                # Whoever starts is asked again once it says that it can work.
                self.closed += ready
                ready = False
                connection.close()
            self.over.wait(PAUSE)
        connection.close()

    def ask(self, connection, path):
        connection.request("GET", path, headers=self.headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
over = threading.Event()
headers = {"Authorization": "Bearer " + token()}
callers = [Caller(*process.split("=", 1), headers, over) for process in sys.argv[1:]]
for caller in callers:
    caller.start()
print(f"asking {len(callers)} processes", flush=True)
signal.sigwait({signal.SIGTERM})
over.set()
for caller in callers:
    caller.join()
    print(f"{caller.name}: {caller.answers.total()} answers, {caller.closed} connections closed")
failed = [caller for caller in callers if caller.faults or not caller.answers]
for caller in failed:
    print(f"FAILED: {caller.name}: {dict(caller.faults) or 'was never asked'}")
if not failed:
    print("ok: every answer was a good one")
