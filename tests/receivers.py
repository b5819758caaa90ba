"""Runs a receiver of examples/ and sends it every sample message of the OpenAPI documents, signed.
usage: receivers.py FOLDER-OF-DOCUMENTS COMMAND..."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone
from pathlib import Path

import yaml
from standardwebhooks.webhooks import Webhook

SECRET, OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_q7mM0sYJm0cT3RzX8oO8Yk9w0m1iJm6C"
STRANGER = "whsec_c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vy"
# Requests to this machine do not go through a proxy.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
failures = []


def check(name, holds):
    if not holds:
        failures.append(name)


class Loader(yaml.CSafeLoader):
    """Times stay text, as in JSON."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def samples(folder):
    """The path, event and body of every sample message to a shop. Label providers receive the requests of labels."""
    for document in sorted(Path(folder).glob("*.yaml")):
        for name, webhook in (yaml.load(document.read_text(), Loader).get("webhooks") or {}).items():
            if name == "label_request":
                continue
            path = re.search(r"default path is `([^`]+)`", webhook["post"]["description"])[1]
            for event, example in webhook["post"]["requestBody"]["content"]["application/json"]["examples"].items():
                yield path, event, example["value"]


def request(url, method="GET", body=None, headers=None):
    try:
        sent = urllib.request.Request(url, body, headers or {}, method=method)
        with opener.open(sent, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def post(url, event, body, secret=SECRET, age=0, id=None, sequence=1, changed=b""):
    id, sent_at = id or str(uuid.uuid4()), int(time.time()) - age
    content = json.dumps(body).encode()
    signature = Webhook(secret).sign(id, datetime.fromtimestamp(sent_at, timezone.utc), content.decode())
    return request(url, "POST", content + changed, {
        "Content-Type": "application/json", "webhook-id": id, "webhook-timestamp": str(sent_at),
        "webhook-signature": signature, "X-Service-Event": event, "X-Service-Sequence": str(sequence),
    })


@contextlib.contextmanager
def running(command, folder):
    """A receiver as a process; yields its URL and its output from the start of this run."""
    environment = {**os.environ, "SIGNING_SECRETS": f"{OTHER},{SECRET}", "PORT": "0"}
    environment |= {"DATABASE": f"{folder}/messages.db", "JOURNAL": f"{folder}/messages.ndjson"}
    output = open(f"{folder}/output", "a+", encoding="utf-8")
    begin = output.seek(0, os.SEEK_END)
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield wait_for(output, "listening on", begin).split()[-1], output
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for(output, text, start=0):
    """Waits until the receiver has printed a line that contains a text."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        output.seek(start)
        found = [line for line in output.read().splitlines() if text in line]
        if found:
            return found[-1]
        time.sleep(0.02)
    output.seek(0)
    raise SystemExit(f"the receiver did not print {text!r}:\n{output.read()}")


def use(url, output, messages):
    check("there are samples of all kinds", len({path for path, _, _ in messages}) == 7)
    for path, event, body in messages:
        status, response = post(url + path, event, body)
        check(f"{event} is accepted", status == 200)
        if event == "exchange_order.created":
            check("an exchange order gets an identifier", bool(response.get("order_identifier")))
        wait_for(output, f"{event}: ")
    path, event, body = next(message for message in messages if message[1] == "rma.created")
    check("the second secret is accepted", post(url + path, event, body, OTHER)[0] == 200)
    # `backhaul endpoint check` recognises this response.
    refused = (401, {"message": "the signature is invalid or too old"})
    check("another secret is refused", post(url + path, event, body, STRANGER) == refused)
    check("a changed body is refused", post(url + path, event, body, changed=b" ") == refused)
    check("an old message is refused", post(url + path, event, body, age=301) == refused)
    check("a message without a signature is refused", request(url + path, "POST", b"{}") == refused)
    check("an unknown path is refused", post(url + "/other", event, body)[0] == 404)
    check("a sample of a check is accepted", post(url + path, "sample", body)[0] == 200)
    status, variants = request(url + "/sku/SHIRT-BLUE/variants")
    check("variants are listed", status == 200 and all(one["sku"] and one["title"] for one in variants["variants"]))


def main(folder, documents, command):
    messages = list(samples(documents))
    path, event, body = next(message for message in messages if message[1] == "exchange_order.created")
    body = {**body, "original_order_id": "REPEATED"}
    with running(command, folder) as (url, output):
        use(url, output, messages)
        first = post(url + path, event, body, id="repeated")
        check("a repeated message gets the first response", post(url + path, event, body, id="repeated") == first)
        wait_for(output, "REPEATED")
    with running(command, folder) as (url, output):
        check("also after a restart", post(url + path, event, body, id="repeated") == first)
        # Messages are processed in order, so this one is the last.
        post(url + path, event, {**body, "original_order_id": "LAST"})
        wait_for(output, "LAST")
        output.seek(0)
        check("a repeated message is processed once", output.read().count("REPEATED") == 1)


with tempfile.TemporaryDirectory() as name:
    main(name, sys.argv[1], sys.argv[2:])
print("\n".join(f"FAILED: {failure}" for failure in failures) or f"{sys.argv[-1]}: passed")
sys.exit(bool(failures))
