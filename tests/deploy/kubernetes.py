"""Checks the installations on Kubernetes, which are the chart with values, the servers and the monitors: schemas,
references between objects, security settings, sizes, and agreement with the compose files."""

import functools
import json
import re
import sys
import tomllib
from pathlib import Path

import chart
import kubernetes_validate
from kubernetes_validate import utils

ROOT = Path(__file__).resolve().parents[2]
VERSION = "1.31"
# The library reads its schemas, which are large, again for each object.
utils.schema_contents = functools.cache(utils.schema_contents)
SERVICES = ["auth", "order-intake", "rma-engine", "exchange", "warehouse-notifier"]
# Web pages without a database and a migration.
PAGES = ["console", "portal"]
# Paths of a process that the public must not reach. The API document of a service with web pages is empty.
PRIVATE_PATHS = {"/healthz", "/metrics", "/readyz", "/version"}
PRIVATE_PATHS_OF_PAGES = PRIVATE_PATHS | {"/openapi.json"}
# The fields that we use in custom resources, whose schemas are not available here. `...` matches any value.
NAME = {"name": ...}
VOLUME = {"size": ..., "storageClass": ...}
RESOURCES = {"requests": ..., "limits": ...}
ROLE = {"name": ..., "ensure": ..., "login": ..., "connectionLimit": ..., "inRoles": ..., "passwordSecret": NAME}
ENDPOINT = {"port": ..., "path": ..., "params": ..., "interval": ..., "relabelings": [{"sourceLabels": ..., "targetLabel": ..., "replacement": ...}]}
CUSTOM_RESOURCES = {
    ("rabbitmq.com/v1beta1", "RabbitmqCluster"): {
        "replicas": ..., "image": ..., "persistence": {"storage": ...}, "resources": RESOURCES, "affinity": ...,
        "rabbitmq": {"additionalPlugins": ..., "additionalConfig": ..., "advancedConfig": ...},
    },
    ("postgresql.cnpg.io/v1", "Cluster"): {
        "instances": ..., "imageName": ..., "primaryUpdateStrategy": ..., "minSyncReplicas": ..., "maxSyncReplicas": ...,
        "storage": VOLUME, "walStorage": VOLUME, "postgresql": {"parameters": ...}, "resources": RESOURCES,
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
# Created during the installation, see docs/install-on-kubernetes.md, or by the operators of the servers.
SECRETS = {"sealing", "shopper", "first-operator", "portal", "rabbitmq-definitions", "rabbitmq-default-user", "postgres-ca"} | {
    f"{service}-{what}" for service in SERVICES for what in ["database", "database-migrate", "broker"]
}
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
# Connections outside the pools: the relay and the dispatcher of each service, its migration job, and a
# reserve for superusers, the operator and people.
LEADER_TASKS, MIGRATING, RESERVED = 2, 1, 50
# MAX_BYTES of crates/domain/src/warehouse.
LONGEST_MESSAGE = 512 * 1024
# Ports of PostgreSQL and its operator, and of RabbitMQ: AMQP, console, metrics and traffic between nodes.
SERVER_PORTS = [5432, 8000, 9187, 5671, 5672, 15672, 15692, 4369, 25672]
# The labels of pods that operators create. Our own app.kubernetes.io labels are not applied to them.
OPERATOR_PODS = {
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


def check(installation):
    objects = chart.render(chart.VARIANTS[installation]) + chart.servers()
    monitors = chart.monitors()
    for each in objects + monitors:
        known = CUSTOM_RESOURCES.get((each["apiVersion"], each["kind"]))
        if known is None:
            kubernetes_validate.validate(each, VERSION, strict=True)
        else:
            unknown = list(unknown_fields(each["spec"], known, each["kind"]))
            assert not unknown, f"unknown fields: {unknown}"
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert len(names) == len(objects), "two objects have the same name"
    for each in objects:
        check_references(each, names)
    for service in [*SERVICES, *PAGES]:
        for kind in ["Deployment", "Service", "PodDisruptionBudget", "ConfigMap"]:
            assert (kind, service) in names, f"{service} has no {kind}"
        assert service in PAGES or ("Job", f"{service}-migrate-1") in names, f"{service} has no migration job"
        scaled = {(kind, service) for kind in SCALERS} & names
        assert len(scaled) == 1, f"{service} is scaled by {scaled}"
        deployment = chart.find(objects, "Deployment", service)
        spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
        ignored = [each for each in spread if each.get("nodeTaintsPolicy") != "Honor"]
        assert not ignored, f"{service}: nodes with taints must not count in the topology spread"
        assert "replicas" not in deployment["spec"], f"{service}: replicas is set, so each apply would undo the autoscaler"
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            check_security(each)
    check_dns_access(objects)
    check_server_access(objects, amqp={5672})
    check_queue_scaling(objects)
    check_broker_settings(objects)
    check_certificate_alerts(objects)
    check_scraping(objects, monitors)
    check_connection_limits(objects)
    check_message_memory(objects)
    check_event_memory(objects)
    return len(objects)


def unknown_fields(value, known, path):
    """The paths of fields that are not in `known`."""
    if known is ...:
        return
    if isinstance(known, list):
        for element in value:
            yield from unknown_fields(element, known[0], f"{path}[]")
        return
    for key, inner in value.items():
        if key in known:
            yield from unknown_fields(inner, known[key], f"{path}.{key}")
        else:
            yield f"{path}.{key}"


def check_references(each, names):
    text = repr(each)
    for name in re.findall(r"'secretKeyRef': \{'name': '([^']+)'", text) + re.findall(r"'secretName': '([^']+)'", text):
        assert name in SECRETS or name.endswith("-tls"), f"{each['metadata']['name']} refers to the unknown secret {name}"
    for name in re.findall(r"'configMapRef': \{'name': '([^']+)'", text) + re.findall(r"'configMap': \{'name': '([^']+)'", text):
        assert ("ConfigMap", name) in names, f"{each['metadata']['name']} refers to the unknown ConfigMap {name}"
    if each["kind"] == "Ingress":
        for rule in each["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                assert ("Service", path["backend"]["service"]["name"]) in names
            assert not public_private_paths(rule["http"]["paths"]), f"{rule['host']}: metrics and empty API documents must not be public"
        hosts = {rule["host"] for rule in each["spec"]["rules"]}
        assert hosts == {host for tls in each["spec"]["tls"] for host in tls["hosts"]}, "a host has no TLS"
        limit = each["metadata"]["annotations"].get("nginx.ingress.kubernetes.io/limit-connections")
        assert limit, "services do not limit the connections of an ingress, so it must limit those of each address"
        hashed = each["metadata"]["annotations"].get("nginx.ingress.kubernetes.io/upstream-hash-by")
        assert hashed == "$remote_addr", "replicas count rate limits separately, so an address must always reach the same replica"


def public_private_paths(paths):
    """The private paths that an ingress rule routes to pods. The service `no-pods` has none."""
    backends = {path["path"]: path["backend"]["service"]["name"] for path in paths}
    private = PRIVATE_PATHS_OF_PAGES if set(PAGES) & set(backends.values()) else PRIVATE_PATHS
    has_pods = {path: backend != "no-pods" for path, backend in backends.items()}
    routes_all = any(path["path"] == "/" and path["pathType"] != "Exact" for path in paths)
    return {path for path in private if has_pods.get(path, routes_all)}


def check_security(each):
    pod = each["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in chart.containers(each):
        name = f"{each['metadata']['name']}/{container['name']}"
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"], name
        assert set(container["resources"]) == {"requests", "limits"}, name
        for line in "\n".join([*container.get("command", []), *container.get("args", [])]).splitlines():
            for variable in container.get("env", []):
                shown = re.search(rf"\b(curl|psql)\b.*\$\{{?{variable['name']}\b", line)
                assert not (shown and "valueFrom" in variable), f"{name}: the command line contains a secret: {line}"
        if each["kind"] == "Deployment":
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container), name


def check_dns_access(objects):
    """Pods with limited egress must be able to use DNS."""
    policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    for name, labels in pods(objects):
        selecting = [policy for policy in policies if selects(policy["podSelector"], labels)]
        assert selecting, f"no network policy selects {name}"
        limited = [policy for policy in selecting if "Egress" in policy["policyTypes"]]
        assert not limited or any(allows_dns(policy) for policy in limited), f"{name} cannot use DNS"


def pods(objects):
    yield from OPERATOR_PODS.items()
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
    """Whether DNS servers of the cluster and the node-local cache are allowed."""
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    cache = {"ipBlock": {"cidr": "169.254.20.10/32"}}
    open_ports = {
        (port["protocol"], port["port"])
        for rule in policy.get("egress", [])
        if system in rule.get("to", []) and cache in rule["to"]
        for port in rule["ports"]
    }
    return {("UDP", 53), ("TCP", 53)} <= open_ports


def check_server_access(objects, amqp):
    """PostgreSQL and RabbitMQ accept only the pods that need them, on the ports that they need. Services can use the
    ports `amqp`."""
    policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    for name, labels in pods(objects):
        if name in OPERATOR_PODS:
            continue
        pod = labels["app.kubernetes.io/name"]
        wanted = {
            "postgres": {5432} if pod in SERVICES or pod.endswith("-migrate") else set(),
            "rabbitmq": {5671, 5672} if pod in SERVICES else {15672} if pod == "rabbitmq-definitions" else set(),
        }
        for server, target in OPERATOR_PODS.items():
            accepted = {port for port in SERVER_PORTS if allows(policies, target, labels, "Ingress", "from", port)}
            assert accepted == wanted[server], f"{server} accepts {name} on {accepted} instead of {wanted[server]}"
            for port in wanted[server] - ({5671, 5672} - amqp):
                assert allows(policies, labels, target, "Egress", "to", port), f"{name} cannot reach {server} on {port}"


def allows(policies, pod, peer, direction, field, port):
    """Whether no policy limits a direction of a pod, or one of them allows the peer on the port."""
    limiting = [policy for policy in policies if direction in policy["policyTypes"] and selects(policy["podSelector"], pod)]
    rules = [rule for policy in limiting for rule in policy.get(direction.lower(), [])]
    return not limiting or any(allows_port(rule, port) and allows_peer(rule.get(field), peer) for rule in rules)


def allows_port(rule, port):
    return "ports" not in rule or any(each.get("port", port) == port and each["protocol"] == "TCP" for each in rule["ports"])


def allows_peer(peers, labels):
    """A rule without peers allows all. Namespace selectors here name other namespaces, and IP blocks public addresses."""
    return peers is None or any(set(peer) == {"podSelector"} and selects(peer["podSelector"], labels) for peer in peers)


def check_connection_limits(objects):
    """PostgreSQL has enough connections with all autoscalers at their maximum during a rolling update."""
    cluster = chart.find(objects, "Cluster", "postgres")["spec"]
    limits = {role["name"]: role.get("connectionLimit", 0) for role in cluster["managed"]["roles"]}
    total = 0
    for service in SERVICES:
        needed = connections(objects, service)
        limit = limits[service.replace("-", "_")]
        assert needed <= limit, f"{service} needs {needed} connections, but its role is limited to {limit}"
        total += needed + MIGRATING
    available = int(cluster["postgresql"]["parameters"]["max_connections"]) - RESERVED
    assert total <= available, f"the services need {total} connections, but only {available} are available"


def connections(objects, service):
    """The connections of all replicas: pools, dedicated connections of workers, and leader tasks."""
    (scaler,) = [each["spec"] for each in objects if each["kind"] in SCALERS and each["metadata"]["name"] == service]
    surge = chart.find(objects, "Deployment", service)["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    replicas = scaler.get("maxReplicas") or scaler["maxReplicaCount"]
    # The sender of each message kind and the writer of order-intake have dedicated connections.
    dedicated = len(work_queues(scaler)) + (service == "order-intake")
    return (replicas + surge) * (setting(objects, service, "database", "max_connections") + dedicated) + LEADER_TASKS


def check_message_memory(objects):
    """Request bodies, messages in flight and prefetched messages of the largest size fit in memory."""
    service = "warehouse-notifier"
    (scaler,) = [each["spec"] for each in objects if each["kind"] in SCALERS and each["metadata"]["name"] == service]
    prefetched = setting(objects, service, "delivery", "prefetch") * len(work_queues(scaler)) * LONGEST_MESSAGE
    in_flight = setting(objects, service, "delivery", "max_inflight")
    needed = setting(objects, service, "http", "max_inflight") + in_flight + prefetched
    assert needed < memory(objects, service), f"{service} may need {needed} bytes"


def check_event_memory(objects):
    """The largest orders, as many as a consumer may hold, take half of the memory: the rest is for its work."""
    service = "rma-engine"
    held = setting(objects, service, "broker", "prefetch")
    needed = held * setting(objects, "order-intake", "http", "max_body")
    assert needed <= memory(objects, service) / 2, f"{service} may hold {needed} bytes of orders"


def memory(objects, service):
    (container,) = chart.containers(chart.find(objects, "Deployment", service))
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", container["resources"]["limits"]["memory"]).groups()
    return int(number) * 1024 ** {"Mi": 2, "Gi": 3}[unit]


def work_queues(scaler):
    return [trigger["metadata"]["queueName"] for trigger in scaler.get("triggers", []) if trigger["type"] == "rabbitmq"]


def check_queue_scaling(objects):
    """KEDA scales a service by each of its work queues."""
    definitions = json.loads((ROOT / "deploy/rabbitmq/definitions.json").read_text())
    names = [queue["name"] for queue in definitions["queues"]]
    work = sorted(name for name in names if name.startswith("notify.") and not name.endswith(".dead"))
    watched = sorted(name for each in objects if each["kind"] == "ScaledObject" for name in work_queues(each["spec"]))
    assert watched == work, f"KEDA uses {watched}, but the work queues are {work}"


def check_broker_settings(objects):
    """RabbitMQ has the same settings in Kubernetes and in compose, except for a few."""
    broker = chart.find(objects, "RabbitmqCluster", "rabbitmq")["spec"]["rabbitmq"]
    # A job loads the definitions. The operator creates users and knows the memory limit.
    excepted = ("load_definitions", "loopback_users.", "vm_memory_high_watermark.", "prometheus.")
    files = [(ROOT / "deploy/rabbitmq/rabbitmq.conf").read_text(), broker["additionalConfig"]]
    compose, cluster = ({key: value for key, value in settings(file) if not key.startswith(excepted)} for file in files)
    assert compose == cluster, f"only in compose: {compose.items() - cluster.items()}; only in Kubernetes: {cluster.items() - compose.items()}"
    advanced = (ROOT / "deploy/rabbitmq/advanced.config").read_text()
    terms = "".join(line for line in advanced.splitlines() if not line.startswith("%%"))
    assert terms == broker["advancedConfig"].strip(), "advanced.config and advancedConfig differ"
    plugins = set(re.findall(r"\w+", (ROOT / "deploy/rabbitmq/enabled_plugins").read_text()))
    # The operator always enables the management plugin.
    assert plugins == {*broker["additionalPlugins"], "rabbitmq_management"}, f"compose has the plugins {plugins}"


def settings(file):
    for line in file.splitlines():
        if line and not line.startswith("#"):
            key, value = line.split("=", 1)
            yield key.strip(), value.strip()


def check_certificate_alerts(objects):
    """The alert rules name the certificates of the ingress, which cert-manager names after their secrets."""
    used = {tls["secretName"] for each in objects if each["kind"] == "Ingress" for tls in each["spec"]["tls"]}
    rules = (ROOT / "deploy/prometheus/rules/backhaul.yml").read_text()
    watched = re.findall(r'certmanager_\w+\{name=~"([^"]+)"\}', rules)
    named = bool(watched) and all(re.fullmatch(names, secret) for names in watched for secret in used)
    assert named, f"the ingress has {used}, but the rules name {watched}"


def check_scraping(objects, monitors):
    """Kubernetes has the same scrape jobs, services and rules as compose."""
    (rules,) = chart.documents(ROOT / "deploy/prometheus/rules/backhaul.yml")
    copy = chart.find(monitors, "PrometheusRule", "backhaul")["spec"]
    assert copy == rules, "deploy/kubernetes/monitoring/rules.yaml differs from deploy/prometheus/rules/backhaul.yml"
    (compose,) = chart.documents(ROOT / "deploy/prometheus/prometheus.yml")
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
    """The labels that the relabelings of an endpoint set: fixed values or labels of the pod."""
    discovered = {"__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", name): value for name, value in pod.items()}
    discovered["__meta_kubernetes_pod_name"] = "pod"
    labels = {}
    for rule in endpoint["relabelings"]:
        labels[rule["targetLabel"]] = rule.get("replacement") or discovered[rule["sourceLabels"][0]]
    return labels


def setting(objects, service, section, name):
    """The value of a setting: from the ConfigMap, or from the defaults of the service or of a shared crate."""
    variable = "__".join([service.replace("-", "_"), section, name]).upper()
    data = chart.find(objects, "ConfigMap", service)["data"]
    if variable in data:
        return number(data[variable])
    for crate in [service, "delivery", "messaging", "platform"]:
        defaults = tomllib.loads((ROOT / "crates" / crate / "default.toml").read_text())
        if name in defaults.get(section, {}):
            return number(defaults[section][name])
    raise AssertionError(f"{service} has no {section}.{name}")


def number(value):
    """A number, or the bytes of a size such as 64MiB."""
    size = re.fullmatch(r"(\d+)(KiB|MiB|GiB)", str(value))
    return int(size[1]) * 1024 ** {"KiB": 1, "MiB": 2, "GiB": 3}[size[2]] if size else int(value)


def main():
    for document in chart.documents(ROOT / "deploy/kubernetes/ingress-controller/config.yaml"):
        kubernetes_validate.validate(document, VERSION, strict=True)
    if chart.library() is None:
        print("skipped: the package of Helm's library exists for x86-64 only")
        return
    for installation in chart.INSTALLATIONS:
        print(f"{installation}: {check(installation)} objects")


if __name__ == "__main__":
    sys.exit(main())
