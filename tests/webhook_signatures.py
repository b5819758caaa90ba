"""The public Standard Webhooks library for Python verifies our signatures.

Reads messages from standard input, one JSON object a line. Prints "N passed, M failed" at the end;
exits non-zero when one failed.
"""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

STRANGER = "whsec_c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vy"


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
    check("a stranger's secret does not fit", not verifies(STRANGER, message))
    changed = json.dumps({"changed": True})
    check("a changed body does not fit", not verifies(message["secrets"][0], message, changed))

print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not messages else 0)
