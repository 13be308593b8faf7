"""`tamis completion`: completion of commands, options and names by the shell."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from tamis.cli.common.options import Choice

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_VARIABLE = "_TAMIS_COMPLETE"  # by which click recognises a call of the script


@click.command(
    epilog="""\b
Examples:
  tamis completion bash
  tamis completion zsh
"""
)
@click.argument("shell", type=Choice(list(_SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names in bash, zsh or fish.

    Names of alerts, streams, patterns and edges come from the registry of --registry or TAMIS_REGISTRY.
    Write the script to a file that the shell reads when it starts.
    """
    click.echo(_SHELLS[shell](context.find_root().command, {}, "tamis", _VARIABLE).source())
