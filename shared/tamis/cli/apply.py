"""`tamis apply`: give SQL statements to the registry."""

from __future__ import annotations

from typing import BinaryIO

import click
import orjson

from tamis.cli._registry_client import registry_option, request


@click.command(
    epilog="""\b
Examples:
  tamis apply alerts.sql
  echo 'SHOW ALERTS' | tamis apply -
"""
)
@click.argument("file", metavar="FILE.sql", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Print the registry's answer as JSON.")
@registry_option
def command(file: BinaryIO, as_json: bool, url: str) -> None:
    """Apply a file of SQL statements (`-`: standard input), all of them or none."""
    outcomes = request("POST", url, "/v1/statements", file.read())
    if as_json:
        click.echo(orjson.dumps(outcomes, option=orjson.OPT_INDENT_2))
        return
    for outcome in outcomes:
        for line in _lines(outcome):
            click.echo(line)


def _lines(outcome: dict[str, object]) -> list[str]:
    if "rows" in outcome:
        rows = outcome["rows"]
        assert isinstance(rows, list)
        return [f"{row['name']}  {row.get('state', row.get('kind'))}" for row in rows]
    if outcome["result"] == "explained":
        return [orjson.dumps(outcome["explain"], option=orjson.OPT_INDENT_2).decode()]
    verdict = f", memory {outcome['verdict']}" if "verdict" in outcome else ""
    return [f"{outcome['kind']} {outcome['name']} {outcome['result']} (plan {outcome['plan']}{verdict})"]
