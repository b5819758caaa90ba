"""Checks that alert rules, their tests, dashboards and documentation use only metrics that exist: those defined
in the source code, and those that deploy/prometheus/foreign-metrics.txt lists."""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# A method of the meter, or a local function of the same name without the type.
DEFINED = re.compile(r'(?<!\w)(?:(?:u64|i64|f64)_(?:observable_)?)?(counter|gauge|histogram|up_down_counter)\(\s*"(\w+)"')
SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
KEYWORDS = {
    "sum", "max", "min", "by", "rate", "increase", "histogram_quantile", "and", "or", "unless", "on", "time",
    "count", "label_values", "le", "absent", "offset", "vector", "min_over_time",
}


def defined():
    """The kind and the name, with the prefix that the exporter adds, of each metric in the source code."""
    for file in ROOT.glob("crates/*/src/**/*.rs"):
        for kind, name in DEFINED.findall(file.read_text()):
            if not name.startswith("test_"):
                yield kind, f"backhaul_{name}"


def badly_named():
    """The exporter adds the prefix and `_total`; in a definition they would appear twice."""
    for _, name in defined():
        if name.startswith("backhaul_backhaul_") or name.endswith("_total"):
            yield name


def exported():
    return {"up"} | {name + suffix for kind, name in defined() for suffix in SUFFIXES.get(kind, [""])}


def mentioned():
    """Metrics of ours in the documentation and in the tests of the rules. A histogram has no suffix in prose. The
    databases have names like metrics."""
    databases = set(re.findall(r"\bbackhaul_\w+", (ROOT / "deploy/kubernetes/postgres.yaml").read_text()))
    for file in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/prometheus/tests/*.yml")]):
        for name in sorted(set(re.findall(r"\bbackhaul_\w+", file.read_text())) - databases):
            yield file.name, name


def foreign():
    lines = (ROOT / "deploy/prometheus/foreign-metrics.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def metrics_in(expression):
    """The metrics in an expression, without label matchers, groupings, durations and numbers."""
    bare = without_groupings(re.sub(r"\{[^}]*\}", " ", expression))
    bare = re.sub(r"\[[^\]]*\]", " ", bare)
    bare = re.sub(r"label_values\(([^,]+),[^)]*\)", r"\1", bare)
    return {word for word in re.findall(r"(?<![\w.])[a-zA-Z_]\w*", bare) if word not in KEYWORDS}


def without_groupings(expression):
    return re.sub(r"\b(by|on|without|ignoring)\s*\([^)]*\)", " ", expression)


def expressions():
    for file in sorted(ROOT.glob("deploy/prometheus/rules/*.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                yield f"{file.name}: {rule['alert']}", rule["expr"]
    for file in sorted(ROOT.glob("deploy/grafana/dashboards/*.json")):
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"{file.name}: {panel['title']}", target["expr"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{file.name}: ${variable['name']}", variable["query"]["query"]


def foreign_selectors(expression):
    """Metrics in an expression that may also come from other software: they have neither our prefix nor a label
    that only Backhaul has."""
    for name, labels in re.findall(r"\b((?:up|process|rabbitmq|certmanager)\w*)\b(\{[^}]*\})?", without_groupings(expression)):
        if not re.search(r'\bjob=~?"backhaul|\bname=~"backhaul-', labels):
            yield name


def tested():
    """Alerts that fire in a test."""
    for file in ROOT.glob("deploy/prometheus/tests/*.yml"):
        for test in yaml.safe_load(file.read_text())["tests"]:
            yield from (each["alertname"] for each in test["alert_rule_test"] if each["exp_alerts"])


def unwatched(rules):
    """The targets of deploy/prometheus/prometheus.yml, each a job and a service, whose absence causes no alert."""
    watched = {pair for rule in rules for pair in re.findall(r'absent\(up\{job="([^"]+)", service="([^"]+)"\}\)', rule["expr"])}
    jobs = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["scrape_configs"]
    targets = {(job["job_name"], target["labels"]["service"]) for job in jobs for target in job["static_configs"]}
    yield from (f"{service} of the job {job}: no alert fires if it is absent" for job, service in sorted(targets - watched))
    yield from (f"{service} of the job {job}: an alert names it, but no target" for job, service in sorted(watched - targets))


known, used = exported() | foreign(), set()
failures = [f"{name}: the exporter adds the prefix and the suffix" for name in badly_named()]
for location, expression in expressions():
    used |= metrics_in(expression)
    for name in sorted(metrics_in(expression) - known):
        failures.append(f"{location}: there is no metric {name}")
    failures += [f"{location}: {name} is not limited to Backhaul" for name in foreign_selectors(expression)]
documented = known | {name for kind, name in defined() if kind == "histogram"}
failures += [f"{file}: there is no metric {name}" for file, name in mentioned() if name not in documented]
assert list(foreign_selectors('up == 0 or rabbitmq_connections{job="mail"} or backhaul_up')) == ["up", "rabbitmq_connections"]
rules = {rule["alert"]: rule for file in ROOT.glob("deploy/prometheus/rules/*.yml") for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]}
failures += [f"the alert {name} does not fire in any test" for name in sorted(set(rules) - set(tested()))]
failures += unwatched(rules.values())
manual = (ROOT / "docs/respond-to-alerts.md").read_text()
sections = {heading.lower() for heading in re.findall(r"^### (\w+)$", manual, re.MULTILINE)}
for name, rule in rules.items():
    page, _, anchor = rule["annotations"].get("runbook_url", "").rpartition("/")[2].partition("#")
    if not (ROOT / "docs" / page).is_file() or anchor != name.lower() or anchor not in sections:
        failures.append(f"{name}: runbook_url does not lead to its section in docs/respond-to-alerts.md")
    if rule["labels"]["severity"] not in ("page", "ticket"):
        failures.append(f"{name}: the severity is neither page nor ticket")
failures += [f"{name} is listed but not used" for name in sorted(foreign() - used)]
print("\n".join(failures) or f"{len(used)} metrics, {len(rules)} alerts: all exist")
sys.exit(bool(failures))
