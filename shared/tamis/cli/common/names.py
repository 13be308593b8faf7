"""Completion of names on the command line by those that the registry has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

import click

# A shell waits for the completion, so a registry that is slow or away costs no more than this.
SECONDS = 1.0

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def names_of(kind: str) -> Completion:
    """The completion of a parameter that has the name of an alert, a stream, a pattern or an edge: the names
    of this `kind` that begin with the text, none if the registry doesn't answer.
    """
    return lambda context, _, begun: _known(context, kind, begun)


def names_by(parameter: str) -> Completion:
    """The same for a parameter whose kind, in singular or plural, is the value of another one."""
    return lambda context, _, begun: _known(context, str(context.params.get(parameter) or ""), begun)


def _known(context: click.Context, kind: str, begun: str) -> list[str]:
    from tamis.cli.common.registry_option import DEFAULT_URL
    from tamis.errors import TamisError
    from tamis.settings.client import registry_client
    from tamis.web.registry_client import RegistryClient

    kind = kind.removesuffix("s")
    if kind not in ("alert", "stream", "pattern", "edge", "shard"):
        return []  # the registry lists no functions and tables
    try:
        given = context.params.get("registry")
        if not isinstance(given, RegistryClient):  # the command has no such option
            given = registry_client(os.environ.get("TAMIS_REGISTRY") or DEFAULT_URL)
        listed = "edge" if kind == "shard" else kind
        rows: Iterable[dict[str, Any]] = given.request("GET", f"/v1/{quote(listed)}s", seconds=SECONDS)
    except TamisError:
        return []  # a message would be printed into the line that the user is typing
    if kind == "shard":
        names = [shard["shard"] for edge in rows for shard in edge["shards"]]
    else:
        names = [row["name"] for row in rows]
    return [name for name in names if name.startswith(begun)]
