"""`tamis drop`: drop an alert, a stream, a function, a table or a pattern."""

from __future__ import annotations

from urllib.parse import quote

import click

from tamis.cli.common.choices import Choice
from tamis.cli.common.names import names_by
from tamis.cli.common.registry_option import registry_option
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis drop alert condensation
  tamis drop stream air
"""
)
@click.argument("kind", type=Choice(["alert", "stream", "function", "table", "pattern"]))
@click.argument("name", shell_complete=names_by("kind"))
@registry_option
def command(kind: str, name: str, registry: RegistryClient) -> None:
    """Drop an alert, or a stream, function, table or pattern that no query reads."""
    (outcome,) = registry.request("DELETE", f"/v1/{kind}s/{quote(name, safe='')}")
    click.echo(f"{outcome['kind']} {outcome['name']} dropped (plan {outcome['plan']})")
