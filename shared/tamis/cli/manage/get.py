"""`tamis get`: the state of definitions, plans, edges, joiner, sinks and episodes, and silences of these."""

from __future__ import annotations

from typing import Any
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
  tamis get episodes
"""
)
@click.argument("what", type=Choice(list(HEADINGS)), default="alerts")
@click.argument("name", required=False, shell_complete=names_by("what"))
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the registry as JSON.")
@registry_option
def command(what: str, name: str | None, as_json: bool, registry: RegistryClient) -> None:
    """Show alerts (the default), streams, patterns, plans, edges, the joiner, sinks, open episodes, silences
    or acknowledgements.
    """
    if name is not None and what in NAMELESS:
        raise InputError(f"`tamis get {what}` takes no name", where=name, hint=f"run: tamis get {what}")
    path = f"/v1/{what}" if name is None else f"/v1/{what}/{quote(name, safe='')}"
    answer = registry.request("GET", path)
    if as_json or (what == "plans" and name is not None):
        click.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2))
        return
    if what == "episodes":
        _show(what, answer["episodes"], "open episodes")
        if not answer["complete"]:
            say(f"only the newest {answer['read']} events of episodes were looked through; there may be more")
    else:
        _show(what, answer if isinstance(answer, list) else [answer], what)


def _show(what: str, entries: list[dict[str, Any]], named: str) -> None:
    """Print a table. `named`: what there is none of if it is empty."""
    rows = [row for entry in entries for row in state_rows(what, entry)]
    show_table(HEADINGS[what], rows)
    if not rows:
        say(f"there are no {named}")
