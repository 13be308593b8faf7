"""`tamis apply`: apply SQL statements at the registry."""

from __future__ import annotations

import click

from tamis.cli.common.outcomes import show_outcome
from tamis.cli.common.output import say, write_json
from tamis.cli.common.registry_option import DEFAULT_URL, registry_option
from tamis.cli.common.sql_file import file_name, read_sql, show_notices
from tamis.query.statements.inline_patterns import inline_patterns
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
        write_json(outcomes)
        return
    if registry.url != DEFAULT_URL:
        say(f"applied at {registry.url}")
    for outcome in outcomes:
        show_outcome(outcome)
