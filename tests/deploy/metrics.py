"""Checks that alert rules and dashboards use only metrics that exist: those defined in the source code, and
those of other programs, which deploy/prometheus/foreign-metrics.txt lists."""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEFINED = re.compile(r'\.(?:u64|i64|f64)_(?:observable_)?(counter|gauge|histogram|up_down_counter)\(\s*"(\w+)"')
# Gauges that a helper function creates; the name is its first argument.
HELPER_DEFINED = re.compile(r'gauge\(\s*"(\w+)"')
KEYWORDS = {
    "sum", "max", "min", "by", "rate", "increase", "histogram_quantile", "and", "or", "unless", "on", "time",
    "count", "label_values", "le", "m",
}


def defined():
    names = {"up"}
    for file in ROOT.glob("crates/*/src/**/*.rs"):
        text = file.read_text()
        for kind, name in DEFINED.findall(text):
            suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(kind, [""])
            names |= {name + suffix for suffix in suffixes}
        names |= set(HELPER_DEFINED.findall(text))
    return names


def foreign():
    lines = (ROOT / "deploy/prometheus/foreign-metrics.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def metrics_in(expression):
    """The metrics in an expression, without label matchers, groupings, durations and numbers."""
    bare = re.sub(r"\{[^}]*\}", " ", expression)
    bare = re.sub(r"\b(by|on|without|ignoring)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\[[^\]]*\]", " ", bare)
    bare = re.sub(r"label_values\(([^,]+),[^)]*\)", r"\1", bare)
    return {word for word in re.findall(r"[a-zA-Z_]\w*", bare) if word not in KEYWORDS}


def expressions():
    for file in sorted(ROOT.glob("deploy/prometheus/rules/*.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                yield f"{file.name}: {rule['alert']}", rule["expr"]
    for file in sorted(ROOT.glob("deploy/grafana/dashboards/*.json")):
        dashboard = json.loads(file.read_text())
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]), file
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"{file.name}: {panel['title']}", target["expr"]
        for variable in dashboard["templating"]["list"]:
            yield f"{file.name}: ${variable['name']}", variable["query"]["query"]


def tested():
    """Alerts that fire in a test."""
    for file in ROOT.glob("deploy/prometheus/tests/*.yml"):
        for test in yaml.safe_load(file.read_text())["tests"]:
            yield from (each["alertname"] for each in test["alert_rule_test"] if each["exp_alerts"])


known, failures, used = defined() | foreign(), [], set()
for location, expression in expressions():
    used |= metrics_in(expression)
    for name in sorted(metrics_in(expression) - known):
        failures.append(f"{location}: there is no metric {name}")
rules = {rule["alert"] for file in ROOT.glob("deploy/prometheus/rules/*.yml") for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]}
failures += [f"the alert {name} does not fire in any test" for name in sorted(rules - set(tested()))]
manual = (ROOT / "docs/respond-to-alerts.md").read_text()
failures += [f"docs/respond-to-alerts.md has no section for {name}" for name in sorted(rules) if f"### {name}" not in manual]
failures += [f"{name} is listed but not used" for name in sorted(foreign() - used)]
print("\n".join(failures) or f"{len(used)} metrics, {len(rules)} alerts: all exist")
sys.exit(bool(failures))
