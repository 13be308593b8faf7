"""`tamis silence`, `unsilence` and `acknowledge`: notifications that people don't need now."""

from __future__ import annotations

import getpass
from typing import Any
from urllib.parse import quote

import click
import orjson

from tamis.cli.common.options import names_of, registry_option
from tamis.cli.common.output import say, write, write_json
from tamis.cli.common.state_tables import covered
from tamis.declarations.units import parse_duration
from tamis.durations import iso_text
from tamis.errors import InputError
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis silence condensation --for 2h --comment "the cooler is being repaired"
  tamis silence condensation --for 30min --key k1
  tamis silence --label team=ops --severity info --for 1d
"""
)
@click.argument("alerts", nargs=-1, metavar="[ALERT]...", shell_complete=names_of("alert"))
@click.option(
    "--for", "duration", metavar="DURATION", required=True, help="How long, such as 30min, 2h or 1d."
)
@click.option("--severity", "severities", multiple=True, help="Only episodes of this severity.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Only alerts with this label.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    help="Only this key: its value, or a JSON list with the values of several key columns.",
)
@click.option("--comment", default="", help="The reason, for others.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the registry as JSON.")
@registry_option
def command(
    alerts: tuple[str, ...],
    duration: str,
    severities: tuple[str, ...],
    labels: tuple[str, ...],
    keys: tuple[str, ...],
    comment: str,
    as_json: bool,
    registry: RegistryClient,
) -> None:
    """Silence alerts for some time: notifications of new episodes are sent when it is over.

    An episode that closes meanwhile is never sent. An episode has to meet all conditions; if an option is
    given several times, one of its values is enough. Sinks for programs (alertmanager, mqtt, kafka) ignore
    silences, unless their configuration says otherwise.
    """

    wanted: dict[str, Any] = {"seconds": parse_duration(duration) / 1e6, "comment": comment, "by": caller()}
    if alerts:
        wanted["alerts"] = list(alerts)
    if severities:
        wanted["severities"] = list(severities)
    if labels:
        wanted["labels"] = _labels(labels)
    if keys:
        wanted["keys"] = [_key(key) for key in keys]
    made = registry.request("POST", "/v1/silences", orjson.dumps(wanted), media_type="application/json")
    for warning in made.get("warnings", ()):  # a registry of an older release gives none
        say(f"warning: {warning}")
    if as_json:
        write_json(made)
        return
    write(f"silenced until {iso_text(made['until'], 'seconds')}: {covered(made)}")
    write(f"to end it: tamis unsilence {made['id']}")


def caller() -> str:
    """The name of the user of this machine, for registries without tokens; empty if it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _labels(given: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise InputError(f"'{one}' is no label", where="--label", hint="write NAME=VALUE, as in team=ops")
        found.setdefault(name, []).append(value)
    return found


def _key(text: str) -> list[Any]:
    """A key: the values of a JSON list, or one text.

    >>> _key("k1"), _key('["k1", 3]')
    (['k1'], ['k1', 3])
    """
    if not text.startswith("["):
        return [text]
    try:
        return list(orjson.loads(text))
    except ValueError:
        raise InputError(f"'{text}' is no JSON list", where="--key", hint='write it as ["k1", 3]') from None


@click.command(
    epilog="""\b
Examples:
  tamis unsilence 5f0c
"""
)
@click.argument("silence", metavar="ID")
@registry_option
def unsilence(silence: str, registry: RegistryClient) -> None:
    """End a silence before its time. The beginning of its identity is enough."""
    known = [one["id"] for one in registry.request("GET", "/v1/silences")]
    found = [one for one in known if one.startswith(silence)]
    if len(found) != 1:
        what = "several silences begin" if found else "no silence begins"
        raise InputError(f"{what} with '{silence}'", hint="tamis get silences lists what there is")
    registry.request("DELETE", f"/v1/silences/{found[0]}")
    write(f"silence {found[0]} ended")


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
def acknowledge(episode: str, comment: str, undo: bool, registry: RegistryClient) -> None:
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
