"""Both overlays are valid by the cluster's own schemas, and everything they refer to is there."""

import json
import re
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import kustomize

ROOT = Path(__file__).resolve().parents[2]
VERSION = "1.31"
SERVICES = ["auth", "order-intake", "rma-engine", "exchange", "warehouse-notifier"]
# Resources of operators: their schemas come with the operators, so these are the fields that we use, as the
# operators' documentation spells them. ... stands for anything.
NAME = {"name": ...}
VOLUME = {"size": ..., "storageClass": ...}
SHARES = {"requests": ..., "limits": ...}
ROLE = {"name": ..., "ensure": ..., "login": ..., "connectionLimit": ..., "inRoles": ..., "passwordSecret": NAME}
ENDPOINT = {"port": ..., "path": ..., "params": ..., "interval": ..., "relabelings": [{"sourceLabels": ..., "targetLabel": ..., "replacement": ...}]}
FOREIGN = {
    ("rabbitmq.com/v1beta1", "RabbitmqCluster"): {
        "replicas": ..., "image": ..., "persistence": {"storage": ...}, "resources": SHARES, "affinity": ...,
        "rabbitmq": {"additionalPlugins": ..., "additionalConfig": ..., "advancedConfig": ...},
    },
    ("postgresql.cnpg.io/v1", "Cluster"): {
        "instances": ..., "imageName": ..., "primaryUpdateStrategy": ..., "minSyncReplicas": ..., "maxSyncReplicas": ...,
        "storage": VOLUME, "walStorage": VOLUME, "postgresql": {"parameters": ...}, "resources": SHARES,
        "affinity": {"topologyKey": ..., "podAntiAffinityType": ...}, "managed": {"roles": [ROLE]},
    },
    ("postgresql.cnpg.io/v1", "Database"): {"cluster": NAME, "name": ..., "owner": ..., "databaseReclaimPolicy": ...},
    ("keda.sh/v1alpha1", "ScaledObject"): {
        "scaleTargetRef": NAME, "minReplicaCount": ..., "maxReplicaCount": ..., "cooldownPeriod": ...,
        "triggers": [{
            "type": ..., "metricType": ..., "authenticationRef": NAME,
            "metadata": {"protocol": ..., "queueName": ..., "mode": ..., "value": ...},
        }],
    },
    ("keda.sh/v1alpha1", "TriggerAuthentication"): {"secretTargetRef": [{"parameter": ..., "name": ..., "key": ...}]},
    ("monitoring.coreos.com/v1", "PodMonitor"): {"selector": {"matchLabels": ..., "matchExpressions": ...}, "podMetricsEndpoints": [ENDPOINT]},
    ("monitoring.coreos.com/v1", "PrometheusRule"): {"groups": ...},
}
# Created during the installation, see docs/deploy.md, or by the operators of the servers.
SECRETS = {"sealing", "first-operator", "rabbitmq-definitions", "rabbitmq-default-user", "postgres-ca"} | {
    f"{service}-{what}" for service in SERVICES for what in ["database", "database-migrate", "broker"]
}
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
# Connections beside the pools: of each service's relay and dispatcher, of its migration, and those that
# PostgreSQL keeps for superusers, the operator and people.
LEADING, MIGRATING, RESERVED = 2, 1, 50
# MAX_BYTES of crates/domain/src/warehouse.
LONGEST_MESSAGE = 512 * 1024
# The labels that operators give to the pods they make: none of ours with app.kubernetes.io come through.
PODS_OF_OPERATORS = {
    "rabbitmq": {
        "app.kubernetes.io/name": "rabbitmq",
        "app.kubernetes.io/component": "rabbitmq",
        "app.kubernetes.io/part-of": "rabbitmq",
    },
    "postgres": {
        "app.kubernetes.io/name": "postgresql",
        "app.kubernetes.io/instance": "postgres",
        "app.kubernetes.io/managed-by": "cloudnative-pg",
        "cnpg.io/cluster": "postgres",
    },
}


def check(overlay):
    objects = kustomize.build(ROOT / "deploy/kubernetes/overlays" / overlay)
    monitors = kustomize.build(ROOT / "deploy/kubernetes/monitoring")
    for each in objects + monitors:
        known = FOREIGN.get((each["apiVersion"], each["kind"]))
        if known is None:
            kubernetes_validate.validate(each, VERSION, strict=True)
        else:
            unknown = list(strange(each["spec"], known, each["kind"]))
            assert not unknown, f"fields that the operator does not know: {unknown}"
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert len(names) == len(objects), "two objects have one name"
    for each in objects:
        references(each, names)
        space = each["metadata"].get("namespace")
        assert each["kind"] == "Namespace" or ("Namespace", space) in names, f"nobody makes the namespace {space}"
    for service in SERVICES:
        for kind in ["Deployment", "Service", "PodDisruptionBudget", "ConfigMap"]:
            assert (kind, service) in names, f"{service} has no {kind}"
        assert ("Job", f"{service}-migrate") in names, f"{service} has no migration job"
        scaled = {(kind, service) for kind in SCALERS} & names
        assert len(scaled) == 1, f"{service} is scaled by {scaled}"
        deployment = kustomize.find(objects, "Deployment", service)
        spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
        ignored = [each for each in spread if each.get("nodeTaintsPolicy") != "Honor"]
        assert not ignored, f"{service}: a node with a taint counts as empty, and nobody may be second on another"
        assert "replicas" not in deployment["spec"], f"{service}: each apply would undo the autoscaler"
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            hardened(each)
    names_are_looked_up(objects)
    queues_are_watched(objects)
    broker_is_told_the_same(objects)
    certificates_are_watched(objects)
    everyone_is_scraped(objects, monitors)
    connections_suffice(objects)
    messages_fit(objects)
    events_fit(objects)
    return len(objects)


def strange(value, known, path):
    """Where a value has fields that are not among the known ones."""
    if known is ...:
        return
    if isinstance(known, list):
        for element in value:
            yield from strange(element, known[0], f"{path}[]")
        return
    for key, inner in value.items():
        if key in known:
            yield from strange(inner, known[key], f"{path}.{key}")
        else:
            yield f"{path}.{key}"


def references(each, names):
    text = repr(each)
    for name in re.findall(r"'secretKeyRef': \{'name': '([^']+)'", text) + re.findall(r"'secretName': '([^']+)'", text):
        assert name in SECRETS or name.endswith("-tls"), f"{each['metadata']['name']} wants the secret {name}"
    for name in re.findall(r"'configMapRef': \{'name': '([^']+)'", text) + re.findall(r"'configMap': \{'name': '([^']+)'", text):
        assert ("ConfigMap", name) in names, f"{each['metadata']['name']} wants the ConfigMap {name}"
    if each["kind"] == "Ingress":
        for rule in each["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                assert ("Service", path["backend"]["service"]["name"]) in names
                assert path["path"] not in ("/", "/metrics"), "metrics are not for the world"
        hosts = {rule["host"] for rule in each["spec"]["rules"]}
        assert hosts == {host for tls in each["spec"]["tls"] for host in tls["hosts"]}, "a host without TLS"
        hashed = each["metadata"]["annotations"].get("nginx.ingress.kubernetes.io/upstream-hash-by")
        assert hashed == "$remote_addr", "a rate limit is counted by replica, so an address must stay at one"


def hardened(each):
    pod = each["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in kustomize.containers(each):
        name = f"{each['metadata']['name']}/{container['name']}"
        closed = container["securityContext"]
        assert closed["readOnlyRootFilesystem"] and not closed["allowPrivilegeEscalation"], name
        assert set(container["resources"]) == {"requests", "limits"}, name
        for line in "\n".join([*container.get("command", []), *container.get("args", [])]).splitlines():
            for variable in container.get("env", []):
                shown = re.search(rf"\b(curl|psql)\b.*\$\{{?{variable['name']}\b", line)
                assert not (shown and "valueFrom" in variable), f"{name}: a secret in a command line: {line}"
        assert ":" in container["image"] and not container["image"].endswith(":latest"), f"{name}: {container['image']}"
        if each["kind"] == "Deployment":
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container), name


def names_are_looked_up(objects):
    """Whoever has bounds on what it may call may ask for addresses."""
    policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    for name, labels in pods(objects):
        its = [policy for policy in policies if selects(policy["podSelector"], labels)]
        assert its, f"no network policy is for {name}"
        bounded = [policy for policy in its if "Egress" in policy["policyTypes"]]
        assert not bounded or any(allows_dns(policy) for policy in bounded), f"{name} cannot look up a name"


def pods(objects):
    yield from PODS_OF_OPERATORS.items()
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            yield each["metadata"]["name"], each["spec"]["template"]["metadata"]["labels"]


def selects(selector, labels):
    assert set(selector) <= {"matchLabels", "matchExpressions"}, selector
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In", expression
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return selector.get("matchLabels", {}).items() <= labels.items()


def allows_dns(policy):
    """From the cluster's servers, and from the cache that some clusters have on each node."""
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    cache = {"ipBlock": {"cidr": "169.254.20.10/32"}}
    open_ports = {
        (port["protocol"], port["port"])
        for rule in policy.get("egress", [])
        if system in rule.get("to", []) and cache in rule["to"]
        for port in rule["ports"]
    }
    return {("UDP", 53), ("TCP", 53)} <= open_ports


def connections_suffice(objects):
    """With every autoscaler at its most and every deployment being rolled, nobody is refused a connection."""
    cluster = kustomize.find(objects, "Cluster", "postgres")["spec"]
    limits = {role["name"]: role.get("connectionLimit", 0) for role in cluster["managed"]["roles"]}
    total = 0
    for service in SERVICES:
        needed = connections(objects, service)
        limit = limits[service.replace("-", "_")]
        assert needed <= limit, f"{service} opens {needed} connections, and its role may open {limit}"
        total += needed + MIGRATING
    most = int(cluster["postgresql"]["parameters"]["max_connections"]) - RESERVED
    assert total <= most, f"the services open {total} connections, and there are {most} for them"


def connections(objects, service):
    """The pool of each replica, what its workers keep for themselves, and what those hold that lead."""
    (scaler,) = [each["spec"] for each in objects if each["kind"] in SCALERS and each["metadata"]["name"] == service]
    surge = kustomize.find(objects, "Deployment", service)["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    replicas = scaler.get("maxReplicas") or scaler["maxReplicaCount"]
    # A sender of each kind of message settles, the gateway's writer stores, over connections of their own.
    own = len(work_queues(scaler)) + (service == "order-intake")
    return (replicas + surge) * (setting(objects, service, "database", "max_connections") + own) + LEADING


def messages_fit(objects):
    """The longest messages, as many as a replica may hold, fit in its memory beside what comes in."""
    service = "warehouse-notifier"
    (scaler,) = [each["spec"] for each in objects if each["kind"] in SCALERS and each["metadata"]["name"] == service]
    # One that is being sent may be acknowledged early, and then another is held in its stead.
    held = sum(setting(objects, service, "delivery", name) for name in ["prefetch", "concurrency", "slow_concurrency"])
    held *= len(work_queues(scaler))
    needed = setting(objects, service, "bodies", "bytes_in_flight") + held * LONGEST_MESSAGE
    assert needed < memory(objects, service), f"{service} may need {needed} bytes"


def events_fit(objects):
    """The largest orders, as many as a consumer may hold, take half of the memory: the rest is for its work."""
    service = "rma-engine"
    held = setting(objects, service, "broker", "prefetch")
    needed = held * setting(objects, "order-intake", "http", "max_body_bytes")
    assert needed <= memory(objects, service) / 2, f"{service} may hold {needed} bytes of orders"


def memory(objects, service):
    (container,) = kustomize.containers(kustomize.find(objects, "Deployment", service))
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", container["resources"]["limits"]["memory"]).groups()
    return int(number) * 1024 ** {"Mi": 2, "Gi": 3}[unit]


def work_queues(scaler):
    return [trigger["metadata"]["queueName"] for trigger in scaler.get("triggers", []) if trigger["type"] == "rabbitmq"]


def queues_are_watched(objects):
    """Every work queue in the broker's definitions scales its service."""
    definitions = json.loads((ROOT / "deploy/rabbitmq/definitions.json").read_text())
    names = [queue["name"] for queue in definitions["queues"]]
    work = sorted(name for name in names if name.startswith("notify.") and not name.endswith(".dead"))
    watched = sorted(name for each in objects if each["kind"] == "ScaledObject" for name in work_queues(each["spec"]))
    assert watched == work, f"KEDA watches {watched}, the work queues are {work}"


def broker_is_told_the_same(objects):
    """A node in a cluster is told what a node in compose is told, but for what differs by nature."""
    broker = kustomize.find(objects, "RabbitmqCluster", "rabbitmq")["spec"]["rabbitmq"]
    # Definitions come by a job, users by the operator, which also knows the limit of the container.
    own = ("load_definitions", "loopback_users.", "vm_memory_high_watermark.", "prometheus.")
    files = [(ROOT / "deploy/rabbitmq/rabbitmq.conf").read_text(), broker["additionalConfig"]]
    compose, cluster = ({key: value for key, value in settings(file) if not key.startswith(own)} for file in files)
    assert compose == cluster, f"only in compose: {compose.items() - cluster.items()}; only in Kubernetes: {cluster.items() - compose.items()}"
    advanced = (ROOT / "deploy/rabbitmq/advanced.config").read_text()
    terms = "".join(line for line in advanced.splitlines() if not line.startswith("%%"))
    assert terms == broker["advancedConfig"].strip(), "advanced.config and advancedConfig differ"
    plugins = set(re.findall(r"\w+", (ROOT / "deploy/rabbitmq/enabled_plugins").read_text()))
    # The operator adds the console by itself.
    assert plugins == {*broker["additionalPlugins"], "rabbitmq_management"}, f"compose has the plugins {plugins}"


def settings(file):
    for line in file.splitlines():
        if line and not line.startswith("#"):
            key, value = line.split("=", 1)
            yield key.strip(), value.strip()


def certificates_are_watched(objects):
    """cert-manager names a certificate after the secret it is for."""
    kept = {tls["secretName"] for each in objects if each["kind"] == "Ingress" for tls in each["spec"]["tls"]}
    rules = (ROOT / "deploy/prometheus/rules/backhaul.yml").read_text()
    watched = re.findall(r'certmanager_\w+\{name=~"([^"]+)"\}', rules)
    same = bool(watched) and all(set(names.split("|")) == kept for names in watched)
    assert same, f"the ingress has {kept}, the rules watch {watched}"


def everyone_is_scraped(objects, monitors):
    """In a cluster there are the same jobs, services and rules as in compose, so the same alerts."""
    (rules,) = kustomize.documents(ROOT / "deploy/prometheus/rules/backhaul.yml")
    copy = kustomize.find(monitors, "PrometheusRule", "backhaul")["spec"]
    assert copy == rules, "deploy/kubernetes/monitoring/rules.yaml is no copy of deploy/prometheus/rules/backhaul.yml"
    (compose,) = kustomize.documents(ROOT / "deploy/prometheus/prometheus.yml")
    wanted = {
        (job["job_name"], job.get("metrics_path", "/metrics"), repr(job.get("params", {})), target["labels"]["service"])
        for job in compose["scrape_configs"]
        for target in job["static_configs"]
    }
    found = {
        (labels["job"], endpoint["path"], repr(endpoint.get("params", {})), labels["service"])
        for monitor in monitors
        if monitor["kind"] == "PodMonitor" and monitor["metadata"]["name"] != "postgres"
        for _, pod in pods(objects)
        if selects(monitor["spec"]["selector"], pod)
        for endpoint in monitor["spec"]["podMetricsEndpoints"]
        for labels in [relabelled(endpoint, pod)]
    }
    assert found == wanted, f"only in compose: {wanted - found}; only in Kubernetes: {found - wanted}"


def relabelled(endpoint, pod):
    """The labels that an endpoint sets, as Prometheus would: a fixed value, or one of the pod's labels."""
    discovered = {"__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", name): value for name, value in pod.items()}
    discovered["__meta_kubernetes_pod_name"] = "pod"
    labels = {}
    for rule in endpoint["relabelings"]:
        labels[rule["targetLabel"]] = rule.get("replacement") or discovered[rule["sourceLabels"][0]]
    return labels


def setting(objects, service, section, name):
    """As the service would read it: from its ConfigMap, from its own defaults, from those it shares."""
    variable = "__".join([service.replace("-", "_"), section, name]).upper()
    data = kustomize.find(objects, "ConfigMap", service)["data"]
    if variable in data:
        return int(data[variable])
    for crate in [service, "delivery", "messaging", "platform"]:
        defaults = tomllib.loads((ROOT / "crates" / crate / "default.toml").read_text())
        if name in defaults.get(section, {}):
            return defaults[section][name]
    raise AssertionError(f"{service} has no {section}.{name}")


def main():
    copies = ["deploy/postgres/grants.sql", "deploy/kubernetes/base/grants.sql"]
    assert len({(ROOT / copy).read_text() for copy in copies}) == 1, f"{copies} differ: kustomize cannot look outside"
    for document in kustomize.documents(ROOT / "deploy/kubernetes/ingress-controller/config.yaml"):
        kubernetes_validate.validate(document, VERSION, strict=True)
    for overlay in ["sandbox", "production"]:
        print(f"{overlay}: {check(overlay)} objects")


if __name__ == "__main__":
    sys.exit(main())
