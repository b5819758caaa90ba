"""Renders the Helm chart with Helm's own library and returns its objects, and reads those of the servers."""

from pathlib import Path

import yaml
from yaml import CSafeLoader

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/backhaul"

def values_file(name):
    return yaml.safe_load((ROOT / f"deploy/helm/{name}.yaml").read_text())


# The installations that docs/install-on-kubernetes.md describes.
INSTALLATIONS = ["production", "sandbox"]
# Values of further installations that differ from the default as much as possible.
VARIANTS = {
    "default": {},
    **{name: values_file(name) for name in INSTALLATIONS},
    "everything": {
        "image": {"tag": "9.9.9", "pullSecrets": [{"name": "registry"}]},
        "domain": "shop.example",
        "database": {"authoritySecret": "postgres-ca"},
        "broker": {"scheme": "amqps", "port": 5671, "administratorSecret": "rabbitmq-default-user", "nodes": 3},
        "telemetry": {"otlpEndpoint": "http://otel-collector.observability:4318/v1/traces"},
        "ingress": {
            "hosts": {"console": "operators.shop.example"},
            "secondIssuer": {"clusterIssuer": "public-2", "services": ["auth", "order-intake"]},
            "portalHosts": ["returns.acme.example"],
            "portalTls": [
                {"secretName": "backhaul-portal-globex-tls", "hosts": ["returns.globex.example", "rma.globex.example"]},
                {"secretName": "initech-tls", "hosts": ["returns.initech.example"], "existing": True},
            ],
        },
        "services": {
            "order-intake": {"settings": {"LIMITS__REQUESTS_PER_MINUTE": 2500}},
            # Not the prefix of the service, but a section of its settings.
            "rma-engine": {"settings": {"PORTAL__PUBLIC_URL": "https://portal.shop.example"}},
        },
        "trustedProxies": "10.0.0.0/8, 192.0.2.7,fd00::/8,::1",
        "networkPolicies": {"databasePeers": [{"podSelector": {"matchLabels": {"cnpg.io/cluster": "postgres"}}}]},
        "monitoring": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    },
    "existing secrets": {"secrets": {"existingSecret": {"sealing": "vault-sealing", "auth-database": "auth-role"}}},
    "bare": {
        "secrets": {"generate": False},
        "autoscaling": {"enabled": False},
        # Without an autoscaler only the minimum counts.
        "services": {"portal": {"replicas": {"min": 9}}},
        "ingress": {"enabled": False},
        "networkPolicies": {"enabled": False},
    },
}


def library():
    """Helm's library, or None where its package does not exist (other than x86-64)."""
    try:
        import helm_python
    except ImportError:
        return None
    return helm_python


def read(text):
    """The objects of a text. The loader in C reads the objects of a chart in a tenth of the time."""
    return [document for document in yaml.load_all(text, CSafeLoader) if document]


def documents(path):
    return read(path.read_text())


def servers():
    """PostgreSQL and RabbitMQ, which the chart does not run."""
    return [each for name in ("postgres", "rabbitmq") for each in documents(ROOT / f"deploy/kubernetes/{name}.yaml")]


def monitors():
    return [each for file in sorted((ROOT / "deploy/kubernetes/monitoring").glob("*.yaml")) for each in documents(file)]


def find(objects, kind, name):
    found = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    assert len(found) == 1, f"there are {len(found)} objects {kind} {name}"
    return found[0]


def containers(document):
    pod = document.get("spec", {}).get("template", {}).get("spec", {})
    return pod.get("initContainers", []) + pod.get("containers", [])


def render(values):
    with library().Chart.load(CHART) as chart:
        files = chart.render(values, name="backhaul", namespace="space")
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return [document for text in texts for document in read(text)]
