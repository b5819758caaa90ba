"""Checks that every image in the deploy files names one version, and that our own have the version of the
workspace."""

import re
import sys
import tomllib
from pathlib import Path

import chart
import yaml

ROOT = Path(__file__).resolve().parents[2]
# `18.6-bookworm`, `v3.15.0`, `8.22.0`: at least a major and a minor version.
VERSION = re.compile(r"v?\d+\.\d+(\.\d+)*(-[a-z0-9.-]+)?")
# PostgreSQL has no patch level; a tag of two numbers of any other image follows its patches.
TWO_NUMBERS = re.compile(r"(postgres|ghcr\.io/cloudnative-pg/postgresql)")


def is_pinned(image):
    """A digest names one image. A tag does if it has the whole version."""
    if re.search(r"@sha256:[0-9a-f]{64}$", image):
        return True
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag or not VERSION.fullmatch(tag):
        return False
    numbers = re.match(r"v?([\d.]+)", tag)[1].split(".")
    return len(numbers) >= (2 if TWO_NUMBERS.fullmatch(name) else 3)


def compose():
    stack = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    yield from ((f"docker-compose.yml, {name}", service["image"]) for name, service in stack.items())


def kubernetes():
    """The images of the servers and of the chart."""
    for each in chart.servers() + (chart.render(chart.VARIANTS["production"]) if chart.library() else []):
        location = f"Kubernetes, {each['metadata']['name']}"
        yield from ((location, container["image"]) for container in chart.containers(each))
        yield from ((location, each["spec"][field]) for field in ["image", "imageName"] if field in each.get("spec", {}))


def dockerfile():
    text = (ROOT / "deploy/Dockerfile").read_text()
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)", text, re.MULTILINE))
    stages = set(re.findall(r"^FROM \S+ AS (\w+)", text, re.MULTILINE))
    for image in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        if image not in stages:
            yield "deploy/Dockerfile", re.sub(r"\$\{(\w+)\}", lambda name: arguments[name[1]], image)


def main():
    for floating in ["postgres", "postgres:latest", "postgres:18-bookworm", "rabbitmq:4-management", "rabbitmq:4.3-management", "x/y:nonroot"]:
        assert not is_pinned(floating), floating
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    version = workspace["version"]
    images = [*compose(), *kubernetes(), *dockerfile()]
    failures = [f"{location}: {image} does not name one version" for location, image in images if not is_pinned(image)]
    for location, image in images:
        if re.match(r"(registry\.example/)?backhaul/", image) and not image.endswith(f":{version}"):
            failures.append(f"{location}: {image}, but the version is {version}")
    rust = [image for _, image in images if image.startswith("rust:")]
    if any(not image.startswith(f"rust:{workspace['rust-version']}.") for image in rust):
        failures.append(f"deploy/Dockerfile: {rust}, but rust-version is {workspace['rust-version']}")
    print("\n".join(failures) or f"{len(images)} images: each names one version")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
