"""`tamis get`: the state of alerts, streams, patterns, plans and edges, silences and acknowledgements."""

from __future__ import annotations

from urllib.parse import quote

import click
import orjson

from tamis.cli.common.choices import Choice
from tamis.cli.common.names import names_by
from tamis.cli.common.registry_option import registry_option
from tamis.cli.common.sql_file import say
from tamis.cli.common.state_tables import HEADINGS, state_rows
from tamis.cli.common.tables import show_table
from tamis.errors import InputError
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis get
  tamis get alerts condensation --json
  tamis get edges
"""
)
@click.argument("what", type=Choice(list(HEADINGS)), default="alerts")
@click.argument("name", required=False, shell_complete=names_by("what"))
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the registry as JSON.")
@registry_option
def command(what: str, name: str | None, as_json: bool, registry: RegistryClient) -> None:
    """Show alerts (the default), streams, patterns, plans, edges, silences or acknowledgements."""
    if name is not None and what in ("silences", "acknowledgements"):
        raise InputError(f"{what} have no names", where=name, hint=f"run: tamis get {what}")
    path = f"/v1/{what}" if name is None else f"/v1/{what}/{quote(name, safe='')}"
    answer = registry.request("GET", path)
    if as_json or (what == "plans" and name is not None):
        click.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2))
        return
    rows = [row for entry in ([answer] if name is not None else answer) for row in state_rows(what, entry)]
    show_table(HEADINGS[what], rows)
    if not rows:
        say(f"there are no {what}")
