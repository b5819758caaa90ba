"""Sends requests to every replica of every service until SIGTERM.

usage: rolling_restart.py SERVICE=URL..., with AUTH_URL, CLIENT_ID and CLIENT_SECRET of a merchant in the
environment. A replica may close or refuse connections, but every response must be a success and arrive
within ten seconds. The last line begins with "ok" if all responses did and every replica responded.
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
PAUSE, TIMEOUT = 0.1, 10


def token():
    client = f"{os.environ['CLIENT_ID']}:{os.environ['CLIENT_SECRET']}".encode()
    request = urllib.request.Request(
        os.environ["AUTH_URL"] + "/oauth/token",
        data=b"grant_type=client_credentials",
        headers={"Authorization": "Basic " + base64.b64encode(client).decode()},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        return json.load(response)["access_token"]


class Caller(threading.Thread):
    def __init__(self, service, url, headers, stopped):
        super().__init__()
        self.name, self.headers, self.stopped = f"{service} at {url}", headers, stopped
        self.path, self.address = PATHS[service], urlsplit(url).netloc
        self.responses, self.failures, self.closed = collections.Counter(), collections.Counter(), 0

    def run(self):
        ready = False
        connection = http.client.HTTPConnection(self.address, timeout=TIMEOUT)
        while not self.stopped.is_set():
            try:
                status = self.get(connection, self.path if ready else "/readyz")
                if ready:
                    self.responses[status] += 1
                    if status >= 400:
                        self.failures[status] += 1
                ready = ready or status == 200
            except http.client.IncompleteRead:
                self.failures["incomplete response"] += 1
                connection.close()
            except TimeoutError:
                self.failures["timeout"] += 1
                connection.close()
            except (ConnectionError, http.client.HTTPException, OSError):
                # A replica gets requests again when it is ready.
                self.closed += ready
                ready = False
                connection.close()
            self.stopped.wait(PAUSE)
        connection.close()

    def get(self, connection, path):
        connection.request("GET", path, headers=self.headers)
        response = connection.getresponse()
        response.read()
        return response.status


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
stopped = threading.Event()
headers = {"Authorization": "Bearer " + token()}
callers = [Caller(*replica.split("=", 1), headers, stopped) for replica in sys.argv[1:]]
for caller in callers:
    caller.start()
print(f"calling {len(callers)} replicas", flush=True)
signal.sigwait({signal.SIGTERM})
stopped.set()
for caller in callers:
    caller.join()
    print(f"{caller.name}: {caller.responses.total()} responses, {caller.closed} connections closed")
failed = [caller for caller in callers if caller.failures or not caller.responses]
for caller in failed:
    print(f"FAILED: {caller.name}: {dict(caller.failures) or 'no responses'}")
if not failed:
    print("ok: every request succeeded")
