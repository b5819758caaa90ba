"""A subset of kustomize: resources, patches (merge patches or JSON patch operations), images, namespace and
generated ConfigMaps. Other fields are rejected."""

import copy
from pathlib import Path

import yaml

KNOWN = {"apiVersion", "kind", "resources", "patches", "images", "namespace", "configMapGenerator", "generatorOptions"}


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def build(folder):
    """All objects of the kustomization in a folder."""
    folder = Path(folder)
    (kustomization,) = documents(folder / "kustomization.yaml")
    unknown = set(kustomization) - KNOWN
    assert not unknown, f"{folder}: {unknown} is not supported"
    objects = []
    for resource in kustomization["resources"]:
        path = folder / resource
        objects += build(path) if path.is_dir() else documents(path)
    for generator in kustomization.get("configMapGenerator", []):
        data = {Path(file).name: (folder / file).read_text() for file in generator["files"]}
        metadata = {"name": generator["name"]}
        objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    for patch in kustomization.get("patches", []):
        apply(folder, patch, objects)
    for document in objects:
        if "namespace" in kustomization and document["kind"] != "Namespace":
            document["metadata"]["namespace"] = kustomization["namespace"]
        for container in containers(document):
            rename(container, kustomization.get("images", []))
    return objects


def apply(folder, patch, objects):
    if "path" in patch:
        for change in documents(folder / patch["path"]):
            target = find(objects, change["kind"], change["metadata"]["name"])
            merge(target, change)
        return
    target = find(objects, patch["target"]["kind"], patch["target"]["name"])
    for operation in yaml.safe_load(patch["patch"]):
        assert operation["op"] == "replace", operation
        *parents, last = [int(step) if step.isdigit() else step for step in operation["path"].split("/")[1:]]
        parent = target
        for step in parents:
            parent = parent[step]
        assert last in parent if isinstance(parent, dict) else last < len(parent), operation["path"]
        parent[last] = operation["value"]


def find(objects, kind, name):
    found = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    assert len(found) == 1, f"there are {len(found)} objects {kind} {name} for a patch"
    return found[0]


def merge(target, change):
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        elif isinstance(value, list) and value and "name" in value[0] and isinstance(target.get(key), list):
            for item in value:
                same = [each for each in target[key] if each.get("name") == item["name"]]
                merge(same[0], item) if same else target[key].append(item)
        else:
            target[key] = copy.deepcopy(value)


def containers(document):
    pod = document.get("spec", {}).get("template", {}).get("spec", {})
    return pod.get("initContainers", []) + pod.get("containers", [])


def rename(container, images):
    for image in images:
        if container["image"] == image["name"]:
            container["image"] = f"{image['newName']}:{image['newTag']}"
