"""Checks all settings in the deploy files with `<service> check`, which validates settings as `serve` does and
rejects unknown ones. usage: settings.py FOLDER-OF-PROGRAMS"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import chart
import yaml

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ["auth", "order-intake", "rma-engine", "exchange", "warehouse-notifier"]
# Web pages without a database and a migration.
PAGES = ["console", "portal"]
KEY = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
# Sample values of the referenced secrets.
SAMPLES = {
    "DATABASE__URL": "postgres://role:password@postgres-rw:5432/database",
    "BROKER__URL": "amqp://service:password@rabbitmq.backhaul.svc:5672/%2f",
    "SEALING__KEYS": KEY,
    "SHOPPER__PROOF_KEYS": KEY,
    "BOOTSTRAP__CLIENT_ID": "operator",
    "BOOTSTRAP__CLIENT_SECRET": "thirty-two-characters-of-secrecy",
    "BOOTSTRAP__PORTAL_CLIENT_ID": "portal",
    "BOOTSTRAP__PORTAL_CLIENT_SECRET": "thirty-two-characters-of-secrecy",
    "CLIENT__ID": "portal",
    "CLIENT__SECRET": "thirty-two-characters-of-secrecy",
}
programs = Path(sys.argv[1])
failures = []


def check(location, service, environment, config=None):
    prefix = service.upper().replace("-", "_") + "__"
    for name in environment:
        if not name.startswith(prefix):
            failures.append(f"{location}: {name} is not a setting of {service}")
    command = [programs / service, *(["--config", config] if config else []), "check"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        failures.append(f"{location}, {service}: {result.stderr.strip()}")


def compose(services, folder):
    """Checks docker-compose.yml with the files that the job `secrets` creates."""
    stack = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    here = Path(folder)
    (here / "secrets").mkdir()
    shutil.copy(ROOT / "deploy/rabbitmq/definitions.json", here)
    shutil.copy(ROOT / "deploy/rabbitmq/set-password.sh", here)
    for _again in range(2):
        subprocess.run([ROOT / "deploy/compose/secrets.sh"], env={**os.environ, "HERE": str(here)}, check=True)
    for service in services:
        for job, file in [(service, "settings.toml"), (f"{service}-migrate", "migrate.toml")]:
            environment = {name: value.replace("${OTLP_ENDPOINT:-}", "") for name, value in stack[job].get("environment", {}).items()}
            assert stack[job]["command"][:2] == ["--config", f"/run/backhaul/{file}"], job
            check(f"docker-compose.yml, {job}", service, environment, here / "secrets" / service / file)
        # The health check needs the file, which contains the port.
        health = ["CMD", "/usr/local/bin/program", *stack[service]["command"][:2], "health"]
        assert stack[service]["healthcheck"]["test"] == health, service
    for service in services + PAGES:
        # Otherwise all people behind the TLS proxy, or behind the console, share one address and its limits.
        name = service.upper().replace("-", "_") + "__HTTP__TRUSTED_PROXIES"
        assert stack[service]["environment"].get(name) == "10.89.64.0/24", f"docker-compose.yml: {name}"
    for service in PAGES:
        environment = {name: value.replace("${OTLP_ENDPOINT:-}", "") for name, value in stack[service]["environment"].items()}
        config = here / "secrets" / service / "settings.toml"
        check(f"docker-compose.yml, {service}", service, environment, config if config.exists() else None)
    sandbox = {name.removeprefix("SANDBOX__"): value for name, value in stack["sandbox"]["environment"].items()}
    assert set(sandbox) <= {"HTTP__HOST", "HTTP__PORT", "HTTP__PUBLIC_URL"}, sandbox
    demo(stack, here)


def demo(stack, here):
    """The demo job and the command line know the URLs of all services and the operator's client."""
    assert stack["cli"]["environment"] == stack["demo"]["environment"]
    assert stack["cli"]["volumes"] == stack["demo"]["volumes"]
    environment = dict(stack["demo"]["environment"])
    assert environment.pop("BACKHAUL_SETTINGS") == "/run/backhaul/env"
    known = {line.split("=")[0] for line in (here / "secrets/operator/env").read_text().splitlines()}
    wanted = {"OPERATOR_CLIENT_ID", "OPERATOR_CLIENT_SECRET", "RABBITMQ_USER", "RABBITMQ_PASSWORD"}
    assert known == wanted, known
    table = re.search(r"cat <<'END'\n(.*?)END\n", (ROOT / "scripts/lib/services.sh").read_text(), re.DOTALL)
    addresses = {"RABBITMQ_CONSOLE_URL": "http://rabbitmq:15672"}
    for line in table[1].splitlines():
        service, _port, variable = line.split()
        port = stack[service]["environment"][service.upper().replace("-", "_") + "__HTTP__PORT"]
        addresses[variable] = f"http://{service}:{port}"
    assert environment == addresses, environment
    # The other services wait for auth.
    assert set(stack["demo"]["depends_on"]) == {*SERVICES, *PAGES, "sandbox"} - {"auth"}, stack["demo"]["depends_on"]


def defaults(service):
    """Checks that the settings which `defaults` prints as comments are all that are required."""
    printed = subprocess.run([programs / service, "defaults"], capture_output=True, text=True, check=True).stdout
    section, environment = None, {}
    for line in printed.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif named := re.fullmatch(r"# ([a-z0-9_]+) = (.+)", line):
            name = f"{section}__{named[1]}".upper()
            value = SAMPLES.get(name, named[2].strip('"'))
            environment[f"{service.upper().replace('-', '_')}__{name}"] = value
    # The output is a settings file, which lacks only the settings that are comments.
    tomllib.loads(printed)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(printed)
        file.flush()
        check("defaults", service, environment, file.name)


def kubernetes(services, location, objects):
    maps = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
    for each in objects:
        for container in chart.containers(each) if each["kind"] in ("Deployment", "Job") else []:
            service = container["image"].split("/")[-1].split(":")[0]
            if service not in [*services, *PAGES]:
                continue
            prefix = service.upper().replace("-", "_") + "__"
            environment = {}
            for source in container.get("envFrom", []):
                environment |= maps[source["configMapRef"]["name"]]
            for variable in container.get("env", []):
                if variable["name"].startswith("SSL_CERT_"):
                    continue
                environment[variable["name"]] = SAMPLES[variable["name"].removeprefix(prefix)]
            check(f"{location}, {each['metadata']['name']}", service, environment)


here = [service for service in SERVICES if (ROOT / "crates" / service).is_dir()]
for service in PAGES:
    defaults(service)
for service in SERVICES:
    if service not in here:
        print(f"{service} is not part of this checkout: its settings are not checked")
    else:
        defaults(service)
with tempfile.TemporaryDirectory() as folder:
    compose(here, folder)
for variant, values in chart.VARIANTS.items() if chart.library() else []:
    kubernetes(here, f"Helm, {variant}", chart.render(values))
print("\n".join(failures) or f"{', '.join(here)}: every setting is known")
sys.exit(bool(failures))
