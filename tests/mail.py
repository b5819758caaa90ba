"""Receives the mails of an example with aiosmtpd, and reads them with Python's parser.

usage: mail.py COMMAND, to which the URL of the server is added. The command prints what it sent, one JSON object per line,
each mail twice in a row. Exits non-zero if a check failed.
"""

import email
import email.policy
import json
import socket
import subprocess
import sys

from aiosmtpd.controller import Controller

FROM = "returns@mail.example"
failures = []


def check(name, holds):
    if not holds:
        failures.append(name)


class Handler:
    def __init__(self):
        self.envelopes = []

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.endswith("@refused.example"):
            return "550 5.1.1 no such user"
        if address.endswith("@later.example"):
            return "450 4.2.0 greylisted"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope):
        self.envelopes.append((envelope.mail_from, list(envelope.rcpt_tos), envelope.content))
        return "250 2.0.0 queued"


def lines(text):
    return text.replace("\r\n", "\n").rstrip("\n")


def printable(text, most):
    """A text of a header as the mail has it: control and bidirectional characters are replaced, and it is cut."""
    return " ".join("".join("\ufffd" if c in "\r\n\u202e" else c for c in text)[:most].split())


def check_mail(sent, mail_from, recipients, content):
    id, wanted = sent["id"], sent["mail"]
    mail = email.message_from_bytes(content, policy=email.policy.default)
    check(f"{id} has no defects: {mail.defects}", not mail.defects)
    check(f"{id} is from us to one recipient", (mail_from, recipients) == (FROM, [wanted["to"]]))
    for name in ["From", "Reply-To", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version"]:
        check(f"{id} has one {name}", len(mail.get_all(name, [])) == 1)
    check(f"{id} has no other recipients", not mail["Cc"] and not mail["Bcc"])
    check(f"{id} has its id", mail["Message-ID"] == f"<{id}@mail.example>")
    check(f"{id} is automatic", mail["Auto-Submitted"] == "auto-generated")
    check(f"{id} has its sender", mail["From"].addresses[0].addr_spec == FROM)
    name = " ".join(mail["From"].addresses[0].display_name.split())
    check(f"{id} has the name of its sender: {name!r}", name == (printable(wanted["from_name"], 100) or "Returns"))
    check(f"{id} has one address for replies", [it.addr_spec for it in mail["Reply-To"].addresses] == [wanted["reply_to"]])
    subject = printable(wanted["subject"], 200)
    check(f"{id} has its subject: {mail['Subject']!r}", " ".join(mail["Subject"].split()) == subject)
    parts = {part.get_content_type(): part.get_content() for part in mail.iter_parts()}
    check(f"{id} has two parts", set(parts) == {"text/plain", "text/html"})
    check(f"{id} has its text", lines(parts.get("text/plain", "")) == lines(wanted["text"]))
    check(f"{id} has its HTML", lines(parts.get("text/html", "")) == lines(wanted["html"]))
    check(f"{id} has short lines", all(len(line) <= 998 for line in content.split(b"\r\n")))


# The controller of aiosmtpd needs a number.
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
handler = Handler()
controller = Controller(handler, hostname="127.0.0.1", port=port, ready_timeout=60)
controller.start()
try:
    command = [*sys.argv[1:], f"smtp://127.0.0.1:{port}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
finally:
    controller.stop()

received = iter(handler.envelopes)
previous = {}
number = 0
for line in output.splitlines():
    sent = json.loads(line)
    domain, outcome = sent["mail"]["to"].split("@")[1], sent["outcome"]
    if domain == "refused.example":
        check(f"a refusal is final: {outcome}", outcome == ["mail_refused", 550])
    elif domain == "later.example":
        check(f"a refusal for now is not final: {outcome}", outcome == ["mail_deferred", 450])
    elif not domain.isascii():
        # The name is written in ASCII, or there is no mail: never a domain that only looks like another.
        check(f"a foreign letter stays one: {outcome}", outcome[0] in ("delivered", "mail_refused", "unreachable"))
        if outcome[0] == "delivered":
            check("a foreign letter is not replaced", next(received)[1] != ["help@acme.example"])
    else:
        check(f"{sent['id']} is delivered: {outcome}", outcome == ["delivered", 250])
        mail_from, recipients, content = next(received, (None, [], b""))
        check_mail(sent, mail_from, recipients, content)
        check(f"{sent['id']} is the same in every attempt", previous.setdefault(sent["id"], content) == content)
        number += 1
check("mails were sent", number >= 16)
check("no further mail was sent", next(received, None) is None)
for name in failures:
    print(f"FAILED: {name}")
print(f"{number} mails, {len(failures)} failures")
sys.exit(bool(failures))
