"""Renders the Helm chart with Helm's own library and returns its objects."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/backhaul"
# Values of installations that differ from the default as much as possible.
VARIANTS = {
    "default": {},
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


def render(values):
    with library().Chart.load(CHART) as chart:
        files = chart.render(values, name="backhaul", namespace="space")
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]
