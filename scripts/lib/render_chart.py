"""Prints the Kubernetes objects that the Helm chart makes of a file with values, for installations without Helm. The
secrets are not among them: deploy/kubernetes/make-secrets makes them. usage: render_chart.py VALUES-FILE NAMESPACE

Needs Helm's own library (helm-python-sdk) and PyYAML."""

import sys
from pathlib import Path

import helm_python
import yaml

ROOT = Path(__file__).resolve().parents[2]


def main(file, namespace):
    values = yaml.safe_load(Path(file).read_text())
    # Without a cluster, the chart would generate new secrets each time.
    values["secrets"] = {**values.get("secrets", {}), "generate": False}
    with helm_python.Chart.load(ROOT / "deploy/helm/backhaul") as chart:
        version = yaml.safe_load((ROOT / "deploy/helm/backhaul/Chart.yaml").read_text())["version"]
        files = chart.render(values, name="backhaul", namespace=namespace)
    print(f"# Backhaul {version} for the namespace {namespace}, rendered from the Helm chart with deploy/helm/{Path(file).name}.")
    print("# docs/install-on-kubernetes.md says how to change and apply it.")
    for name, text in sorted(files.items()):
        if name.endswith(".yaml") and text.strip():
            print("---\n" + text.strip().removeprefix("---").strip())


if __name__ == "__main__":
    main(*sys.argv[1:])
