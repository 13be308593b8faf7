"""Writes each dashboard as JSON: `python -m deploy.grafana.dashboards`."""

from __future__ import annotations

from pathlib import Path

from deploy.grafana.dashboards.edge import EDGE
from deploy.grafana.dashboards.fleet import FLEET
from deploy.grafana.dashboards.joiner import JOINER
from deploy.grafana.dashboards.query import QUERY
from deploy.grafana.dashboards.stream import STREAM
from grafana_foundation_sdk.cog.encoder import JSONEncoder

FOLDER = Path(__file__).resolve().parents[1] / "json"
DASHBOARDS = {"fleet": FLEET, "stream": STREAM, "query": QUERY, "edge": EDGE, "joiner": JOINER}


def text(name: str) -> str:
    """The JSON of one dashboard, as Grafana provisions it."""
    return JSONEncoder(sort_keys=True, indent=2).encode(DASHBOARDS[name].build()) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in DASHBOARDS:
        (FOLDER / f"{each}.json").write_text(text(each), encoding="utf-8")
