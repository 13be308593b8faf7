"""`tamis acknowledge`: tell others that you look after an episode."""

from __future__ import annotations

from urllib.parse import quote

import click
import orjson

from tamis.cli.common.output import write
from tamis.cli.common.registry_option import registry_option
from tamis.cli.manage.silence import caller
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis acknowledge 5f0c92ab --comment "on my way"
"""
)
@click.argument("episode")
@click.option("--comment", default="", help="A word for others.")
@click.option("--undo", is_flag=True, help="Take the acknowledgement back.")
@registry_option
def command(episode: str, comment: str, undo: bool, registry: RegistryClient) -> None:
    """Tell others that you look after an open episode. It changes no notification.

    `tamis watch` shows the beginning of the identity of each episode, which is enough here, and `tamis get
    acknowledgements` who looks after which.
    """
    path = f"/v1/episodes/{quote(episode, safe='')}/acknowledgement"
    if undo:
        registry.request("DELETE", path)
        write(f"acknowledgement of episode {episode} taken back")
        return
    wanted = orjson.dumps({"comment": comment, "by": caller()})
    made = registry.request("POST", path, wanted, media_type="application/json")
    write(f"episode {made['episode']} acknowledged" + (f" by {made['by']}" if made["by"] else ""))
