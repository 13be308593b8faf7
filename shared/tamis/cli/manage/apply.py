"""`tamis apply` and `tamis drop`: definitions at the registry."""

from __future__ import annotations

from urllib.parse import quote

import click

from tamis.cli.common.options import DEFAULT_URL, Choice, names_by, registry_option
from tamis.cli.common.output import say, write, write_json
from tamis.cli.common.sql_file import file_name, read_sql, show_notices
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
    from tamis.cli.common.tables import show_outcome
    from tamis.query.statements.inline_patterns import inline_patterns

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


@click.command(
    epilog="""\b
Examples:
  tamis drop alert condensation
  tamis drop stream air
  tamis drop shard tank:roof/post
"""
)
@click.argument("kind", type=Choice(["alert", "stream", "function", "table", "pattern", "shard"]))
@click.argument("name", shell_complete=names_by("kind"))
@registry_option
def drop(kind: str, name: str, registry: RegistryClient) -> None:
    """Drop an alert, stream, function, table or pattern, or give up a shard.

    No query may read what is dropped. Give up a shard if nothing more comes from it, because its source or
    its edge is broken or was removed: joins no longer wait for it, and it makes no alert degraded. It comes
    back with its next reading.
    """
    answer = registry.request("DELETE", f"/v1/{kind}s/{quote(name, safe='')}")
    if kind == "shard":
        write(f"shard {name} dropped")
        return
    (outcome,) = answer
    write(f"{outcome['kind']} {outcome['name']} dropped (plan {outcome['plan']})")
