"""Builds a release of unoptimised programs with scripts/release and checks its files. usage: release.py FOLDER"""

import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[1]
SERVICES = ["auth", "order-intake", "rma-engine", "exchange", "warehouse-notifier", "console", "portal"]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def run(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, check=True, text=True, stdout=subprocess.PIPE).stdout


def check_archive(file):
    with tempfile.TemporaryDirectory() as folder:
        run("tar", "--extract", "--file", file, "--directory", folder)
        home = Path(folder) / f"backhaul-{VERSION}"
        for program in [*SERVICES, "sandbox", "backhaul"]:
            printed = run(home / "bin" / program, "--version")
            assert VERSION in printed, f"{program} --version: {printed}"
        for path in ["LICENSE", "CHANGELOG.md", "docs/install-on-kubernetes.md", "deploy/postgres/roles.sql", "deploy/kubernetes/backhaul.yaml", "man1/backhaul.1", "completions/backhaul.bash"]:
            assert (home / path).exists(), f"the archive has no {path}"


def check_package(file, name, wanted):
    fields = dict(line.split(": ", 1) for line in run("dpkg-deb", "--field", file).splitlines())
    assert (fields["Package"], fields["Version"]) == (name, VERSION), fields
    assert "libc6 (>= 2." in fields["Depends"], fields
    assert "@" not in fields["Maintainer"], "SECURITY.md says how to reach the maintainers; there is no address"
    listed = run("dpkg-deb", "--contents", file)
    assert all(" root/root " in line for line in listed.splitlines()), "a file does not belong to root"
    paths = {line.split()[5].removeprefix(".") for line in listed.splitlines()}
    assert wanted <= paths, f"{name} has no {wanted - paths}"


def check_bill(file):
    text = file.read_text()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert error is None, error
    components = {component["name"]: component for component in json.loads(text)["components"]}
    assert {"auth", "portal", "tokio", "lapin", "diesel"} <= components.keys()
    assert components["tokio"]["hashes"] and components["tokio"]["scope"] == "required"
    assert components["syn"]["scope"] == "excluded", "macros are not part of the programs"
    assert "testkit" not in components and "proptest" not in components, "test crates are not part of a release"


def main(folder):
    run(ROOT / "scripts/release", "--debug", "--output", folder)
    (archive,) = folder.glob("*.tar.gz")
    (command_line,) = folder.glob("backhaul_*.deb")
    (services,) = folder.glob("backhaul-services_*.deb")
    check_archive(archive)
    check_package(command_line, "backhaul", {"/usr/bin/backhaul", "/usr/share/man/man1/backhaul.1.gz", "/usr/share/bash-completion/completions/backhaul"})
    programs = {f"/usr/lib/backhaul/{service}" for service in SERVICES}
    check_package(services, "backhaul-services", programs | {"/usr/lib/systemd/system/backhaul@.service"})
    check_bill(folder / f"backhaul-{VERSION}.cdx.json")
    with tarfile.open(folder / f"backhaul-{VERSION}.tgz") as chart:
        assert "backhaul/Chart.yaml" in chart.getnames(), chart.getnames()
        # The chart has a link to the file, the archive its content.
        assert chart.getmember("backhaul/files/grants.sql").isfile(), "grants.sql is a link"
    objects = (folder / f"backhaul-{VERSION}-kubernetes.yaml").read_text()
    assert f"registry.example/backhaul/auth:{VERSION}" in objects, "the rendered objects have another version"
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=folder)
    listed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert listed == {file.name for file in folder.iterdir()} - {"SHA256SUMS"}, listed
    print(f"{len(listed)} files of {VERSION}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
