"""`tamis drop`: take an alert, a stream, a function or a table out of service."""

from __future__ import annotations

from urllib.parse import quote

import click

from tamis.cli._registry import registry_option
from tamis.fleet.registry_client import request


@click.command(
    epilog="""\b
Examples:
  tamis drop alert condensation
  tamis drop stream air
"""
)
@click.argument("kind", type=click.Choice(["alert", "stream", "function", "table"]))
@click.argument("name")
@registry_option
def command(kind: str, name: str, url: str) -> None:
    """Drop an alert, or a stream, function or table that nothing reads."""
    (outcome,) = request("DELETE", url, f"/v1/{kind}s/{quote(name, safe='')}")
    click.echo(f"{outcome['kind']} {outcome['name']} dropped (plan {outcome['plan']})")
