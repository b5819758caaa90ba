"""Rules and dashboards speak only of metrics that exist: those the code makes, by their names in the
source, and those of others, listed in deploy/prometheus/foreign-metrics.txt."""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
MADE = re.compile(r'\.(?:u64|i64|f64)_(?:observable_)?(counter|gauge|histogram|up_down_counter)\(\s*"(\w+)"')
# Gauges that a helper makes: name first, then what it is about.
HELPED = re.compile(r'gauge\(\s*"(\w+)"')
WORDS = {
    "sum", "max", "min", "by", "rate", "increase", "histogram_quantile", "and", "or", "unless", "on", "time",
    "count", "label_values", "le", "m",
}


def made():
    names = {"up"}
    for file in ROOT.glob("crates/*/src/**/*.rs"):
        text = file.read_text()
        for kind, name in MADE.findall(text):
            suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(kind, [""])
            names |= {name + suffix for suffix in suffixes}
        names |= set(HELPED.findall(text))
    return names


def foreign():
    lines = (ROOT / "deploy/prometheus/foreign-metrics.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def spoken_of(expression):
    """The metrics of an expression: its words, without label matchers, groupings, durations and numbers."""
    bare = re.sub(r"\{[^}]*\}", " ", expression)
    bare = re.sub(r"\b(by|on|without|ignoring)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\[[^\]]*\]", " ", bare)
    bare = re.sub(r"label_values\(([^,]+),[^)]*\)", r"\1", bare)
    return {word for word in re.findall(r"[a-zA-Z_]\w*", bare) if word not in WORDS}


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
    """Alerts with a case in which they fire."""
    for file in ROOT.glob("deploy/prometheus/tests/*.yml"):
        for test in yaml.safe_load(file.read_text())["tests"]:
            yield from (each["alertname"] for each in test["alert_rule_test"] if each["exp_alerts"])


known, failures, spoken = made() | foreign(), [], set()
for where, expression in expressions():
    spoken |= spoken_of(expression)
    for name in sorted(spoken_of(expression) - known):
        failures.append(f"{where}: there is no metric {name}")
rules = {rule["alert"] for file in ROOT.glob("deploy/prometheus/rules/*.yml") for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]}
failures += [f"the alert {name} is never seen to fire in a test" for name in sorted(rules - set(tested()))]
manual = (ROOT / "docs/respond-to-alerts.md").read_text()
failures += [f"docs/respond-to-alerts.md does not say what to do about {name}" for name in sorted(rules) if f"### {name}" not in manual]
failures += [f"{name} is listed and nobody speaks of it" for name in sorted(foreign() - spoken)]
print("\n".join(failures) or f"{len(spoken)} metrics, {len(rules)} alerts: all exist")
sys.exit(bool(failures))
