"""The settings that scripts/campaign passes in the environment."""

import os
import pathlib

URL_VARIABLES = {
    "auth": "AUTH_URL", "order-intake": "ORDERS_URL", "rma-engine": "RMA_URL", "exchange": "EXCHANGE_URL",
    "warehouse-notifier": "WAREHOUSE_URL",
}
SERVICES = tuple(URL_VARIABLES)
# Services that send messages to merchants.
DELIVERING = ("rma-engine", "exchange", "warehouse-notifier")


class Settings:
    def __init__(self, environment=os.environ):
        self.environment = environment
        self.folder = pathlib.Path(environment["CAMPAIGN_FOLDER"])
        self.programs = pathlib.Path(environment["CAMPAIGN_PROGRAMS"])
        self.servers_script = pathlib.Path(__file__).parents[2] / "scripts" / "servers"
        self.replicas = tuple(environment["CAMPAIGN_REPLICAS"].split())
        self.nodes = tuple(environment["BROKER_NODES"].split())
        self.broker_ports = [int(port) for port in environment["BROKER_PORTS"].split()]
        self.primary_port = int(environment["PRIMARY_PORT"])
        self.standby_port = int(environment["STANDBY_PORT"] or 0)
        self.postgres_password = environment["POSTGRES_PASSWORD"]
        self.psql = environment["PSQL"]
        self.proxy_ports = {
            "postgres": int(environment["PROXY_POSTGRES_PORT"]), "broker": int(environment["PROXY_BROKER_PORT"]),
        }
        self.receiver_port = int(environment["RECEIVER_PORT"])
        self.clock_library = environment.get("CLOCK_LIBRARY", "")
        self.operator = environment["OPERATOR_CLIENT_ID"], environment["OPERATOR_CLIENT_SECRET"]

    def replica_url(self, name):
        service, _, number = name.partition(".")
        return self.environment[URL_VARIABLES[service] + (f"_{number}" if number else "")]

    def urls(self):
        """Service -> the URLs of its replicas."""
        found = {service: [] for service in SERVICES}
        for name in self.replicas:
            found[name.partition(".")[0]].append(self.replica_url(name))
        return found
