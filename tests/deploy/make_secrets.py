"""Checks that deploy/kubernetes/make-secrets makes exactly the secrets and keys that the Kubernetes objects refer
to, and the scripts that set passwords in broker definitions."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import chart
import kubernetes
import kubernetes_validate

ROOT = Path(__file__).resolve().parents[2]
# The operators of the servers and cert-manager create these.
OF_OPERATORS = re.compile(r"rabbitmq-default-user|postgres-ca|backhaul-([a-z-]+-)?tls")


def make(*arguments):
    """The secrets by name."""
    command = [ROOT / "deploy/kubernetes/make-secrets", *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    secrets = chart.read(printed)
    assert len({secret["metadata"]["name"] for secret in secrets}) == len(secrets)
    for secret in secrets:
        kubernetes_validate.validate(secret, kubernetes.VERSION, strict=True)
    return {secret["metadata"]["name"]: secret for secret in secrets}


def referred(value):
    """The secrets that an object refers to, each with a key, or without one for a whole secret."""
    if isinstance(value, list):
        for element in value:
            yield from referred(element)
    elif isinstance(value, dict):
        if "secretKeyRef" in value:
            yield value["secretKeyRef"]["name"], value["secretKeyRef"]["key"]
        if "secretName" in value:
            keys = [item["key"] for item in value.get("items", [])] or [None]
            yield from ((value["secretName"], key) for key in keys)
        if "passwordSecret" in value:
            yield from ((value["passwordSecret"]["name"], key) for key in ["username", "password"])
        for target in value.get("secretTargetRef", []):
            yield target["name"], target["key"]
        for element in value.values():
            yield from referred(element)


def check_references(secrets):
    """Objects refer to all secrets that are made, and to no others."""
    objects = chart.render({**chart.VARIANTS["production"], "secrets": {"generate": False}}) + chart.servers()
    wanted = {(name, key) for name, key in referred(objects) if not OF_OPERATORS.fullmatch(name)}
    for name, key in sorted(wanted, key=str):
        assert name in secrets, f"make-secrets does not make {name}"
        assert key is None or key in secrets[name]["stringData"], f"{name} has no key {key}"
    unused = secrets.keys() - {name for name, _ in wanted}
    assert not unused, f"make-secrets makes {unused}, which no object uses"


def check_users(secrets):
    """The broker knows each service by the password in its URL, and no two users share one."""
    users = json.loads(secrets["rabbitmq-definitions"]["stringData"]["definitions.json"])["users"]
    passwords = {user["name"]: user["password"] for user in users}
    assert len(set(passwords.values())) == len(users) == len(kubernetes.SERVICES) + 1, passwords.keys()
    for service in kubernetes.SERVICES:
        url = secrets[f"{service}-broker"]["stringData"]["url"]
        assert url == f"amqp://{service}:{passwords[service]}@rabbitmq.space.svc:5672/%2f", service


def check_definitions(folder, secrets):
    """The passwords of installed definitions, in any format, are kept in those of a new version."""
    new = ROOT / "deploy/rabbitmq/definitions.json"
    text = secrets["rabbitmq-definitions"]["stringData"]["definitions.json"]
    definitions = json.loads(text)
    formatted = json.dumps(definitions, indent=2, sort_keys=True)
    installed = folder / "installed.json"
    for each in [text, formatted]:
        installed.write_text(each)
        command = [ROOT / "deploy/rabbitmq/keep-passwords.sh", installed, new]
        kept = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(kept.stdout) == definitions and not kept.stderr, kept.stderr
    # A rotation adds a user with another name and deletes the first one.
    definitions["users"][0] = {"name": "auth-b", "password_hash": "", "tags": []}
    installed.write_text(json.dumps(definitions, indent=2, sort_keys=True))
    subprocess.run([ROOT / "deploy/rabbitmq/set-password.sh", installed, "auth-b"], input="secret", text=True, check=True)
    assert json.loads(installed.read_text())["users"][0]["password"] == "secret"
    kept = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(kept.stdout)["users"][0]["password_hash"] == "", "a new user has a password"
    assert [line.split()[0] for line in kept.stderr.splitlines()] == ["auth", "auth-b"], kept.stderr


def check_usage():
    """The scripts that set passwords print their usage on request, and for a wrong number of arguments."""
    for script in ["keep-passwords.sh", "set-password.sh"]:
        file = ROOT / "deploy/rabbitmq" / script
        for arguments, code in [(["--help"], 0), ([], 2), (["one"], 2), (["one", "two", "three"], 2)]:
            result = subprocess.run([file, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            text = result.stderr if code else result.stdout
            assert result.returncode == code and text.startswith(f"usage: {script} "), f"{script} {arguments}: {result}"


def main():
    secrets = make("--namespace", "space")
    assert {secret["metadata"]["namespace"] for secret in secrets.values()} == {"space"}
    if chart.library() is not None:
        check_references(secrets)
    check_users(secrets)
    check_usage()
    with tempfile.TemporaryDirectory() as folder:
        check_definitions(Path(folder), secrets)
    again = make("--namespace", "space")
    same = [name for name, secret in secrets.items() if secret["stringData"] == again[name]["stringData"]]
    assert not same, f"the values of {same} are not random"
    print(f"{len(secrets)} secrets: all that the objects refer to")


if __name__ == "__main__":
    main()
