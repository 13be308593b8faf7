"""`tamis unsilence`: end a silence."""

from __future__ import annotations

import click

from tamis.cli.common.output import write
from tamis.cli.common.registry_option import registry_option
from tamis.errors import InputError
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis unsilence 5f0c
"""
)
@click.argument("silence", metavar="ID")
@registry_option
def command(silence: str, registry: RegistryClient) -> None:
    """End a silence before its time. The beginning of its identity is enough."""
    known = [one["id"] for one in registry.request("GET", "/v1/silences")]
    found = [one for one in known if one.startswith(silence)]
    if len(found) != 1:
        what = "several silences begin" if found else "no silence begins"
        raise InputError(f"{what} with '{silence}'", hint="tamis get silences lists what there is")
    registry.request("DELETE", f"/v1/silences/{found[0]}")
    write(f"silence {found[0]} ended")
