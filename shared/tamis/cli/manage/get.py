"""`tamis get`: the state of definitions, plans, edges, joiner and sinks, silences and acknowledgements."""

from __future__ import annotations

from urllib.parse import quote

import click
import orjson

from tamis.cli.common.choices import Choice
from tamis.cli.common.names import names_by
from tamis.cli.common.registry_option import registry_option
from tamis.cli.common.sql_file import say
from tamis.cli.common.state_tables import HEADINGS, NAMELESS, state_rows
from tamis.cli.common.tables import show_table
from tamis.errors import InputError
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis get
  tamis get alerts condensation --json
  tamis get edges
  tamis get joiner
"""
)
@click.argument("what", type=Choice(list(HEADINGS)), default="alerts")
@click.argument("name", required=False, shell_complete=names_by("what"))
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the registry as JSON.")
@registry_option
def command(what: str, name: str | None, as_json: bool, registry: RegistryClient) -> None:
    """Show alerts (the default), streams, patterns, plans, edges, the joiner, sinks, silences or
    acknowledgements.
    """
    if name is not None and what in NAMELESS:
        raise InputError(f"`tamis get {what}` takes no name", where=name, hint=f"run: tamis get {what}")
    path = f"/v1/{what}" if name is None else f"/v1/{what}/{quote(name, safe='')}"
    answer = registry.request("GET", path)
    if as_json or (what == "plans" and name is not None):
        click.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2))
        return
    entries = answer if isinstance(answer, list) else [answer]
    rows = [row for entry in entries for row in state_rows(what, entry)]
    show_table(HEADINGS[what], rows)
    if not rows:
        say(f"there are no {what}")
