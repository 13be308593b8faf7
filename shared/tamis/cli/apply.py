"""`tamis apply`: apply SQL statements at the registry."""

from __future__ import annotations

import click
import orjson

from tamis.cli._registry import registry_option
from tamis.cli._sql_file import file_name, read_sql, show_notices
from tamis.query.inline_patterns import inline_patterns
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis apply demo/first/alerts.sql
  echo 'SHOW ALERTS' | tamis apply -
"""
)
@click.argument("source", metavar="FILE.sql")
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the registry as JSON.")
@registry_option
def command(source: str, as_json: bool, registry: RegistryClient) -> None:
    """Apply all SQL statements of a file (`-`: standard input), or none.

    Files of patterns are read here, and their values are sent.

    The exit code is 0 if all are applied, 1 if a query is refused (its memory isn't proven to be bounded, or
    a condition can't be executed), and 2 if the input is wrong.
    """
    file = file_name(source)
    inlined = inline_patterns(read_sql(source), file)
    show_notices(inlined.notices)
    outcomes = registry.apply_sql(inlined.text, file)
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
    replanned = outcome.get("replanned")
    again = [line for one in (replanned if isinstance(replanned, list) else []) for line in _replanned(one)]
    verdict = f", memory {outcome['verdict']}" if "verdict" in outcome else ""
    explained = outcome.get("explain")
    queries = explained["queries"] if isinstance(explained, dict) else []
    warnings = [f"warning: {one}" for query in queries for one in query.get("warnings", ())]
    return [
        f"{outcome['kind']} {outcome['name']} {outcome['result']} (plan {outcome['plan']}{verdict})",
        *again,
        *warnings,
    ]


def _replanned(query: dict[str, object]) -> list[str]:
    """Lines about a query that reads a changed stream or function."""
    how = {"replaced": "planned again with a new definition", "kept": "goes on as it is"}
    changes = query["changes"]
    assert isinstance(changes, list)
    first = f"  {query['kind']} {query['name']} {how[str(query['result'])]}, memory {query['verdict']}"
    return [first, *(f"    {change}" for change in changes)]
