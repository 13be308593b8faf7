"""`tamis apply`: give SQL statements to the registry."""

from __future__ import annotations

import click
import orjson

from tamis.cli._registry import registry_option
from tamis.cli._sql_file import file_name, read_sql
from tamis.fleet.registry_client import apply_sql


@click.command(
    epilog="""\b
Examples:
  tamis apply demo/first/alerts.sql
  echo 'SHOW ALERTS' | tamis apply -
"""
)
@click.argument("source", metavar="FILE.sql")
@click.option("--json", "as_json", is_flag=True, help="Print the registry's answer as JSON.")
@registry_option
def command(source: str, as_json: bool, url: str) -> None:
    """Apply a file of SQL statements (`-`: standard input), all of them or none.

    Exits with 0 when done, 1 if a query is refused since its memory is not proven to be bounded, 2 if the
    input is wrong.
    """
    outcomes = apply_sql(url, read_sql(source), file_name(source))
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
