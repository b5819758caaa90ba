"""Verifies our signatures with the public Standard Webhooks library for Python.

Reads messages from standard input, one JSON object per line. Prints "N passed, M failed" at the end and
exits non-zero if a check failed.
"""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

OTHER_SECRET = "whsec_c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vy"


def verifies(secret, message, body=None):
    try:
        Webhook(secret).verify(message["body"] if body is None else body, message["headers"])
        return True
    except WebhookVerificationError:
        return False


passed = failed = 0


def check(name, holds):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print(f"FAILED: {name}")


messages = [json.loads(line) for line in sys.stdin]
for message in messages:
    for secret in message["secrets"]:
        check(f"{secret[:10]} verifies {message['body']!r}", verifies(secret, message))
    check("another secret is rejected", not verifies(OTHER_SECRET, message))
    changed = json.dumps({"changed": True})
    check("a changed body is rejected", not verifies(message["secrets"][0], message, changed))

print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not messages else 0)
