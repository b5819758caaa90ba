"""Checks the Grafana dashboards: uids, data source variables and panels. Prints them as TypeScript, for a check
against the types of Grafana (@grafana/schema): no package registry has Grafana itself."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/grafana/dashboards"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def check(name, dashboard):
    assert dashboard["uid"] == f"backhaul-{name}", f"{name}: the uid is {dashboard['uid']}"
    variables = dashboard["templating"]["list"]
    first = variables[0]
    assert (first["type"], first["name"], first["query"]) == ("datasource", "datasource", "prometheus"), f"{name}: {first}"
    for part in [*dashboard["panels"], *variables[1:]]:
        assert part["datasource"] == DATASOURCE, f"{name}: {part.get('title', part.get('name'))} names a data source"
    for kind in ["id", "title"]:
        values = [panel[kind] for panel in dashboard["panels"]]
        assert len(set(values)) == len(values), f"{name}: two panels have the same {kind}"
    cells = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(cells)) == len(cells), f"{name}: two panels have the same place"


def main():
    dashboards = {file.stem: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}
    print('import type { Dashboard } from "@grafana/schema";')
    for name, dashboard in dashboards.items():
        check(name, dashboard)
        print(f"export const {name}: Dashboard = {json.dumps(dashboard, indent=1)};")
    # The types must refuse a field that Grafana does not have, or the check would prove nothing.
    print('// @ts-expect-error\nexport const wrong: Dashboard = { schemaVersion: 39, pannels: [] };')
    print(f"{len(dashboards)} dashboards: {', '.join(dashboards)}", file=sys.stderr)


if __name__ == "__main__":
    main()
