"""Checks the Helm chart: lint, the schema of its values, the schemas of Kubernetes, references between objects, and
the files for installations without Helm. Secrets that an upgrade keeps need a cluster and are not tested."""

import json
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import chart
import images
import kubernetes
import kubernetes_validate
import make_secrets
import yaml

sys.path.append(str(Path(__file__).resolve().parents[1]))
import code_blocks  # noqa: E402

# Wrong values, and a part of the error.
WRONG_VALUES = [
    ({"databse": {"host": "x"}}, "databse"),
    ({"services": {"auth": {"replicas": {"min": 0, "max": 1}}}}, "min"),
    ({"services": {"auth": {"replicas": {"min": 9}}}}, "min is 9, which is more than max, 8"),
    ({"services": {"auth": {"settings": {"limits.requests": 1}}}}, "limits.requests"),
    ({"services": {"auth": {"settings": {"HTTP__PORT": 9000}}}}, "services.auth.settings has HTTP__PORT"),
    ({"services": {"auth": {"settings": {"AUTH__LIMITS__REQUESTS_PER_MINUTE": 1}}}}, "leave out the prefix AUTH__"),
    ({"services": {"rma-engine": {"settings": {"RMA_ENGINE__PORTAL__PUBLIC_URL": "x"}}}}, "leave out the prefix RMA_ENGINE__"),
    ({"services": {"auth": {"settings": {"DATABASE__URL": "x"}}}}, "secrets.existingSecret"),
    ({"secrets": {"existingSecret": {"seeling": "x"}}}, "seeling"),
    ({"database": {"clientImage": "postgres:latest"}}, "clientImage"),
    *(({"image": {"tag": tag}}, "image.tag") for tag in ["latest", "main", "0.1", "0.1.0 ", "a/b:0.1.0"]),
    ({"broker": {"nodes": 0}}, "nodes"),
    ({"domain": "https://shop.example"}, "domain"),
    *(({"ingress": {"hosts": {"auth": host}}}, "ingress.hosts.auth")
      for host in ["https://auth.shop.example", "auth.shop.example:443", "auth.shop.example/", "Auth.shop.example", "*.shop.example"]),
    ({"ingress": {"portalHosts": ["https://returns.acme.example"]}}, "ingress.portalHosts"),
    ({"ingress": {"secondIssuer": {"services": ["auth"]}}}, "ingress.secondIssuer.clusterIssuer is empty"),
    ({"ingress": {"secondIssuer": {"clusterIssuer": "public-2", "services": ["orders"]}}}, "services"),
    ({"ingress": {"portalTls": [{"secretName": "backhaul-portal-acme-tls", "hosts": ["http://acme.example"]}]}}, "ingress.portalTls"),
    ({"ingress": {"portalTls": [{"secretName": "acme-tls", "hosts": ["returns.acme.example"]}]}}, "secretName"),
    ({"ingress": {"portalTls": [{"secretName": "acme-tls", "hosts": [], "existing": True}]}}, "hosts"),
    ({"ingress": {"portalTls": [{"secretName": f"backhaul-portal-{name}-tls", "hosts": ["returns.acme.example"]} for name in "ab"]}}, "twice"),
    *(({"trustedProxies": networks}, "trustedProxies has")
      for networks in ["", "10.0.0.0/33", "10.0.0/8", "10.0.0.256/8", "10.0.0.0/8,pods", "10.0.0.0/8 10.1.0.0/16", "fd00::/129"]),
]
MONITOR = {"selector": {"matchExpressions": ...}, "endpoints": [kubernetes.ENDPOINT]}


def check_chart(helm):
    metadata = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    version = tomllib.loads((chart.ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert metadata["version"] == metadata["appVersion"] == version, f"Chart.yaml: the version is {version}"
    result = helm.lint(chart.CHART)
    # 1 is a hint, such as that the chart has no icon.
    findings = [message for message in result["messages"] if message["severity"] > 1]
    assert not findings and not result["errors"], result


def check_values(helm):
    for values, part in WRONG_VALUES:
        try:
            chart.render(values)
        except helm.HelmError as error:
            assert part in str(error), f"{values}: {error}"
            continue
        raise AssertionError(f"the chart accepts {values}")
    # A tag with the commit names one version too.
    chart.render({"image": {"tag": "main-3f2a9c1"}})


def check_documented_values():
    """The chart accepts the values in docs/install-on-kubernetes.md, whose other YAML is objects."""
    page = chart.ROOT / "docs/install-on-kubernetes.md"
    blocks = [yaml.safe_load_all(textwrap.dedent(text)) for language, text, _ in code_blocks.blocks(page) if language == "yaml"]
    documented = [values for block in blocks for values in block if "kind" not in values]
    assert any("domain" in values for values in documented), f"{page.name} has no values of an installation"
    for values in documented:
        chart.render(values)


def check_linked_files(objects):
    """The chart has the grants of deploy/postgres, to which it has a link."""
    grants = chart.find(objects, "ConfigMap", "postgres-grants")["data"]["grants.sql"]
    assert grants.strip() == (chart.ROOT / "deploy/postgres/grants.sql").read_text().strip()


def check_rendered():
    """The objects for installations without Helm are those of the chart, without secrets."""
    command = [sys.executable, chart.ROOT / "scripts/lib/render_chart.py", chart.ROOT / "deploy/helm/production.yaml", "space"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = chart.read(printed)
    names = lambda objects: sorted((each["kind"], each["metadata"]["name"]) for each in objects)
    values = {**chart.VARIANTS["production"], "secrets": {"generate": False}}
    assert names(found) == names(chart.render(values)), "the rendered file has other objects than the chart"
    assert not [each for each in found if each["kind"] == "Secret"], "the rendered file has secrets"


def check_objects(name, objects):
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert len(names) == len(objects), f"{name}: two objects have the same name"
    for each in objects:
        if each["kind"] == "ServiceMonitor":
            unknown = list(kubernetes.unknown_fields(each["spec"], MONITOR, "ServiceMonitor"))
            assert not unknown, unknown
        elif not each["apiVersion"].startswith("keda.sh/"):
            kubernetes_validate.validate(each, kubernetes.VERSION, strict=True)
        if each["kind"] in ("Deployment", "Job"):
            kubernetes.check_security(each)
        if each["kind"] == "Ingress":
            kubernetes.check_references(each, names)
            assert len({rule["host"] for rule in each["spec"]["rules"]}) == len(each["spec"]["rules"]), f"{name}: a host has two rules"
        for container in chart.containers(each):
            assert images.is_pinned(container["image"]), f"{name}: {container['image']}"
    if ("NetworkPolicy", "closed") in names:
        policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
        for each in objects:
            if each["kind"] in ("Deployment", "Job"):
                labels = each["spec"]["template"]["metadata"]["labels"]
                selecting = [policy for policy in policies if kubernetes.selects(policy["podSelector"], labels)]
                assert any(kubernetes.allows_dns(policy) for policy in selecting), f"{each['metadata']['name']} cannot use DNS"


def check_issuers(objects):
    """Each service has the issuer that the values give it, and cert-manager issues no existing certificate."""
    ingresses = [each["metadata"] for each in objects if each["kind"] == "Ingress"]
    found = {each["name"]: each["annotations"].get("cert-manager.io/cluster-issuer") for each in ingresses}
    second = {name for name, issuer in found.items() if issuer == "public-2"}
    assert second == {"auth", "order-intake"}, found
    assert {issuer for name, issuer in found.items() if name not in second} == {"public", None}, found


def check_portal_certificates(objects):
    """Host names of merchants share the portal's certificate or have their own. cert-manager issues all but existing ones."""
    found = {}
    for each in objects:
        if each["kind"] == "Ingress" and each["metadata"]["labels"]["app.kubernetes.io/name"] == "portal":
            issuer = each["metadata"]["annotations"].get("cert-manager.io/cluster-issuer")
            found |= {tls["secretName"]: (tls["hosts"], issuer) for tls in each["spec"]["tls"]}
    assert found == {
        "backhaul-portal-tls": (["portal.shop.example", "returns.acme.example"], "public"),
        "backhaul-portal-globex-tls": (["returns.globex.example", "rma.globex.example"], "public"),
        "initech-tls": (["returns.initech.example"], None),
    }, found


def check_server_access(objects, amqp):
    """The chart does not run PostgreSQL and RabbitMQ. The files in deploy/kubernetes have their policies."""
    assert not [each for each in objects if each["kind"] == "StatefulSet"], "the chart runs a server"
    kubernetes.check_server_access(objects + chart.servers(), amqp)


def check_secrets(name, objects, existing):
    """Every secret that an object refers to is generated, with that key, or exists."""
    generated = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "Secret"}
    for secret, key in make_secrets.referred([each for each in objects if each["kind"] != "Secret"]):
        if secret in existing or make_secrets.OF_OPERATORS.fullmatch(secret):
            continue
        assert secret in generated, f"{name}: the secret {secret} does not exist"
        assert key is None or key in generated[secret], f"{name}: {secret} has no key {key}"
    return generated


def main():
    helm = chart.library()
    if helm is None:
        print("skipped: the package of Helm's library exists for x86-64 only")
        return
    check_chart(helm)
    check_values(helm)
    check_documented_values()
    rendered = {name: chart.render(values) for name, values in chart.VARIANTS.items()}
    made = {name: set(secret["stringData"]) for name, secret in make_secrets.make().items()}
    for name, objects in rendered.items():
        check_objects(name, objects)
        values = chart.VARIANTS[name].get("secrets", {})
        existing = set(made) if values.get("generate") is False else set(values.get("existingSecret", {}).values())
        existing |= {tls["secretName"] for tls in chart.VARIANTS[name].get("ingress", {}).get("portalTls", []) if tls.get("existing")}
        generated = check_secrets(name, objects, existing)
        if name == "default":
            found = {secret: set(data) for secret, data in generated.items()}
            assert found == made, "the chart and make-secrets make different secrets"
    check_linked_files(rendered["default"])
    check_rendered()
    check_issuers(rendered["everything"])
    check_portal_certificates(rendered["everything"])
    check_server_access(chart.render({"broker": {"administratorSecret": "rabbitmq-default-user"}}), amqp={5672})
    check_server_access(rendered["everything"], amqp={5671})
    assert not [each for each in rendered["existing secrets"] if each["kind"] == "Secret" and each["metadata"]["name"] in ("sealing", "auth-database")]
    print(json.dumps({name: len(objects) for name, objects in rendered.items()}))


if __name__ == "__main__":
    sys.exit(main())
