"""`tamis drop`: drop an alert, a stream, a function, a table or a pattern, or give up a shard."""

from __future__ import annotations

from urllib.parse import quote

import click

from tamis.cli.common.choices import Choice
from tamis.cli.common.names import names_by
from tamis.cli.common.output import write
from tamis.cli.common.registry_option import registry_option
from tamis.web.registry_client import RegistryClient


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
def command(kind: str, name: str, registry: RegistryClient) -> None:
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
