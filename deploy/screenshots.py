"""Screenshots of dashboard panels: their queries on Prometheus' own graph page, in a headless Chromium.

python -m deploy.screenshots takes them into docs/images while the fleet of docker-compose.yml runs. Each
picture has a graph for each query of one panel of deploy/grafana/json. Grafana isn't needed for that.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import click

from tamis.errors import InputError, UnavailableError

REPOSITORY = Path(__file__).resolve().parents[1]
IMAGES = REPOSITORY / "docs" / "images"
DASHBOARDS = REPOSITORY / "deploy" / "grafana" / "json"

# A larger picture makes every clone of the repository larger.
MOST_BYTES = 150_000
WIDTH = 1100
HEAD, GRAPH = 120, 740  # pixels of the page's head, and of a graph with its query and legend
# The page draws a graph when Prometheus has answered, within this virtual time.
MILLISECONDS = 15_000
# Grafana replaces these in a query.
_VARIABLES = {"$__rate_interval": "1m", "$stream": ".*", "$query": ".*", "$edge": ".*"}


@dataclass(frozen=True)
class Picture:
    """A picture `file` of one panel."""

    file: str
    dashboard: str
    panel: str


PICTURES = (
    Picture("query-state-beside-bound.png", "query", "State beside the proven bound"),
    Picture("fleet-readings-by-decision.png", "fleet", "Readings by decision"),
    Picture("fleet-alarms.png", "fleet", "Alarms"),
    Picture("query-latency-of-alarms.png", "query", "Latency of alarms"),
)


def queries(picture: Picture) -> list[str]:
    """The queries of the picture's panel, as Grafana would send them for all values of its variables.

    >>> queries(PICTURES[1])
    ['sum by (decision) (rate(tamis_edge_tuples_total[1m]))']
    """
    dashboard = json.loads((DASHBOARDS / f"{picture.dashboard}.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        if panel["title"] == picture.panel and panel["type"] != "row":
            return [_filled(target["expr"]) for target in panel["targets"]]
    raise InputError(f"dashboard {picture.dashboard} has no panel '{picture.panel}'", where=picture.file)


def page(prometheus: str, expressions: list[str], minutes: int) -> str:
    """The address of Prometheus' graph page with a graph for each expression.

    >>> page("http://127.0.0.1:9090", ["up"], 10)
    'http://127.0.0.1:9090/graph?g0.expr=up&g0.tab=0&g0.range_input=10m'
    """
    fields: dict[str, str] = {}
    for number, expression in enumerate(expressions):
        fields |= {
            f"g{number}.expr": expression,
            f"g{number}.tab": "0",
            f"g{number}.range_input": f"{minutes}m",
        }
    return f"{prometheus}/graph?{urlencode(fields)}"


def take(url: str, file: Path, graphs: int) -> None:
    """Take one screenshot. Raises UnavailableError without Chromium, or where it fails."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise UnavailableError("no Chromium found", where="PATH", hint="apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEAD + GRAPH * graphs}"]
        command += [f"--virtual-time-budget={MILLISECONDS}", f"--screenshot={file}", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not file.exists():
        raise UnavailableError(f"Chromium took no picture: {done.stderr[-500:]}", where=url)


def samples(prometheus: str, expression: str) -> int:
    """Number of series that a query returns now."""
    address = f"{prometheus}/api/v1/query?{urlencode({'query': expression})}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        return len(json.load(answer)["data"]["result"])


def _filled(expression: str) -> str:
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    # A filter that takes every value only makes the query longer.
    return re.sub(r'(\{|,)\w+=~"\.\*"', r"\1", expression).replace("{}", "")


@click.command()
@click.option("--prometheus", default="http://127.0.0.1:9090", show_default=True, help="Its address.")
@click.option("--minutes", default=10, show_default=True, help="Time that a graph shows.")
@click.option("--output", type=click.Path(path_type=Path), default=IMAGES, help="Directory of the pictures.")
def main(prometheus: str, minutes: int, output: Path) -> None:
    """Take all pictures; a query without data ends with exit code 1."""
    output.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        expressions = queries(picture)
        for expression in expressions:
            if not samples(prometheus, expression):
                sys.exit(f"{picture.file}: no data for {expression}")
        file = output / picture.file
        take(page(prometheus, expressions, minutes), file, len(expressions))
        size = file.stat().st_size
        click.echo(f"{file}: {size} bytes")
        if size > MOST_BYTES:
            sys.exit(f"{file} has more than {MOST_BYTES} bytes")


if __name__ == "__main__":
    main()
