"""usage: sbom.py VERSION COMMIT TIME PACKAGE...

Prints a software bill of materials (CycloneDX 1.6, JSON) of the crates that these packages of the workspace are built
from, for all targets of a release. Crates that only build scripts and macros need have the scope "excluded", because
they are not part of the programs."""

import json
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]


def metadata():
    platforms = [f"--filter-platform={target}" for target in TARGETS]
    command = ["cargo", "metadata", "--format-version=1", "--locked", *platforms]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)


def dependencies(node, kinds):
    """The crates that a crate depends on in one of these ways; None is a normal dependency."""
    return sorted(each["pkg"] for each in node["deps"] if any(kind["kind"] in kinds for kind in each["dep_kinds"]))


def reachable(nodes, roots, kinds):
    found, waiting = set(), list(roots)
    while waiting:
        package = waiting.pop()
        if package not in found:
            found.add(package)
            waiting += dependencies(nodes[package], kinds)
    return found


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, scope, checksums):
    entry = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "scope": scope,
        "purl": reference(package),
    }
    if package["license"]:
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums.get((package["name"], package["version"])):
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def main(version, commit, time, names):
    workspace = metadata()
    packages = {package["id"]: package for package in workspace["packages"]}
    nodes = {node["id"]: node for node in workspace["resolve"]["nodes"]}
    members = {packages[id]["name"]: id for id in workspace["workspace_members"]}
    roots = [members[name] for name in names]
    # Macros run in the compiler, and so does all that only they depend on.
    linked_nodes = {id: {**node, "deps": [each for each in node["deps"] if not is_macro(packages[each["pkg"]])]} for id, node in nodes.items()}
    linked, built = reachable(linked_nodes, roots, [None]), reachable(nodes, roots, [None, "build"])
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(each["name"], each["version"]): each.get("checksum") for each in lock["package"]}
    components = [component(packages[id], "required" if id in linked else "excluded", checksums) for id in sorted(built, key=lambda id: reference(packages[id]))]
    application = {"type": "application", "bom-ref": "backhaul", "name": "backhaul", "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}]}
    graph = [{"ref": reference(packages[id]), "dependsOn": sorted({reference(packages[each]) for each in dependencies(nodes[id], [None, "build"])})} for id in built]
    graph.append({"ref": "backhaul", "dependsOn": sorted(reference(packages[id]) for id in roots)})
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'backhaul {version} {commit}')}",
        "version": 1,
        "metadata": {"timestamp": time, "component": application, "properties": [{"name": "backhaul:commit", "value": commit}]},
        "components": components,
        "dependencies": sorted(graph, key=lambda each: each["ref"]),
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:4], sys.argv[4:])
