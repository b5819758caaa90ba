"""Generates a client from each OpenAPI document and calls auth and order-intake with it.

usage: generated_clients.py DOCUMENTS FOLDER TYPES

DOCUMENTS is the folder of the OpenAPI documents, FOLDER is for the generated clients, and TYPES is the folder
of the TypeScript types that openapi-typescript generated. Both must have every operation. Reads AUTH_URL,
ORDERS_URL, CLIENT_ID and CLIENT_SECRET of a merchant's client from the environment.
"""

import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

METHODS = ("get", "put", "post", "delete", "patch")
documents, folder, types = map(pathlib.Path, sys.argv[1:])


class Loader(yaml.CSafeLoader):
    """Reads timestamps as text, as JSON has them."""

    yaml_implicit_resolvers = {
        first: [it for it in resolvers if it[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def main():
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sys.path.insert(0, str(folder))
    for path in sorted(documents.glob("*.yaml")):
        document = yaml.load(path.read_text(), Loader)
        operations = operations_of(document)
        generate(path)
        check_python(path.stem, operations)
        check_types(path.stem, operations)
        print(f"ok   {path.stem}: {len(operations)} operations in Python and TypeScript")
    token = request_token()
    publish_order(token)


def operations_of(document):
    """Returns tag and id of each operation."""
    return [
        (operation["tags"][0], operation["operationId"])
        for item in document["paths"].values()
        for method, operation in item.items()
        if method in METHODS
    ]


def generate(path):
    settings = folder / "settings.yaml"
    # The generated code is not formatted, because no one reads it.
    settings.write_text("post_hooks: []\n")
    subprocess.run(
        [
            pathlib.Path(sys.executable).with_name("openapi-python-client"), "generate",
            "--path", path, "--output-path", folder / module(path.stem), "--config", settings,
            "--meta", "none", "--fail-on-warning",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def module(name):
    return name.replace("-", "_")


def check_python(name, operations):
    for _, operation in operations:
        # The generator derives the name of the folder from the tag.
        files = list((folder / module(name) / "api").glob(f"*/{operation}.py"))
        assert len(files) == 1, f"{name}: {operation} is generated {len(files)} times"
        generated = importlib.import_module(f"{module(name)}.api.{files[0].parent.name}.{operation}")
        assert callable(generated.sync_detailed), operation


def check_types(name, operations):
    text = (types / f"{name}.ts").read_text()
    generated = set(re.findall(r"^    (\w+): \{$", text.partition("export interface operations")[2], re.M))
    missing = {operation for _, operation in operations} - generated
    assert not missing, f"{name}: no types of {missing}"


def request_token():
    auth = importlib.import_module("auth")
    models = importlib.import_module("auth.models")
    issue_token = importlib.import_module("auth.api.tokens.issue_token")
    body = models.TokenRequest(
        grant_type="client_credentials",
        client_id=os.environ["CLIENT_ID"],
        client_secret=os.environ["CLIENT_SECRET"],
    )
    issued = issue_token.sync_detailed(client=auth.Client(base_url=os.environ["AUTH_URL"]), body=body)
    assert issued.status_code == 200, issued.content
    print("ok   the Python client gets a token")
    return issued.parsed.access_token


def publish_order(token):
    order_intake = importlib.import_module("order_intake")
    message = importlib.import_module("order_intake.models").ReturnsPortalOrderMessage
    api = "order_intake.api.orders"
    publish_orders = importlib.import_module(f"{api}.publish_orders")
    show_order = importlib.import_module(f"{api}.find_order")
    client = order_intake.AuthenticatedClient(base_url=os.environ["ORDERS_URL"], token=token)
    # The example of the document is a valid message.
    document = yaml.load((documents / "order-intake.yaml").read_text(), Loader)
    content = document["paths"]["/returns_portal_orders"]["post"]["requestBody"]["content"]
    example = message.from_dict(content["application/json"]["example"])
    published = publish_orders.sync_detailed(client=client, body=example, api_version=version(publish_orders))
    assert published.status_code == 200, published.content
    identifier = published.parsed.orders[0].identifier
    shown = show_order.sync_detailed(client=client, identifier=identifier)
    assert shown.status_code == 200, shown.content
    print("ok   the Python client publishes the order of the example and reads it")


def version(operation):
    """Returns the only value of the Api-Version header."""
    return operation.PublishOrdersApiVersion("3")


main()
